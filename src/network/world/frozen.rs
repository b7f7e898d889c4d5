//! World models frozen for play.

use super::{Past, RuleLogits, WorldConfigError, WorldModel};
use crate::network::outputs::{Output, OutputSet, Outputs};
use crate::network::parameters::Weights;
use crate::torch::{ComputeType, InferenceMode};
use tch::{Device, Kind, Tensor};

/// The outputs of the encoder's heads that a search reads.
const READ: [Output; 5] = [
    Output::Policy,
    Output::Wdl,
    Output::Q,
    Output::QError,
    Output::MovesLeft,
];

/// A world model on a device, frozen for play. A board is stored as one tensor [1 + 2 · blocks,
/// squares, width] that contains the latents and, if a step computed the board, the step's key and
/// value in each block.
#[derive(Debug)]
pub struct FrozenWorld {
    /// The model's structure.
    pub world: WorldModel,
    weights: Weights,
    device: Device,
}

// SAFETY: threads only read the model's tensors, whose reference counts are atomic. A lock protects
// the derived values.
unsafe impl Sync for FrozenWorld {}

/// The network's outputs for B boards.
#[derive(Debug)]
pub struct Seen {
    /// The boards in stored form, [B, 1 + 2 · blocks, squares, width].
    pub kept: Tensor,
    /// The outputs of the encoder's heads: policy, values and moves left.
    pub outputs: Outputs,
    /// The predicted rules.
    pub rules: RuleLogits,
}

impl FrozenWorld {
    /// Freezes a world model and its weights in this dtype on a device, ready to play.
    ///
    /// # Errors
    /// [`WorldConfigError`] if the model's sizes do not fit each other.
    pub fn new(
        world: &WorldModel,
        weights: &Weights,
        dtype: ComputeType,
        device: Device,
    ) -> Result<FrozenWorld, WorldConfigError> {
        let world = WorldModel::new(&world.config, device)?;
        Ok(FrozenWorld {
            world,
            weights: weights.frozen(dtype, device),
            device,
        })
    }

    /// Returns the dtype of stored boards.
    pub fn kind(&self) -> Kind {
        self.weights.kind()
    }

    /// Returns the shape of a stored board.
    pub fn shape(&self) -> [i64; 3] {
        let config = &self.world.config;
        let [squares, width] = config.latents();
        [1 + 2 * config.blocks, squares, width]
    }

    /// Encodes and evaluates true positions, given as rows i64 [B, words].
    pub fn look(&self, rows: &Tensor) -> Seen {
        let _inference = InferenceMode::begin();
        let rows = rows.to_device(self.device);
        let tokens = self.world.encode(&self.weights, &rows);
        let latents = self.world.fuse(&self.weights, &tokens);
        let [parts, squares, width] = self.shape();
        let options = (self.kind(), self.device);
        let none = Tensor::zeros([rows.size()[0], parts - 1, squares, width], options);
        self.seen(&tokens, &Tensor::cat(&[latents.unsqueeze(1), none], 1))
    }

    /// Advances latents [B, squares, width] by one move each and evaluates the results. The moves
    /// are policy indices i64 `[B]`. `past` contains the keys and values of T earlier steps, oldest
    /// first, [2 · blocks, B, squares, T, width], in the view of the side to move after these
    /// moves. `absent`, bool [B, T], marks missing steps. T may be 0.
    pub fn step(&self, latents: &Tensor, past: &Tensor, absent: &Tensor, moves: &Tensor) -> Seen {
        let _inference = InferenceMode::begin();
        let send = |tensor: &Tensor| tensor.to_device(self.device);
        let heads = self.world.config.encoder.heads;
        let mut past = match past.size()[3] {
            0 => self.world.past(),
            _ => Past::of_kept(&send(past), &send(absent), heads),
        };
        let next = self
            .world
            .step(&self.weights, &send(latents), &send(moves), &mut past);
        let kept = Tensor::cat(&[&next.unsqueeze(1), &past.newest()], 1);
        self.seen(&self.world.expand(&self.weights, &next), &kept)
    }

    fn seen(&self, tokens: &Tensor, kept: &Tensor) -> Seen {
        let wanted: OutputSet = READ.into_iter().collect();
        Seen {
            kept: kept.to_device(Device::Cpu).contiguous(),
            outputs: self.world.evaluate(&self.weights, tokens, wanted),
            rules: self.world.rules(&self.weights, tokens),
        }
    }
}
