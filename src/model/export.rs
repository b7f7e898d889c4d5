//! From a trained network to the TorchScript file that the engine loads.

use super::chessformer::{Chessformer, Constants, Heads, Outputs};
use super::config::{ConfigError, ModelConfig};
use super::parameters::Weights;
use crate::encode::{HISTORY, InputFormat, SCALARS};
use crate::nn::metadata::{CONTRACT, Metadata};
use crate::nn::torch::{ExportPrecision, Script, ScriptError};
use serde::Deserialize;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// The outputs of every exported network, in order.
const OUTPUTS: [&str; 7] = [
    "policy",
    "wdl",
    "moves_left",
    "q",
    "q_error",
    "st",
    "st_error",
];

/// How many of [`SCALARS`] a Chessformer without ratings reads: castling rights, the
/// side to move and the 50-move rule. With ratings it reads all.
const READ: usize = 6;

/// The output after them of a network that has the head.
const OPTIMISTIC: &str = "policy_optimistic";

/// What an exported network evaluates besides what all have.
const EXPORTED_HEADS: Heads = Heads {
    soft: false,
    optimistic: true,
};

/// The scalars that an exported network reads, in order.
fn scalars(config: &ModelConfig) -> &'static [&'static str] {
    match config.elo {
        true => &SCALARS,
        false => &SCALARS[..READ],
    }
}

/// The outputs of an exported network, in order.
fn output_names(model: &Chessformer) -> impl Iterator<Item = &'static str> {
    let optimistic = model.config().optimistic_policy.then_some(OPTIMISTIC);
    OUTPUTS.into_iter().chain(optimistic)
}

/// What an exported network says of itself besides its architecture.
#[derive(Clone, Debug)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// In which format its parameters are stored.
    pub precision: ExportPrecision,
    /// Which output ranks moves: `wdl`, `q` or `st`.
    pub search_value: String,
    /// What it was trained on and how.
    pub training: serde_json::Value,
    /// Licence of the weights, as an SPDX expression.
    pub licence: String,
}

/// Writes the network as one TorchScript file, all of it or nothing.
///
/// `flat` holds its parameters end to end. The returned metadata is what the
/// file's `meta()` says.
///
/// # Errors
/// [`ScriptError`] if libtorch or the file system refuse.
pub fn export(
    model: &Chessformer,
    flat: &Tensor,
    export: &Export,
    path: &Path,
) -> Result<Metadata, ScriptError> {
    let flat = flat.detach().to_device(Device::Cpu).to_kind(Kind::Float);
    let weights = Weights::from_flat(&flat, model.parameters());
    let parameters: Vec<(String, Tensor)> = model
        .parameters()
        .iter()
        .zip(weights.tensors())
        .map(|(parameter, tensor)| (parameter.name.clone(), tensor.shallow_clone()))
        .collect();
    let script = Script {
        parameters: &parameters,
        buffers: &model.buffers(),
        forward: &|weights, rows| {
            let weights = Weights::new(weights.iter().map(Tensor::shallow_clone).collect());
            model.forward(&weights, rows, EXPORTED_HEADS).exported()
        },
    };
    let size = model.size();
    let metadata = Metadata {
        contract: CONTRACT,
        name: export.name.clone(),
        architecture: serde_json::json!({
            "family": "chessformer",
            "model": model.config(),
            "macs_total": size.macs_total,
            "precision": export.precision,
        }),
        input_format: InputFormat::Classical.number(),
        history: HISTORY as u32,
        scalars: scalars(model.config())
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        outputs: output_names(model).map(str::to_owned).collect(),
        search_value: export.search_value.clone(),
        parameters: size.parameters.unsigned_abs(),
        macs: size.macs.unsigned_abs(),
        training: export.training.clone(),
        licence: export.licence.clone(),
        hash: String::new(),
    };
    script.write(metadata, export.precision, path)
}

