//! Networks with weights, and the files in which they are stored.

use super::architecture::{Architecture, Evaluator, NotAnEvaluator, Positions};
use super::chessformer::Chessformer;
use super::config::ArchitectureConfig;
use super::evaluator::evaluate;
use super::exported::ExportedProgram;
use super::family::ArchitectureError;
use super::gpt::Gpt;
use super::parameters::{Parameter, Weights};
use super::world::WorldModel;
use crate::backend::metadata::{CONTRACT, EncoderSpec};
use crate::backend::{CodePolicy, Metadata};
use crate::tactics::correction::Correction;
use crate::torch::{
    self, ExportPrecision, NetworkError, NetworkFile, Script, ScriptError, TorchError, TracedMethod,
};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// A network: structure, tensors and metadata. Unless `A` is given, its architecture is one that
/// evaluates positions.
#[derive(Debug)]
pub struct Network<A: Architecture + ?Sized = dyn Evaluator> {
    /// The network's structure.
    pub architecture: Box<A>,
    /// The network's parameters, f32 on the CPU.
    pub weights: Weights,
    /// The network's name, licence and training record.
    pub about: About,
}

/// A network, classified by the way in which it plays.
#[derive(Debug)]
pub enum Playable {
    /// Evaluates positions.
    Positions(Network),
    /// Evaluates positions and looks ahead in imagination.
    World(Network<WorldModel>),
    /// Reads games move by move.
    Moves(Network<Gpt>),
}

/// The metadata of a network file, apart from the network itself.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The network's name.
    pub name: String,
    /// The output that ranks moves: `wdl`, `q` or `st`.
    pub search_value: String,
    /// Human-readable notes on the network's training data and training method.
    pub training: Value,
    /// Licence of the weights, as an SPDX expression, or `unknown`.
    pub licence: String,
    /// The correction of the policy, if there is one: where it stands for people's moves if the network reads
    /// ratings, and otherwise in a search.
    pub correction: Option<Correction>,
}

/// Why tensors do not fit an architecture.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// A parameter is missing.
    #[error("it has no parameter `{0}`")]
    Missing(String),
    /// A parameter's shape differs from the architecture's.
    #[error("its parameter `{name}` has the shape {found:?} in place of {expected:?}")]
    Shape {
        /// The parameter.
        name: String,
        /// The shape of the parameter.
        found: Vec<i64>,
        /// The shape that the architecture requires.
        expected: Vec<i64>,
    },
}

/// Why a network cannot be loaded from its file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The metadata state an unknown architecture.
    #[error("its architecture cannot be read: {0}")]
    Description(String),
    /// The architecture's sizes do not fit together.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The tensors do not match the architecture.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The family does not evaluate positions.
    #[error(transparent)]
    NotAnEvaluator(#[from] NotAnEvaluator),
}

impl From<OpenError> for NetworkError {
    fn from(error: OpenError) -> NetworkError {
        match error {
            OpenError::Network(error) => error,
            other => NetworkError::Torch(TorchError::new(&other.to_string())),
        }
    }
}

/// Upper bound on the sizes in files, so that products of sizes do not overflow.
const LARGEST_SIZE: u64 = 1 << 24;

/// Loads a network that evaluates positions from a network file. The code in the file runs only if
/// the policy allows all code and the tensors can be read by libtorch alone.
///
/// # Errors
/// [`OpenError`] if the file is not a network file, or its family is unknown or does not evaluate
/// positions.
pub fn open(file: &[u8], policy: CodePolicy) -> Result<Network, OpenError> {
    let (metadata, tensors) = torch::contents(file, policy)?;
    Network::from_tensors(&metadata, tensors)
}

/// Loads a network of any family.
///
/// # Errors
/// [`OpenError`] if the file is not a network file, or its family is unknown.
pub fn open_any(file: &[u8], policy: CodePolicy) -> Result<Network<dyn Architecture>, OpenError> {
    let (metadata, tensors) = torch::contents(file, policy)?;
    any_from_tensors(&metadata, tensors)
}

/// Returns the architecture that a network file states.
///
/// # Errors
/// The same as for [`open`]. Only the metadata are read.
pub fn architecture(file: &[u8]) -> Result<ArchitectureConfig, OpenError> {
    let file = NetworkFile::open(file, CodePolicy::Checked)?;
    described(&file.metadata.architecture)
}

