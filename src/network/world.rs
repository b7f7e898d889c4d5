//! A world model: a network that evaluates positions and has learned the effects of moves, so it
//! can look ahead without knowing the rules.
//!
//! As in MuZero (Schrittwieser et al. 2020), `represent` maps a position to latents, `step` maps
//! latents and a move to the next latents, and `predict` computes the outputs that a search needs.
//! A Chessformer encodes positions as tokens, and its own heads read the tokens after any number of
//! steps. Latents either stay on their 64 squares or are fused into one token, which is expanded
//! again for the heads. The result of a step is in the view of the side to move after it. Steps
//! attend to earlier steps as in UniZero (Pu et al. 2024), square by square.

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
    /// The fusion into one token, if the latents are a single token.
    fusion: Option<Fusion>,
    /// The number of parameters that represent positions. They come first.
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
                // Count the operations of one evaluation.
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

    /// Returns the encoder of positions. Its parameters come first.
    #[must_use]
    pub fn encoder(&self) -> &Chessformer {
        &self.encoder
    }

    /// Returns the parameters that represent positions. They come first, starting with the
    /// encoder's.
    #[must_use]
    pub fn representing(&self) -> &[Parameter] {
        &self.structure.parameters[..self.representing]
    }

    /// Returns the encoder's tokens [B, 64, width] for rows i64 [B, words], in the view of the side
    /// to move. Needs only the encoder's weights.
    pub fn encode(&self, weights: &Weights, rows: &Tensor) -> Tensor {
        let positions = Positions::Rows(rows);
        self.encoder.tokens(weights, positions, &Tap::default())
    }

    /// Returns the latents [B, squares, width] for the encoder's tokens [B, 64, width]. See
    /// [`WorldConfig::latents`] for their size. Needs only the weights of [`World::representing`].
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

    /// Returns the tokens [B, 64, width] that the heads read, for latents [B, squares, width].
    pub fn expand(&self, weights: &Weights, latents: &Tensor) -> Tensor {
        match &self.fusion {
            Some(fusion) => fusion.expand(weights, latents),
            None => latents.shallow_clone(),
        }
    }

    /// Returns the tokens [B · D, 64, width] that the heads read for true positions and the steps
    /// after them, from latents [B, D, squares, width]. `first` contains the encoder's tokens
    /// [B, 64, width] for the true positions.
    pub fn expand_all(&self, weights: &Weights, first: &Tensor, latents: &Tensor) -> Tensor {
        let Some(fusion) = &self.fusion else {
            return latents.flatten(0, 1);
        };
        let later = latents.size()[1] - 1;
        let expanded = fusion.expand(weights, &latents.narrow(1, 1, later).flatten(0, 1));
        let expanded = expanded.unflatten(0, [-1, later]);
        Tensor::cat(&[first.unsqueeze(1), expanded], 1).flatten(0, 1)
    }

    /// Returns the empty cache for a first step.
    #[must_use]
    pub fn past(&self) -> Past {
        Past::new(self.config.blocks, self.config.context)
    }

    /// Returns the latents [B, squares, width] after moves, which are policy indices i64 `[B]` in
    /// the mover's view. The new latents are in the other side's view, and the step is added to the
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

    /// Returns the outputs of the encoder's heads for tokens [B, 64, width].
    pub fn evaluate(&self, weights: &Weights, tokens: &Tensor, wanted: OutputSet) -> Outputs {
        self.encoder.read_tokens(weights, tokens, wanted)
    }

    /// Predicts legality, contents and endings from tokens [B, 64, width].
    pub fn rules(&self, weights: &Weights, tokens: &Tensor) -> RuleLogits {
        self.heads
            .forward(weights, tokens, self.encoder.policy_places())
    }
}

/// Evaluates positions with the encoder alone.
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
