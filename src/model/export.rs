//! From a trained network to the TorchScript file that the engine loads.

use super::chessformer::{Chessformer, Constants, Heads, Outputs};
use super::parameters::Weights;
use crate::chess::Game;
use crate::encode::{HISTORY, Input, SCALARS, WIDTH};
use crate::files;
use crate::nn::metadata::{CONTRACT, INPUT_FORMAT, Metadata, tensor_hash};
use std::ffi::{CStr, CString, NulError, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};
use torch_sys::C_tensor;

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

/// The output after them of a network that has the head.
const OPTIMISTIC: &str = "policy_optimistic";

/// What an exported network evaluates besides what all have.
const EXPORTED_HEADS: Heads = Heads {
    soft: false,
    optimistic: true,
};

/// The outputs of an exported network, in order.
fn output_names(model: &Chessformer) -> impl Iterator<Item = &'static str> {
    let optimistic = model.config().optimistic_policy.then_some(OPTIMISTIC);
    OUTPUTS.into_iter().chain(optimistic)
}

/// In which format an exported network stores its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportPrecision {
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision: half the bytes, and far finer than the differences
    /// between two trainings.
    #[default]
    Fp16,
}

impl ExportPrecision {
    fn kind(self) -> Kind {
        match self {
            ExportPrecision::F32 => Kind::Float,
            ExportPrecision::Bf16 => Kind::BFloat16,
            ExportPrecision::Fp16 => Kind::Half,
        }
    }

    /// The format's number among libtorch's scalar types (c10::ScalarType),
    /// which tch keeps to itself.
    fn scalar_type(self) -> c_int {
        match self {
            ExportPrecision::F32 => 6,
            ExportPrecision::Bf16 => 15,
            ExportPrecision::Fp16 => 5,
        }
    }
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

/// Why a network could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// libtorch refused.
    #[error("libtorch could not export the network: {0}")]
    Torch(String),
    /// A name or path holds a zero byte.
    #[error("a name or path holds a zero byte")]
    Name(#[from] NulError),
}

/// Writes the network as one TorchScript file, all of it or nothing.
///
/// `flat` holds its parameters end to end. The returned metadata is what the
/// file's `meta()` says.
///
/// # Errors
/// [`ExportError`] if libtorch or the file system refuse.
pub fn export(
    model: &Chessformer,
    flat: &Tensor,
    export: &Export,
    path: &Path,
) -> Result<Metadata, ExportError> {
    let kind = export.precision.kind();
    let flat = flat.detach().to_device(Device::Cpu).to_kind(Kind::Float);
    // What is traced is what is stored: rounding comes first.
    let flat = flat.to_kind(kind).to_kind(Kind::Float);
    let weights = Weights::new(
        Weights::from_flat(&flat, model.parameters())
            .tensors()
            .iter()
            .map(Tensor::copy)
            .collect(),
    );
    let constants = model.constants();
    let buffers = constants.named();
    let parameters = model.parameters().iter().zip(weights.tensors());
    let stored = parameters
        .map(|(parameter, tensor)| (parameter.name.clone(), tensor.to_kind(kind)))
        .chain(buffers.map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone())));
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
        input_format: INPUT_FORMAT,
        history: HISTORY as u32,
        scalars: SCALARS.map(str::to_owned).to_vec(),
        outputs: output_names(model).map(str::to_owned).collect(),
        search_value: export.search_value.clone(),
        parameters: size.parameters.unsigned_abs(),
        macs: size.macs.unsigned_abs(),
        training: export.training.clone(),
        licence: export.licence.clone(),
        hash: tensor_hash(stored),
    };
    let failed = |source| ExportError::Write {
        path: path.to_owned(),
        source,
    };
    let unfinished = files::unfinished(path).map_err(failed)?;
    let json = serde_json::to_string(&metadata).expect("plain data");
    trace(model, &weights, &json, export.precision, unfinished.path())?;
    unfinished.as_file().sync_all().map_err(failed)?;
    unfinished
        .persist(path)
        .map_err(|error| failed(error.error))?;
    Ok(metadata)
}

