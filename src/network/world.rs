//! A world model: a network that evaluates positions and has learned what moves make of
//! them, so that it can look ahead without being told the rules.
//!
//! As MuZero (Schrittwieser et al. 2020) has it, `represent` makes of a position latent
//! features, `step` those after a move, and `predict` reads off them what a search needs.
//! Positions are seen as the tokens of a Chessformer, whose own heads read them, after any
//! number of steps. Latents stay on their 64 squares, or are one token that the 64 are fused
//! into, which is expanded again for the heads. A step is seen by the side that is to move
//! after it, and attends over the steps before it as UniZero does (Pu et al. 2024), square
//! by square.

pub(super) mod config;
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

pub use config::{WorldConfig, WorldConfigError, WorldState};
pub use frozen::{FrozenWorld, Seen};
pub use grow::grow;
pub use heads::RuleLogits;
pub use past::Past;

use super::architecture::{Architecture, Evaluator, Interface, Positions, Structure};
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
pub struct World {
    config: WorldConfig,
    structure: Structure,
    encoder: Chessformer,
    /// The form of latents as one token.
    fusion: Option<Fusion>,
    /// The number of parameters that represent positions; they come first.
    representing: usize,
    dynamics: Dynamics,
    heads: RuleHeads,
}

impl World {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`WorldConfigError`] if the sizes do not fit each other.
    pub fn new(config: &WorldConfig, device: Device) -> Result<World, WorldConfigError> {
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
        Ok(World {
            config: config.clone(),
            structure: Structure {
                // Operations are those of an evaluation.
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

    /// Returns its configuration.
    #[must_use]
    pub fn model(&self) -> &WorldConfig {
        &self.config
    }

    /// The encoder of positions. Its parameters come first.
    #[must_use]
    pub fn encoder(&self) -> &Chessformer {
        &self.encoder
    }

    /// The parameters that represent positions. They come first, the encoder's before all
    /// others.
    #[must_use]
    pub fn representing(&self) -> &[Parameter] {
        &self.structure.parameters[..self.representing]
    }

    /// The encoder's tokens [B, 64, width] of rows i64 [B, words], as the side to move sees
    /// them. Of the weights those of the encoder are enough.
    pub fn encode(&self, weights: &Weights, rows: &Tensor) -> Tensor {
        let positions = Positions::Rows(rows);
        self.encoder.tokens(weights, positions, &Tap::default())
    }

    /// Latents [B, squares, width], see [`WorldConfig::latents`], of the encoder's tokens
    /// [B, 64, width]. Of the weights those of [`World::representing`] are enough.
    pub fn fuse(&self, weights: &Weights, tokens: &Tensor) -> Tensor {
        match &self.fusion {
            Some(fusion) => fusion.fuse(weights, tokens),
            None => tokens.shallow_clone(),
        }
    }

    /// Latents of rows i64 [B, words]: those of their tokens.
    pub fn represent(&self, weights: &Weights, rows: &Tensor) -> Tensor {
        self.fuse(weights, &self.encode(weights, rows))
    }

    /// Tokens [B, 64, width] of latents [B, squares, width], for the heads.
    pub fn expand(&self, weights: &Weights, latents: &Tensor) -> Tensor {
        match &self.fusion {
            Some(fusion) => fusion.expand(weights, latents),
            None => latents.shallow_clone(),
        }
    }

    /// Tokens [B · D, 64, width] of true positions and what followed, for the heads:
    /// of latents [B, D, squares, width] those of the first boards are known, as the
    /// encoder's tokens [B, 64, width].
    pub fn expand_all(&self, weights: &Weights, first: &Tensor, latents: &Tensor) -> Tensor {
        let Some(fusion) = &self.fusion else {
            return latents.flatten(0, 1);
        };
        let later = latents.size()[1] - 1;
        let expanded = fusion.expand(weights, &latents.narrow(1, 1, later).flatten(0, 1));
        let expanded = expanded.unflatten(0, [-1, later]);
        Tensor::cat(&[first.unsqueeze(1), expanded], 1).flatten(0, 1)
    }

    /// The empty past before a first step.
    #[must_use]
    pub fn past(&self) -> Past {
        Past::new(self.config.blocks, self.config.context)
    }

    /// Latents [B, squares, width] after the moves, entries of the policy i64 `[B]` as the side
    /// sees them that plays them; as the other side sees them. The step is added to the
    /// past.
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

    /// Returns the outputs of the encoder's heads on tokens [B, 64, width].
    pub fn evaluate(&self, weights: &Weights, tokens: &Tensor, wanted: OutputSet) -> Outputs {
        self.encoder.read_tokens(weights, tokens, wanted)
    }

    /// Predicts the rules for tokens [B, 64, width].
    pub fn rules(&self, weights: &Weights, tokens: &Tensor) -> RuleLogits {
        self.heads
            .forward(weights, tokens, self.encoder.policy_places())
    }
}

/// It evaluates positions as its encoder does.
impl Evaluator for World {
    fn interface(&self) -> Interface {
        self.encoder.interface()
    }

    fn has(&self, output: Output) -> bool {
        self.encoder.has(output)
    }

    fn forward(
        &self,
        weights: &Weights,
        positions: Positions,
        wanted: OutputSet,
        tap: &Tap,
    ) -> Outputs {
        self.encoder.forward(weights, positions, wanted, tap)
    }

    fn read(
        &self,
        weights: &Weights,
        tokens: &Tensor,
        positions: Positions,
        wanted: OutputSet,
    ) -> Outputs {
        self.encoder.read(weights, tokens, positions, wanted)
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        self.encoder.without_head(weights, layer, head)
    }
}
