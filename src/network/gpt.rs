//! The move-token GPT, which reads the moves of a game and predicts the next move and the result.
//!
//! The network is a decoder-only transformer with pre-norm blocks. Its options allow the
//! architecture of GPT-2 and that of LLaMA, which has root-mean-square norms, rotary embeddings and
//! gates. Each player's rating interpolates between two vectors, as in Allie (Zhang et al. 2024). A
//! result can be requested.

mod decoder;
mod embedding;
mod exported;
#[cfg(test)]
mod tests;

pub use super::config::gpt::{GptConfig, GptConfigError};
pub use decoder::{Conditions, Decoder};

use super::architecture::Structure;
use super::blocks::{KeyValues, KvCache, Mask, Mlp, Rotary, Rotations, SelfAttention};
use super::config::ArchitectureConfig;
use super::config::chessformer::NormKind;
use super::config::gpt::{MlpKind, PositionKind};
use super::layers::{Linear, Norm};
use super::parameters::{Builder, Dense, Initial, Slot, Weights};
use super::size::Part;
use crate::encode::{MoveEncoder, SQUARE_CLASSES, Vocabulary};
use embedding::{ConditionEmbedding, TokenEmbedding};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Epsilon of the norms, which is PyTorch's default for centred norms.
const NORM_EPSILON: f64 = 1e-5;
/// Initial standard deviation of the position embeddings, as in GPT-2.
const POSITION_DEVIATION: f64 = 0.02;

/// The structure of a move-token GPT.
#[derive(Debug)]
pub struct Gpt {
    /// The network's configuration.
    pub config: GptConfig,
    /// The network's vocabulary.
    pub vocabulary: Arc<Vocabulary>,
    structure: Structure,
    tokens: TokenEmbedding,
    conditions: ConditionEmbedding,
    positions: Positions,
    layers: Vec<Layer>,
    norm: Norm,
    head: Option<Linear>,
    outcome: Option<Linear>,
    board: Option<Linear>,
}

#[derive(Debug)]
enum Positions {
    Rotary(Rotary),
    /// [context, width]
    Learned(Slot),
}

/// A layer, which adds the outputs of attention and then of a feed-forward network. Each of them
/// reads normalised tokens.
#[derive(Debug)]
struct Layer {
    attention_norm: Norm,
    attention: SelfAttention,
    mlp_norm: Norm,
    mlp: Mlp,
}

/// The network's input: B rows of T tokens.
#[derive(Debug)]
pub struct Sequences {
    /// Tokens, i64 [B, T].
    pub tokens: Tensor,
    /// Each token's index in its game, from 0, i64 [B, T].
    pub positions: Tensor,
    /// Ratings of White and Black, 0 if unknown, f32 [B, T, 2] or [B, 1, 2].
    pub ratings: Tensor,
    /// The requested result: 0 for any, 1 if White wins, 2 for a draw, 3 if Black wins; i64 [B, T]
    /// or [B, 1].
    pub results: Tensor,
    /// Number of padding tokens before each row's game, i64 `[B]`. Padding in the cache is
    /// included.
    pub padding: Option<Tensor>,
}

/// Predictions after each token.
#[derive(Debug)]
pub struct Next {
    /// Logits of the next token, [B, T, vocabulary].
    pub tokens: Tensor,
    /// Logits of the result, [B, T, 3]: White wins, draw, Black wins.
    pub outcome: Option<Tensor>,
}

impl Sequences {
    /// Returns rows that contain one whole game each, without padding. The tokens are i64 [B, T],
    /// and ratings and results are unknown.
    pub fn of_tokens(tokens: Tensor) -> Sequences {
        let device = tokens.device();
        let rows = tokens.size()[0];
        Sequences {
            // Positions are computed from the tokens, because a constant would restrict a trace to
            // games of one length.
            positions: tokens.ones_like().cumsum(1, Kind::Int64) - 1,
            ratings: Tensor::zeros([rows, 1, 2], (Kind::Float, device)),
            results: Tensor::zeros([rows, 1], (Kind::Int64, device)),
            tokens,
            padding: None,
        }
    }
}