/// Why a network cannot be taken out of its file.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is no Chessformer of this version.
    #[error("its architecture is none of ours: {0}")]
    Architecture(#[from] serde_json::Error),
    /// Its sizes do not fit each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A parameter is not there, or not of its shape.
    #[error("its parameter {name} is {found}, not {expected:?}")]
    Parameter {
        /// The parameter's name.
        name: String,
        /// Its shape in the file, or that it is missing.
        found: String,
        /// The shape that the architecture asks for.
        expected: Vec<i64>,
    },
}

/// Takes a network out of the file that [`export`] wrote: its structure and its
/// parameters, in f32 on the CPU. `tensors` are the file's, by name.
///
/// # Errors
/// [`RestoreError`] if they are not those of a Chessformer.
pub fn restore(
    metadata: &Metadata,
    tensors: &[(String, Tensor)],
) -> Result<(Chessformer, Weights), RestoreError> {
    let config = ModelConfig::deserialize(&metadata.architecture["model"])?;
    let model = Chessformer::new(&config, Device::Cpu)?;
    let weights = model.parameters().iter().map(|parameter| {
        let found = tensors.iter().find(|(name, _)| *name == parameter.name);
        match found {
            Some((_, tensor)) if tensor.size() == parameter.shape => {
                Ok(tensor.detach().to_kind(Kind::Float))
            }
            _ => Err(RestoreError::Parameter {
                name: parameter.name.clone(),
                found: found.map_or("missing".to_owned(), |(_, t)| format!("{:?}", t.size())),
                expected: parameter.shape.clone(),
            }),
        }
    });
    let weights = weights.collect::<Result<Vec<_>, _>>()?;
    Ok((model, Weights::new(weights)))
}

impl Chessformer {
    /// What the file of the network computes, but from planes [B, 112, 8, 8] as
    /// Lc0 fills them in input format 1: the plies of the 50-move rule are not
    /// scaled. The outputs are those of the file, in its order.
    #[must_use]
    pub fn exported_from_planes(&self, weights: &Weights, planes: &Tensor) -> Vec<Tensor> {
        self.forward_planes(weights, planes, EXPORTED_HEADS)
            .exported()
    }

    /// The tensors besides the parameters that the forward pass reads, by name.
    #[must_use]
    pub fn buffers(&self) -> Vec<(String, Tensor)> {
        let named = self.constants().named().into_iter();
        named
            .map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()))
            .collect()
    }
}

impl Constants {
    /// The tensors by the names of the buffers that hold them.
    fn named(&self) -> Vec<(&'static str, &Tensor)> {
        let mut named = vec![
            ("shifts", &self.shifts),
            ("policy_gather", &self.policy),
            ("displacements", &self.displacements),
        ];
        if let Some(attacks) = &self.attacks {
            named.extend([
                ("attack_ways", &attacks.ways),
                ("attack_between", &attacks.between),
                ("attack_features", &attacks.features),
                ("attack_movers", &attacks.movers),
            ]);
        }
        named
    }
}

impl Outputs {
    /// The tensors in the order of [`output_names`].
    fn exported(self) -> Vec<Tensor> {
        let always = [
            self.policy,
            self.wdl,
            self.moves_left,
            self.q.scalar,
            self.q.error,
            self.short_term.scalar,
            self.short_term.error,
        ];
        always.into_iter().chain(self.policy_optimistic).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Game, Ratings};
    use crate::encode::{BOARDS, Input, WIDTH};
    use crate::model::{ModelConfig, PositionConfig};
    use crate::nn::tensor_hash;
    use tch::{CModule, IValue};

    fn small(position: PositionConfig) -> Chessformer {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        (config.layers, config.width) = (2, 32);
        config.optimistic_policy = position == PositionConfig::Shaw;
        config.attacks = position != PositionConfig::Relative;
        config.attack_bias = position != PositionConfig::Shaw;
        config.elo = position == PositionConfig::Absolute;
        config.position = position;
        Chessformer::new(&config, Device::Cpu).unwrap()
    }

    fn gab() -> PositionConfig {
        PositionConfig::Gab {
            compress: 4,
            hidden: 16,
            generator: 8,
        }
    }

