//! Lc0 networks: residual towers with squeeze and excitation, attention bodies from T1 to BT4, and
//! their heads.
//!
//! The computations follow the BLAS backend and the ONNX converter of Lc0 0.33.

mod body;
mod heads;
mod tower;

pub use super::config::lc0::{
    AttentionBody, EncoderConfig, Lc0Config, Lc0ConfigError, MovesLeftConfig, PolicyConfig,
    PolicyHead, PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead,
    ValueHeadConfig,
};
pub use super::config::lc0_heads::HeadChoice;
pub(super) use super::planes::{READ, planes};

use super::architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, Pass, Positions, Structure,
};
use super::bitboards;
use super::chessformer::policy_gather;
use super::config::ArchitectureConfig;
use super::encoder::without_head;
use super::evaluator;
use super::exported::ExportedProgram;
use super::outputs::{Output, Outputs};
use super::parameters::{Builder, Weights};
use super::size::Size;
use crate::encode::{POLICY_SIZE, SCALARS, from_square_to_square};
use body::Body;
use heads::Heads;
use std::cell::RefCell;
use tch::{Device, Tensor};
use tower::ResidualTower;

/// The structure of a network that Lc0 can play.
#[derive(Debug)]
pub struct Lc0 {
    /// The network's configuration.
    pub config: Lc0Config,
    choice: HeadChoice,
    structure: Structure,
    constants: Constants,
    tower: Option<ResidualTower>,
    body: Option<Body>,
    heads: Heads,
}

/// Tensors that the forward pass reads in addition to parameters.
#[derive(Debug)]
struct Constants {
    /// u8 0…7.
    shifts: Tensor,
    /// i64 [1858]: the index of each policy entry among the logits of a convolutional or
    /// attention policy.
    policy: Option<Tensor>,
    /// f32 [64, 64], from [`reach`].
    reach: Option<Tensor>,
}

impl Constants {
    fn of(config: &Lc0Config, device: Device) -> Constants {
        let policy = match config.policy.heads.values().next() {
            Some(PolicyHeadConfig::Attention { .. }) => Some(policy_gather()),
            Some(&PolicyHeadConfig::Convolutional { channels }) => {
                Some(heads::convolutional_gather(channels))
            }
            _ => None,
        };
        let has_map = config
            .attention
            .is_some_and(|body| body.embedding == SquareEmbedding::Map);
        Constants {
            shifts: bitboards::shifts().to_device(device),
            policy: policy.map(|policy| Tensor::from_slice(&policy).to_device(device)),
            reach: has_map.then(|| reach().to_device(device)),
        }
    }
}

/// Returns Lc0's position encoding of each square: −1 for the square itself, 1 for squares that a
/// queen or a knight reaches from it, and 0 for all others. The reachable squares are those of
/// policy entries.
fn reach() -> Tensor {
    let mut values = [[0f32; 64]; 64];
    for (from, to, _) in (0..POLICY_SIZE).filter_map(from_square_to_square) {
        values[from][to] = 1.0;
    }
    for (square, row) in values.iter_mut().enumerate() {
        row[square] = -1.0;
    }
    Tensor::from_slice(values.as_flattened()).view([64, 64])
}

impl Lc0 {
    /// Builds the structure that `config` describes, with the heads of `choice`, for weights on
    /// `device`.
    ///
    /// # Errors
    /// [`Lc0ConfigError`] if the network's parts do not fit together or if it lacks the chosen
    /// heads.
    pub fn new(
        config: &Lc0Config,
        choice: HeadChoice,
        device: Device,
    ) -> Result<Lc0, Lc0ConfigError> {
        config.check()?;
        choice.check(config)?;
        let mut builder = Builder::default();
        let tower = config
            .tower
            .map(|tower| ResidualTower::build(&mut builder, tower, config.activation));
        let body = config
            .attention
            .map(|body| Body::build(&mut builder, config, body));
        let generator = body.as_ref().and_then(|body| body.generator);
        let heads = Heads::build(&mut builder, config, generator);
        let stated = ArchitectureConfig::Lc0 {
            model: config.clone(),
            heads: choice,
        };
        Ok(Lc0 {
            constants: Constants::of(config, device),
            config: config.clone(),
            choice,
            structure: Structure::new(stated, builder),
            tower,
            body,
            heads,
        })
    }
}

impl Lc0Config {
    /// Returns the size of a network with this configuration. Only the first of several policies
    /// counts.
    ///
    /// # Errors
    /// [`Lc0ConfigError`] if the network's parts do not fit together.
    pub fn size(&self) -> Result<Size, Lc0ConfigError> {
        let first = HeadChoice {
            policy: self.policy.heads.keys().next().copied().unwrap_or_default(),
            value: self.value.keys().next().copied().unwrap_or_default(),
        };
        Ok(Lc0::new(self, first, Device::Cpu)?.size())
    }
}

impl Architecture for Lc0 {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let all = [
            ("shifts", Some(&self.constants.shifts)),
            ("policy_gather", self.constants.policy.as_ref()),
            ("reach", self.constants.reach.as_ref()),
        ];
        let present = all.into_iter();
        present
            .filter_map(|(name, tensor)| Some((name, tensor?)))
            .collect()
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }
}

impl Evaluator for Lc0 {
    fn interface(&self) -> Interface {
        Interface {
            format: self.config.input_format,
            scalars: SCALARS[..READ].to_vec(),
            outputs: self.exported_outputs(),
            planes: Interface::lc0_planes(),
        }
    }

    fn has(&self, output: Output) -> bool {
        self.heads.has(self.choice, output)
    }

    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs {
        let mut x = match pass.positions {
            Positions::Rows(rows) => {
                let format = self.config.input_format;
                planes(rows, &self.constants.shifts, format, &weights.tensors()[0])
            }
            Positions::Planes(planes) => planes[0].flatten(2, 3).transpose(1, 2),
        };
        if let Some(tower) = &self.tower {
            x = tower.forward(weights, &x, &pass.tap);
        }
        if let Some(body) = &self.body {
            x = body.forward(weights, &x, self.constants.reach.as_ref(), &pass.tap);
        }
        self.read(weights, &x, pass)
    }

    fn read(&self, weights: &Weights, tokens: &Tensor, pass: &Pass) -> Outputs {
        let reading = heads::Reading {
            heads: &self.heads,
            choice: self.choice,
            weights,
            tokens,
            gather: self.constants.policy.as_ref(),
            known: RefCell::default(),
        };
        let mut outputs = Outputs::default();
        let wanted = Output::ALL.into_iter();
        for output in wanted.filter(|&it| pass.wanted.contains(it)) {
            if let Some(tensor) = reading.output(output) {
                outputs.set(output, tensor);
            }
        }
        outputs
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        without_head(&self.body.as_ref()?.layers, weights, layer, head)
    }
}