/// Builds a network of any family from the metadata and tensors of its file.
fn any_from_tensors(
    metadata: &Metadata,
    tensors: impl IntoIterator<Item = (String, Tensor)>,
) -> Result<Network<dyn Architecture>, OpenError> {
    let tensors: Vec<(String, Tensor)> = tensors.into_iter().collect();
    let config = described(&metadata.architecture)?;
    if usize::try_from(config.layers()).is_ok_and(|layers| layers > tensors.len()) {
        let missing = format!("tensors of {} layers", config.layers());
        return Err(WeightsError::Missing(missing).into());
    }
    let architecture = config.build(Device::Cpu)?;
    Ok(Network {
        weights: Weights::take(architecture.parameters(), tensors)?,
        architecture,
        about: About::of(metadata),
    })
}

impl<A: Architecture + ?Sized> Network<A> {
    /// Returns a network whose parameters are `flat`, concatenated f32 values.
    pub fn new(architecture: Box<A>, flat: &Tensor, about: About) -> Network<A> {
        let flat = flat.detach().to_device(Device::Cpu).to_kind(Kind::Float);
        Network {
            weights: Weights::from_flat(&flat, architecture.parameters()),
            architecture,
            about,
        }
    }

    /// Returns the network's parameters by name.
    pub fn parameters(&self) -> Vec<(String, Tensor)> {
        let names = self.architecture.parameters().iter();
        let names = names.map(|parameter| parameter.name.clone());
        let tensors = self.weights.tensors().iter().map(Tensor::shallow_clone);
        names.zip(tensors).collect()
    }

    /// Writes the network as one TorchScript file, atomically. Returns the file's metadata.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system fails.
    pub fn write(&self, precision: ExportPrecision, path: &Path) -> Result<Metadata, ScriptError> {
        let ExportedProgram { encoder, methods } = self.architecture.exported();
        let metadata = self.metadata(precision, encoder, &methods);
        let script = Script {
            parameters: &self.parameters(),
            buffers: &self.architecture.buffers(),
            methods: &methods,
        };
        script.write(metadata, precision, path)
    }

    /// Returns the metadata for the network's file, without the hash.
    fn metadata(
        &self,
        precision: ExportPrecision,
        encoder: EncoderSpec,
        methods: &[TracedMethod],
    ) -> Metadata {
        let size = self.architecture.size();
        let mut architecture =
            serde_json::to_value(self.architecture.config()).expect("plain data");
        architecture["macs_total"] = size.macs_total.into();
        architecture["precision"] = serde_json::to_value(precision).expect("plain data");
        let ranks_moves = matches!(encoder, EncoderSpec::Planes(_));
        Metadata {
            contract: CONTRACT,
            name: self.about.name.clone(),
            architecture,
            encoder,
            methods: methods.iter().map(TracedMethod::described).collect(),
            search_value: ranks_moves.then(|| self.about.search_value.clone()),
            correction: self.about.correction.clone(),
            parameters: size.parameters.unsigned_abs(),
            macs: size.macs.unsigned_abs(),
            training: self.about.training.clone(),
            licence: self.about.licence.clone(),
            hash: String::new(),
        }
    }
}

impl Network<dyn Architecture> {
    /// Converts the network to one whose type states that it evaluates positions.
    ///
    /// # Errors
    /// [`NotAnEvaluator`] if its family does not evaluate positions.
    pub fn into_evaluator(self) -> Result<Network, NotAnEvaluator> {
        Ok(Network {
            architecture: self.architecture.into_evaluator()?,
            weights: self.weights,
            about: self.about,
        })
    }

    /// Converts the network to the type of one family. Returns `None` if it belongs to another
    /// family.
    #[must_use]
    pub fn downcast<A: Architecture>(self) -> Option<Network<A>> {
        let architecture: Box<dyn Any> = self.architecture;
        Some(Network {
            architecture: architecture.downcast().ok()?,
            weights: self.weights,
            about: self.about,
        })
    }
}

