//! A world model: a network that evaluates positions and has learned the effects of moves, so that
//! it can look ahead without knowing the rules.
//!
//! As in MuZero (Schrittwieser et al. 2020), `represent` maps a position to latents, `step` maps
//! latents and a move to the next latents, and `predict` computes the outputs that a search needs.
//! A Chessformer encodes positions as tokens, and the Chessformer's heads read the tokens after any
//! number of steps. Latents either consist of 64 squares or are fused into one token, which is
//! expanded again for the heads. The result of a step is in the view of the side to move after it.
//! As in UniZero (Pu et al. 2024), steps attend to earlier steps, each square to the same square.

mod dynamics;
mod exported;
mod frozen;
mod fusion;
mod grow;
mod heads;
mod past;
mod past_attention;
#[cfg(test)]
mod tests;

pub use super::config::world::{WorldConfig, WorldConfigError, WorldState};
pub use frozen::{FrozenWorld, Seen};
pub use grow::grow;
pub use heads::RuleLogits;
pub use past::Past;

use super::architecture::{Architecture, Evaluator, Interface, Pass, Positions, Structure};
use super::chessformer::Chessformer;
use super::config::ArchitectureConfig;
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Builder, Parameter, Weights};
use super::size::Size;
use super::taps::Tap;
use dynamics::Dynamics;
use fusion::Fusion;
use heads::RuleHeads;
use tch::{Device, Tensor};

/// The structure of a world model.
#[derive(Debug)]
pub struct WorldModel {
    /// The network's configuration.
    pub config: WorldConfig,
    structure: Structure,
    /// The encoder of positions, whose parameters are the network's first ones.
    pub encoder: Chessformer,
    /// The layers that fuse latents into a single token. Absent if latents have 64 squares.
    fusion: Option<Fusion>,
    /// The number of parameters that represent positions, which are the first ones.
    representing: usize,
    dynamics: Dynamics,
    heads: RuleHeads,
}

impl WorldModel {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`WorldConfigError`] if the sizes do not fit each other.
    pub fn new(config: &WorldConfig, device: Device) -> Result<WorldModel, WorldConfigError> {
        config.check()?;
        let encoder = Chessformer::new(&config.encoder, device)?;
        let mut builder = Builder::after(encoder.parameters(), encoder.size());
        let fusion = |builder: &mut Builder| {
            builder.scope("fusion", |builder| Fusion::build(builder, config))
        };
        let fusion = (config.state == WorldState::Token).then(|| builder.hidden(fusion));
        let representing = builder.slots();
        let dynamics = |builder: &mut Builder| {
            builder.scope("dynamics", |builder| {
                Dynamics::build(builder, config, &encoder, device)
            })
        };
        let dynamics = builder.hidden(dynamics);
        let heads = builder.scope("rules", |builder| {
            RuleHeads::build(builder, &config.encoder)
        });
        let stated = ArchitectureConfig::World {
            model: config.clone(),
        };
        let structure = Structure::new(stated, builder);
        Ok(WorldModel {
            config: config.clone(),
            structure: Structure {
                // The operations are those of one evaluation by the encoder.
                size: Size {
                    parameters: structure.size.parameters,
                    ..encoder.size()
                },
                ..structure
            },
            encoder,
            fusion,
            representing,
            dynamics,
            heads,
        })
    }

    /// Returns the parameters that represent positions. They are the network's first parameters,
    /// and those of the encoder are the first among them.
    pub fn representing(&self) -> &[Parameter] {
        &self.structure.parameters[..self.representing]
    }

    /// Returns the encoder's tokens [B, 64, width] for rows i64 [B, words], in the view of the side
    /// to move. `weights` may contain only those of the encoder.
    pub fn encode(&self, weights: &Weights, rows: &Tensor) -> Tensor {
        let positions = Positions::Rows(rows);
        self.encoder.tokens(weights, positions, &Tap::default())
    }

    /// Returns the latents [B, squares, width] for the encoder's tokens [B, 64, width]. Their size
    /// is [`WorldConfig::latents`]. `weights` may contain only those of [`WorldModel::representing`].
    pub fn fuse(&self, weights: &Weights, tokens: &Tensor) -> Tensor {
        match &self.fusion {
            Some(fusion) => fusion.fuse(weights, tokens),
            None => tokens.shallow_clone(),
        }
    }

    /// Returns the latents for rows i64 [B, words].
    pub fn represent(&self, weights: &Weights, rows: &Tensor) -> Tensor {
        self.fuse(weights, &self.encode(weights, rows))
    }

    /// Returns the tokens [B, 64, width] that the heads read, given latents [B, squares, width].
    pub fn expand(&self, weights: &Weights, latents: &Tensor) -> Tensor {
        match &self.fusion {
            Some(fusion) => fusion.expand(weights, latents),
            None => latents.shallow_clone(),
        }
    }

    /// Returns the tokens [B · D, 64, width] that the heads read, given the latents [B, D, squares,
    /// width] of true positions and of the steps after them. `first` contains the encoder's tokens
    /// [B, 64, width] of the true positions.
    pub fn expand_all(&self, weights: &Weights, first: &Tensor, latents: &Tensor) -> Tensor {
        let Some(fusion) = &self.fusion else {
            return latents.flatten(0, 1);
        };
        let later = latents.size()[1] - 1;
        let expanded = fusion.expand(weights, &latents.narrow(1, 1, later).flatten(0, 1));
        let expanded = expanded.unflatten(0, [-1, later]);
        Tensor::cat(&[first.unsqueeze(1), expanded], 1).flatten(0, 1)
    }

    /// Returns an empty cache of earlier steps.
    pub fn past(&self) -> Past {
        Past::new(self.config.blocks, self.config.context)
    }

    /// Returns the latents [B, squares, width] after moves. The moves are policy indices i64 `[B]`
    /// in the mover's view, and the new latents are in the other side's view. The step is added to
    /// `past`.
    pub fn step(
        &self,
        weights: &Weights,
        latents: &Tensor,
        moves: &Tensor,
        past: &mut Past,
    ) -> Tensor {
        let board = self.encoder.board(None);
        self.dynamics.step(weights, latents, moves, past, board)
    }

    /// Returns the outputs of the encoder's heads for tokens [B, 64, width].
    pub fn evaluate(&self, weights: &Weights, tokens: &Tensor, wanted: OutputSet) -> Outputs {
        self.encoder.read_tokens(weights, tokens, wanted)
    }

    /// Predicts the legal moves, the contents of squares and whether the game is over, from tokens
    /// [B, 64, width].
    pub fn rules(&self, weights: &Weights, tokens: &Tensor) -> RuleLogits {
        self.heads
            .forward(weights, tokens, self.encoder.policy_places())
    }
}

/// Evaluates positions with the encoder alone.
impl Evaluator for WorldModel {
    fn interface(&self) -> Interface {
        self.encoder.interface()
    }

    fn has(&self, output: Output) -> bool {
        self.encoder.has(output)
    }

    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs {
        self.encoder.forward(weights, pass)
    }

    fn read(&self, weights: &Weights, tokens: &Tensor, pass: &Pass) -> Outputs {
        self.encoder.read(weights, tokens, pass)
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        self.encoder.without_head(weights, layer, head)
    }
}