    fn how(precision: ExportPrecision) -> Export {
        Export {
            name: "test".to_owned(),
            precision,
            search_value: "q".to_owned(),
            training: serde_json::json!({ "samples": 0 }),
            licence: "GPL-3.0-or-later".to_owned(),
        }
    }

    /// Positions along a game, i64 [count, WIDTH].
    fn rows(count: usize) -> Tensor {
        let mut game = Game::default();
        let mut words: Vec<i64> = Vec::new();
        for number in 0..count {
            game.set_ratings(Ratings {
                white: Some(100 * number as u16).filter(|&rating| rating > 0),
                black: Some(2000),
            });
            words.extend(bytemuck::cast_slice::<u64, i64>(
                Input::encode(&game).words(),
            ));
            let moves = shakmaty::Position::legal_moves(game.position());
            match moves.get(game.plies().len() % moves.len().max(1)) {
                Some(&mv) => game.play(mv),
                None => game = Game::default(),
            }
        }
        Tensor::from_slice(&words).view([-1, WIDTH as i64])
    }

    #[test]
    fn an_exported_network_equals_the_model_at_every_batch_size() {
        let _guard = tch::no_grad_guard();
        let folder = tempfile::tempdir().unwrap();
        let positions = [
            gab(),
            PositionConfig::Shaw,
            PositionConfig::Relative,
            PositionConfig::Absolute,
        ];
        for position in positions {
            let model = small(position);
            tch::manual_seed(7);
            let flat = model.initial_weights();
            // The vectors of ratings start at zero.
            let flat = &flat + flat.randn_like() * 0.1;
            let path = folder.path().join("test.pt");
            let written = export(&model, &flat, &how(ExportPrecision::F32), &path).unwrap();
            let read = match model.config().elo {
                true => WIDTH,
                false => BOARDS + READ,
            };
            assert_eq!(BOARDS + written.scalars.len(), read);
            let reloaded = CModule::load(&path).unwrap();
            let weights = Weights::from_flat(&flat, model.parameters());
            for batch in [1, 7, 64] {
                let rows = rows(batch);
                let expected = model.forward(&weights, &rows, EXPORTED_HEADS).exported();
                let IValue::Tuple(found) = reloaded.forward_is(&[IValue::Tensor(rows)]).unwrap()
                else {
                    panic!("not a tuple");
                };
                assert_eq!(found.len(), output_names(&model).count());
                for ((name, expected), found) in output_names(&model).zip(expected).zip(found) {
                    let IValue::Tensor(found) = found else {
                        panic!("not a tensor");
                    };
                    assert_eq!(found.size(), expected.size(), "{name}");
                    let off = (found - expected).abs().max().double_value(&[]);
                    assert!(off < 1e-4, "{name} is off by {off} at batch {batch}");
                }
            }
        }
    }

    #[test]
    fn metadata_and_names_are_in_the_file() {
        let model = small(gab());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.pt");
        let written = export(
            &model,
            &model.initial_weights(),
            &how(ExportPrecision::Fp16),
            &path,
        )
        .unwrap();
        let module = CModule::load(&path).unwrap();
        let IValue::String(json) = module.method_is::<IValue>("meta", &[]).unwrap() else {
            panic!("not a string");
        };
        assert_eq!(Metadata::parse(&json).unwrap(), written);
        let named = module.named_parameters().unwrap();
        assert_eq!(named.len(), model.parameters().len());
        for parameter in model.parameters() {
            let (_, tensor) = named
                .iter()
                .find(|(name, _)| *name == parameter.name)
                .unwrap();
            assert_eq!(tensor.kind(), Kind::Half, "{}", parameter.name);
            assert_eq!(tensor.size(), parameter.shape);
        }
        let buffers = model.buffers();
        assert_eq!(tensor_hash(named.into_iter().chain(buffers)), written.hash);
    }

    #[test]
    fn what_cannot_be_written_says_where() {
        let model = small(gab());
        let path = Path::new("no-such-folder/net.pt");
        let how = how(ExportPrecision::Fp16);
        let error = export(&model, &model.initial_weights(), &how, path).unwrap_err();
        assert!(error.to_string().contains("no-such-folder"));
    }
}