impl Constants {
    /// The tensors by the names of the buffers that hold them.
    fn named(&self) -> [(&'static str, &Tensor); 3] {
        [
            ("shifts", &self.shifts),
            ("policy_gather", &self.policy),
            ("displacements", &self.displacements),
        ]
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

/// The forward pass as C++ calls it back.
type Forward = extern "C" fn(*mut c_void, *mut C_tensor, *mut *mut C_tensor, usize) -> c_int;

unsafe extern "C" {
    fn tessera_trace(
        names: *const *const c_char,
        tensors: *const *const C_tensor,
        parameters: usize,
        buffers: usize,
        metadata: *const c_char,
        example: *const C_tensor,
        forward: Forward,
        context: *mut c_void,
        outputs: usize,
        kind: c_int,
        path: *const c_char,
    ) -> *mut c_char;
    fn tessera_trace_free(message: *mut c_char);
}

/// What the forward pass needs when C++ calls it back.
struct Context<'a> {
    model: &'a Chessformer,
    weights: &'a Weights,
}

extern "C" fn forward(
    context: *mut c_void,
    input: *mut C_tensor,
    outputs: *mut *mut C_tensor,
    count: usize,
) -> c_int {
    let run = std::panic::AssertUnwindSafe(|| {
        // SAFETY: `trace` passes a `Context` that outlives the call.
        let context = unsafe { &*context.cast::<Context>() };
        // SAFETY: `input` is a live tensor of the caller's; the clone is ours.
        let rows = unsafe { Tensor::clone_from_ptr(input) };
        context
            .model
            .forward(context.weights, &rows, EXPORTED_HEADS)
            .exported()
    });
    let Ok(tensors) = std::panic::catch_unwind(run) else {
        return 1;
    };
    assert_eq!(tensors.len(), count);
    for (index, mut tensor) in tensors.into_iter().enumerate() {
        // SAFETY: `outputs` has room for `count` pointers; the clone behind this
        // one belongs to the caller from here on, who deletes it.
        unsafe { *outputs.add(index) = torch_sys::at_shallow_clone(tensor.as_mut_ptr()) };
    }
    0
}

fn trace(
    model: &Chessformer,
    weights: &Weights,
    metadata: &str,
    precision: ExportPrecision,
    path: &Path,
) -> Result<(), ExportError> {
    let buffers = model.constants().named();
    let names = model
        .parameters()
        .iter()
        .map(|parameter| parameter.name.as_str());
    let names = names
        .chain(buffers.iter().map(|(name, _)| *name))
        .map(CString::new)
        .collect::<Result<Vec<_>, _>>()?;
    let name_pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let tensors = weights.tensors().iter();
    let tensors: Vec<_> = tensors
        .chain(buffers.iter().map(|(_, tensor)| *tensor))
        .map(Tensor::as_ptr)
        .collect();
    let example = Input::encode(&Game::default());
    let words: &[i64] = bytemuck::cast_slice(example.words());
    // Two rows, so that nothing takes the batch's size for a constant 1.
    let example = Tensor::from_slice(words)
        .repeat([2])
        .view([2, WIDTH as i64]);
    let metadata = CString::new(metadata)?;
    let path = CString::new(path.to_string_lossy().as_bytes())?;
    let mut context = Context { model, weights };
    let _guard = tch::no_grad_guard();
    // SAFETY: the arrays hold as many pointers as said and outlive the call, as
    // do the tensors, the strings and the context; `forward` unwinds nowhere.
    let message = unsafe {
        tessera_trace(
            name_pointers.as_ptr(),
            tensors.as_ptr(),
            weights.tensors().len(),
            buffers.len(),
            metadata.as_ptr(),
            example.as_ptr(),
            forward,
            (&raw mut context).cast(),
            output_names(model).count(),
            precision.scalar_type(),
            path.as_ptr(),
        )
    };
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: a message is a C string that is ours until we free it, once.
    let text = unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: as above.
    unsafe { tessera_trace_free(message) };
    Err(ExportError::Torch(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModelConfig, PositionConfig};
    use tch::{CModule, IValue};

    fn small(position: PositionConfig) -> Chessformer {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        (config.layers, config.width) = (2, 32);
        config.optimistic_policy = position == PositionConfig::Shaw;
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

    /// Positions along a game, i64 [count, 111].
    fn rows(count: usize) -> Tensor {
        let mut game = Game::default();
        let mut words: Vec<i64> = Vec::new();
        for _ in 0..count {
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
            let path = folder.path().join("test.pt");
            export(&model, &flat, &how(ExportPrecision::F32), &path).unwrap();
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
        let buffers = model.constants().named();
        let buffers = buffers.map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
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