impl Playable {
    /// Builds a network from the metadata and tensors of its file.
    ///
    /// # Errors
    /// [`OpenError`] if the metadata and the tensors do not match.
    pub fn from_tensors(
        metadata: &Metadata,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<Playable, OpenError> {
        let network = any_from_tensors(metadata, tensors)?;
        let same = "it is of the family that it states";
        Ok(match network.architecture.config() {
            ArchitectureConfig::Gpt { .. } => Playable::Moves(network.downcast().expect(same)),
            ArchitectureConfig::World { .. } => Playable::World(network.downcast().expect(same)),
            _ => Playable::Positions(network.evaluating(metadata)?),
        })
    }

    /// Returns the Chessformer that evaluates positions and its weights, or `None` if the network
    /// has none.
    pub fn chessformer(&self) -> Option<(&Chessformer, &Weights)> {
        match self {
            Playable::Positions(network) => Some((network.downcast()?, &network.weights)),
            Playable::World(network) => Some((&network.architecture.encoder, &network.weights)),
            Playable::Moves(_) => None,
        }
    }
}

impl Network<dyn Architecture> {
    /// Converts the network to one that evaluates positions, and checks that it has the outputs
    /// that the metadata name.
    fn evaluating(self, metadata: &Metadata) -> Result<Network, OpenError> {
        let network = self.into_evaluator()?;
        let outputs = network.architecture.interface().outputs;
        let named: Vec<&str> = metadata.outputs().collect();
        if !outputs
            .iter()
            .map(|output| output.name())
            .eq(named.iter().copied())
        {
            let what = "it does not compute the outputs that it names";
            return Err(OpenError::Description(what.to_owned()));
        }
        Ok(network)
    }
}

impl Network {
    /// Builds a network from the metadata and tensors of its file.
    ///
    /// # Errors
    /// [`OpenError`] if the metadata and the tensors do not match.
    pub fn from_tensors(
        metadata: &Metadata,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<Network, OpenError> {
        any_from_tensors(metadata, tensors)?.evaluating(metadata)
    }

    /// Returns the network's structure if it belongs to the family `T`.
    pub fn downcast<T: Architecture>(&self) -> Option<&T> {
        let architecture: &dyn Any = &*self.architecture;
        architecture.downcast_ref()
    }

    /// Evaluates positions and returns [`Interface::outputs`](super::Interface::outputs), in order.
    pub fn forward(&self, positions: Positions) -> Vec<Tensor> {
        evaluate(&*self.architecture, &self.weights, positions)
    }
}

impl About {
    /// Describes a network from another program's file, which has no name.
    pub(crate) fn imported(training: Value, licence: String) -> About {
        About {
            name: String::new(),
            search_value: "wdl".to_owned(),
            training,
            licence,
            correction: None,
        }
    }