impl Gpt {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`GptConfigError`] if the sizes do not fit each other.
    pub fn new(config: &GptConfig, device: Device) -> Result<Gpt, GptConfigError> {
        let vocabulary = config.check()?;
        let mut builder = Builder::default();
        let GptConfig { width, context, .. } = *config;
        let tokens = TokenEmbedding::build(&mut builder, &vocabulary, width, device);
        let conditions = ConditionEmbedding::build(&mut builder, width);
        let positions = match config.positions {
            PositionKind::Rotary => Positions::Rotary(Rotary::new(width / config.heads, device)),
            PositionKind::Learned => Positions::Learned(builder.add(
                "positions",
                &[context, width],
                Initial::Normal(POSITION_DEVIATION),
            )),
        };
        let layers = (0..config.layers).map(|number| {
            builder.scope(format!("layers.{number}"), |builder| {
                builder.hidden(|builder| Layer::build(builder, config))
            })
        });
        let layers = layers.collect();
        let norm = norm(&mut builder, "norm", config);
        let dense = |output| Dense::per_board(width, output).without_bias();
        let moves = vocabulary.size() as i64;
        let head = (!config.tied).then(|| builder.linear("head", dense(moves), Part::Main));
        if config.tied {
            builder.count(Part::Main, width * moves);
        }
        let outcome = config
            .outcome
            .then(|| builder.linear("outcome", dense(3), Part::Other));
        // The head's operations are not counted, because play does not need them.
        let classes = 64 * SQUARE_CLASSES as i64;
        let uncounted = dense(classes).with_rows(0);
        let board = config
            .board
            .then(|| builder.linear("board", uncounted, Part::Other));
        let stated = ArchitectureConfig::Gpt {
            model: config.clone(),
        };
        Ok(Gpt {
            config: config.clone(),
            vocabulary: Arc::new(vocabulary),
            structure: Structure::new(stated, builder),
            tokens,
            conditions,
            positions,
            layers,
            norm,
            head,
            outcome,
            board,
        })
    }

    /// Returns the encoder that turns games into the network's input.
    pub fn encoder(&self) -> MoveEncoder {
        MoveEncoder {
            vocabulary: Arc::clone(&self.vocabulary),
            context: self.config.context as usize,
        }
    }

    /// Returns an empty cache for this number of games, in the dtype and on the device of
    /// `weights`. It has an initial capacity of `tokens`.
    pub fn cache(&self, weights: &Weights, games: i64, tokens: i64) -> KvCache {
        let GptConfig { heads, width, .. } = self.config;
        let options = (weights.kind(), weights.tensors()[0].device());
        KvCache::new(
            self.layers.len(),
            [games, heads, tokens, width / heads],
            options,
        )
    }

    /// Returns the features [B, T, width] of each token. With a cache, the tokens follow those in
    /// the cache.
    pub fn features(
        &self,
        weights: &Weights,
        sequences: &Sequences,
        cache: Option<&mut KvCache>,
    ) -> Tensor {
        let past = cache.map(|cache| cache as &mut dyn KeyValues);
        self.read(weights, &self.tokens.table(weights), sequences, past)
    }

    /// Computes the features from precomputed token vectors.
    fn read(
        &self,
        weights: &Weights,
        table: &Tensor,
        sequences: &Sequences,
        mut past: Option<&mut dyn KeyValues>,
    ) -> Tensor {
        let (mut x, rotations) = self.embed(weights, table, sequences);
        let new = sequences.tokens.size()[1];
        let earlier = past.as_ref().map_or(0, |past| past.past());
        let padding = sequences.padding.as_ref();
        let mask = match (padding, earlier) {
            (None, 0) => Mask::Causal,
            (padding, _) if new == 1 => Mask::Cached(padding.map(Tensor::shallow_clone)),
            (padding, earlier) => Mask::Given(seen(padding, [earlier, new], x.device())),
        };
        for (number, layer) in self.layers.iter().enumerate() {
            let past = past.as_deref_mut().map(|past| (past as _, number));
            x = layer.forward(weights, &x, rotations.as_ref(), &mask, past);
        }
        if let Some(past) = past {
            past.grow(new);
        }
        self.norm.forward(weights, &x)
    }

    /// Returns the tokens' vectors [B, T, width] before the first layer, and their rotations.
    fn embed(
        &self,
        weights: &Weights,
        table: &Tensor,
        sequences: &Sequences,
    ) -> (Tensor, Option<Rotations>) {
        let mut x = Tensor::embedding(table, &sequences.tokens, -1, false, false)
            + self
                .conditions
                .of(weights, &sequences.ratings, &sequences.results);
        let rotations = match &self.positions {
            Positions::Rotary(rotary) => Some(rotary.at(&sequences.positions, x.kind())),
            Positions::Learned(slot) => {
                x = &x + Tensor::embedding(&weights[*slot], &sequences.positions, -1, false, false);
                None
            }
        };
        (x, rotations)
    }

    /// Returns, for each layer, its attention weights [B, heads, T, T] and the features [B, T,
    /// width] that the network would have if this layer were the last. Each row must contain a game
    /// from its start.
    pub fn look(&self, weights: &Weights, sequences: &Sequences) -> Vec<[Tensor; 2]> {
        let table = self.tokens.table(weights);
        let (mut x, rotations) = self.embed(weights, &table, sequences);
        let rotations = rotations.as_ref();
        let layers = self.layers.iter().map(|layer| {
            let normed = layer.attention_norm.forward(weights, &x);
            let looks = layer.attention.weights(weights, &normed, rotations);
            x = layer.forward(weights, &x, rotations, &Mask::Causal, None);
            [looks, self.norm.forward(weights, &x)]
        });
        layers.collect()
    }

    /// Predicts the next tokens from the tokens' features.
    pub fn next(&self, weights: &Weights, features: &Tensor) -> Next {
        Next {
            tokens: match &self.head {
                Some(head) => head.forward(weights, features),
                None => features.linear(&self.tokens.table(weights), None::<&Tensor>),
            },
            outcome: self
                .outcome
                .as_ref()
                .map(|outcome| outcome.forward(weights, features)),
        }
    }

    /// Returns logits [B, T, 64, classes] of each square's contents after each token, computed from
    /// the tokens' features, or `None` if the network has no board head. Squares start at a1 and
    /// are in White's view.
    pub fn board(&self, weights: &Weights, features: &Tensor) -> Option<Tensor> {
        let board = self.board.as_ref()?.forward(weights, features);
        Some(board.unflatten(-1, [64, SQUARE_CLASSES as i64]))
    }
}

impl Layer {
    fn build(builder: &mut Builder, config: &GptConfig) -> Layer {
        let sizes = [config.width, config.feed_forward];
        // Each layer has two blocks that add to a token. With this gain, the initial contributions
        // of all blocks together are as small as a single contribution would be without it.
        let gain = 1.0 / (2.0 * config.layers as f64).sqrt();
        Layer {
            attention_norm: norm(builder, "attention_norm", config),
            attention: builder.scope("attention", |builder| {
                SelfAttention::build(builder, config.width, config.heads, config.context, gain)
            }),
            mlp_norm: norm(builder, "mlp_norm", config),
            mlp: builder.scope("mlp", |builder| match config.mlp {
                MlpKind::SwiGlu => Mlp::swiglu(builder, sizes, gain),
                MlpKind::Gelu => Mlp::gelu(builder, sizes, gain),
            }),
        }
    }

    fn forward(
        &self,
        weights: &Weights,
        x: &Tensor,
        rotations: Option<&Rotations>,
        mask: &Mask,
        past: Option<(&mut dyn KeyValues, usize)>,
    ) -> Tensor {
        let normed = self.attention_norm.forward(weights, x);
        let x = x + self
            .attention
            .forward(weights, &normed, rotations, mask, past);
        let normed = self.mlp_norm.forward(weights, &x);
        &x + self.mlp.forward(weights, &normed)
    }
}

/// Returns the attention mask, bool [B or 1, 1, new, all], for `new` tokens after `earlier` tokens.
/// Each row begins with a number of padding tokens, i64 `[B]`. A token attends to itself and to the
/// earlier tokens of its game. A padding token attends to itself, because the softmax over no token
/// is NaN.
fn seen(padding: Option<&Tensor>, [earlier, new]: [i64; 2], device: Device) -> Tensor {
    let columns = |from: i64| Tensor::arange_start(from, earlier + new, (Kind::Int64, device));
    let [places, columns] = [
        columns(earlier).view([1, 1, -1, 1]),
        columns(0).view([1, 1, 1, -1]),
    ];
    let is_before = columns.le_tensor(&places);
    match padding {
        None => is_before,
        Some(padding) => {
            let is_of_game = columns.ge_tensor(&padding.view([-1, 1, 1, 1]));
            is_before.logical_and(&is_of_game.logical_or(&columns.eq_tensor(&places)))
        }
    }
}

fn norm(builder: &mut Builder, name: &str, config: &GptConfig) -> Norm {
    builder.norm(
        name,
        config.width,
        config.norm == NormKind::Layer,
        NORM_EPSILON,
    )
}