    /// Selects these entries from a file's metadata.
    pub fn of(metadata: &Metadata) -> About {
        About {
            name: metadata.name.clone(),
            search_value: metadata.search_value().to_owned(),
            training: metadata.training.clone(),
            licence: metadata.licence.clone(),
            correction: metadata.correction.clone(),
        }
    }
}

/// Returns the architecture that the metadata state.
pub(crate) fn described(architecture: &Value) -> Result<ArchitectureConfig, OpenError> {
    if !is_plausible(&architecture["model"]) {
        let what = "its sizes are out of bounds";
        return Err(OpenError::Description(what.to_owned()));
    }
    serde_json::from_value(architecture.clone())
        .map_err(|error| OpenError::Description(error.to_string()))
}

/// Returns whether all numbers are plausible sizes, so that products of sizes do not overflow.
fn is_plausible(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_some_and(|n| n < LARGEST_SIZE),
        Value::Array(values) => values.iter().all(is_plausible),
        Value::Object(fields) => fields.values().all(is_plausible),
        _ => true,
    }
}

impl Weights {
    /// Selects the weights for `parameters`, as f32 on the CPU. The tensors may be in any order,
    /// and there may be others among them.
    ///
    /// # Errors
    /// [`WeightsError`], which names the first parameter that is missing or does not fit.
    pub fn take(
        parameters: &[Parameter],
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<Weights, WeightsError> {
        let mut tensors: BTreeMap<String, Tensor> = tensors.into_iter().collect();
        let weights = parameters.iter().map(|parameter| {
            let name = &parameter.name;
            let tensor = tensors.remove(name);
            let tensor = tensor.ok_or_else(|| WeightsError::Missing(name.clone()))?;
            if tensor.size() != parameter.shape {
                return Err(WeightsError::Shape {
                    name: name.clone(),
                    found: tensor.size(),
                    expected: parameter.shape.clone(),
                });
            }
            let tensor = tensor.detach().to_device(Device::Cpu).to_kind(Kind::Float);
            Ok(laid_out(&tensor))
        });
        Ok(Weights::new(weights.collect::<Result<Vec<_>, _>>()?))
    }
}

/// Returns the tensor in libtorch's preferred memory layout. Convolution kernels are stored
/// channels-last, which avoids a conversion in every evaluation.
fn laid_out(tensor: &Tensor) -> Tensor {
    match tensor.dim() {
        4 => tensor
            .permute([0, 2, 3, 1])
            .contiguous()
            .permute([0, 3, 1, 2]),
        _ => tensor.contiguous(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Game, Ratings};
    use crate::encode::{Input, WIDTH};
    use crate::network::chessformer::{ModelConfig, PositionConfig};
    use crate::torch::tensor_hash;
    use tch::{CModule, IValue};

    fn small(position: PositionConfig) -> Chessformer {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        (config.layers, config.width) = (2, 32);
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

    /// Returns a network with fresh weights.
    fn fresh(model: Chessformer) -> Network {
        tch::manual_seed(7);
        let flat = model.initial_weights();
        // Without noise, the rating vectors would be zero.
        let flat = &flat + flat.randn_like() * 0.02;
        let about = About {
            correction: None,
            name: "test".to_owned(),
            search_value: "q".to_owned(),
            training: serde_json::json!({ "samples": 0 }),
            licence: "GPL-3.0-or-later".to_owned(),
        };
        Network::new(Box::new(model), &flat, about)
    }

    /// Returns positions along a game, i64 [count, WIDTH].
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
            let network = fresh(small(position.clone()));
            let path = folder.path().join("test.pt");
            let written = network.write(ExportPrecision::F32, &path).unwrap();
            let takes_ratings = written.planes().unwrap().reads_ratings();
            assert_eq!(takes_ratings, position == PositionConfig::Absolute);
            let names = network.architecture.interface().outputs;
            let opened = open(&std::fs::read(&path).unwrap(), CodePolicy::Checked).unwrap();
            let reloaded = CModule::load(&path).unwrap();
            for batch in [1, 7, 64] {
                let rows = rows(batch);
                let expected = network.forward(Positions::Rows(&rows));
                let again = opened.forward(Positions::Rows(&rows));
                assert!(
                    expected
                        .iter()
                        .zip(&again)
                        .all(|(left, right)| left.equal(right))
                );
                let IValue::Tuple(found) = reloaded.forward_is(&[IValue::Tensor(rows)]).unwrap()
                else {
                    panic!("not a tuple");
                };
                assert_eq!(found.len(), names.len());
                for ((name, expected), found) in names.iter().zip(expected).zip(found) {
                    let IValue::Tensor(found) = found else {
                        panic!("not a tensor");
                    };
                    assert_eq!(found.size(), expected.size(), "{name:?}");
                    let off = (found - expected).abs().max().double_value(&[]);
                    assert!(off < 1e-4, "{name:?} is off by {off} at batch {batch}");
                }
            }
        }
    }

    #[test]
    fn metadata_and_names_are_in_the_file() {
        let network = fresh(small(gab()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.pt");
        let written = network.write(ExportPrecision::Fp16, &path).unwrap();
        let module = CModule::load(&path).unwrap();
        let IValue::String(json) = module.method_is::<IValue>("meta", &[]).unwrap() else {
            panic!("not a string");
        };
        assert_eq!(Metadata::parse(&json).unwrap(), written);
        let named = module.named_parameters().unwrap();
        assert_eq!(named.len(), network.architecture.parameters().len());
        for parameter in network.architecture.parameters() {
            let (_, tensor) = named
                .iter()
                .find(|(name, _)| *name == parameter.name)
                .unwrap();
            assert_eq!(tensor.kind(), Kind::Half, "{}", parameter.name);
            assert_eq!(tensor.size(), parameter.shape);
        }
        let buffers = network.architecture.buffers();
        assert_eq!(tensor_hash(named.into_iter().chain(buffers)), written.hash);
    }

    #[test]
    fn names_the_path_that_cannot_be_written() {
        let network = fresh(small(gab()));
        let path = Path::new("no-such-folder/net.pt");
        let error = network.write(ExportPrecision::Fp16, path).unwrap_err();
        assert!(error.to_string().contains("no-such-folder"));
    }
}
