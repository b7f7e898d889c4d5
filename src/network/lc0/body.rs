//! Attention bodies, which turn squares into tokens and process them with encoder layers.

use crate::network::config::lc0::{
    AttentionBody, EncoderConfig, Lc0Config, SmolgenConfig, SquareEmbedding,
};
use crate::network::encoder::{
    Attention, Board, EncoderLayer, FeedForward, GAB_EPSILON, Gab, PositionEncoding, Projection,
    encode,
};
use crate::network::layers::{Activation, Linear, Norm};
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::planes::PLANES;
use crate::network::size::Part;
use crate::network::taps::Tap;
use tch::Tensor;

/// Epsilon of the norms in dense embeddings and in the layers that follow them.
const EPSILON: f64 = 1e-3;
/// Epsilon of all other norms.
const SMALL_EPSILON: f64 = 1e-6;

/// Number of piece planes of the current position, which the dense embedding reads.
const PIECES: i64 = 12;

/// An encoder over the 64 squares.
#[derive(Debug)]
pub(super) struct Body {
    embedding: Embedding,
    /// The weights that generate biases, which all smolgens share.
    pub generator: Option<Slot>,
    /// The encoder layers.
    pub layers: Vec<EncoderLayer>,
}

/// Embeds the squares' features into tokens.
#[derive(Debug)]
struct Embedding {
    activation: Activation,
    project: Linear,
    /// The scale and shift of each feature of each square, [width, 64].
    gates: Option<[Slot; 2]>,
    /// The features of the whole board and the layers that follow. Present only in dense
    /// embeddings.
    dense: Option<DenseEmbedding>,
}

#[derive(Debug)]
struct DenseEmbedding {
    board: Linear,
    features: i64,
    norm: Norm,
    feed_forward: FeedForward,
}

/// Settings common to all encoder layers of a stack.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Scale of a block's output before it is added to the residual.
    pub gain: f64,
    /// Epsilon of the norms.
    pub epsilon: f64,
    pub smolgen_activation: Activation,
    pub feed_forward_activation: Activation,
    /// The weights that generate biases, which all smolgens share.
    pub generator: Option<Slot>,
    pub part: Part,
}

impl Style {
    /// Returns the style of a policy's encoder layers, which Lc0 introduced before attention
    /// bodies.
    pub fn of_policy(config: &Lc0Config, generator: Option<Slot>, part: Part) -> Style {
        let (_, feed_forward_activation) = config.policy_activations();
        let body = config.attention.as_ref();
        Style {
            gain: 1.0,
            epsilon: SMALL_EPSILON,
            smolgen_activation: body.map_or(Activation::None, |body| body.smolgen_activation),
            feed_forward_activation,
            generator,
            part,
        }
    }
}

impl Body {
    pub fn build(builder: &mut Builder, config: &Lc0Config, body: AttentionBody) -> Body {
        let encoder = &body.encoder;
        let is_dense = matches!(body.embedding, SquareEmbedding::Dense { .. });
        let mut style = Style {
            // DeepNorm's gain, applied to the branch instead of the residual.
            gain: (2.0 * encoder.layers as f64).powf(-0.25),
            epsilon: if is_dense { EPSILON } else { SMALL_EPSILON },
            smolgen_activation: body.smolgen_activation,
            feed_forward_activation: body.feed_forward_activation,
            generator: None,
            part: Part::Main,
        };
        let input = config.tower.map_or(PLANES, |tower| tower.filters);
        let embedding = builder.scope("embedding", |builder| {
            Embedding::build(builder, config.activation, &body, style, input)
        });
        style.generator = encoder.smolgen.map(|smolgen| {
            let shape = [64 * 64, smolgen.generator];
            let deviation = (2.0 / (64 * 64 + smolgen.generator) as f64).sqrt();
            builder.count_macs(encoder.layers * encoder.heads * shape[0] * shape[1]);
            builder.add_matrix("smolgen.weight", &shape, Initial::Normal(deviation), true)
        });
        builder.count_macs(encoder.layers * 2 * 64 * 64 * encoder.attention);
        Body {
            embedding,
            generator: style.generator,
            layers: build_encoder(builder, encoder, body.width, style),
        }
    }

    /// Returns tokens [B, 64, width] computed from planes or from a tower's output. Embeddings of
    /// the kind `map` require `reach`.
    pub fn forward(
        &self,
        weights: &Weights,
        x: &Tensor,
        reach: Option<&Tensor>,
        tap: &Tap,
    ) -> Tensor {
        let tokens = self.embedding.forward(weights, x, reach);
        tap.give("embedding", &tokens);
        encode(&self.layers, weights, tokens, Board::default(), tap)
    }
}

impl Embedding {
    fn build(
        builder: &mut Builder,
        activation: Activation,
        body: &AttentionBody,
        style: Style,
        input: i64,
    ) -> Embedding {
        let width = body.width;
        let (board, extra) = match body.embedding {
            SquareEmbedding::Tower => (None, 0),
            SquareEmbedding::Map => (None, 64),
            SquareEmbedding::Dense { board, .. } => {
                let dense = Dense::per_board(64 * PIECES, 64 * board);
                (Some(builder.linear("board", dense, Part::Other)), board)
            }
        };
        let dense = Dense::per_token(input + extra, width);
        let project = builder.linear("project", dense, Part::Other);
        let gates = body.gates.then(|| {
            [("multiply", Initial::Ones), ("add", Initial::Zeros)]
                .map(|(name, initial)| builder.add(name, &[width, 64], initial))
        });
        let dense = match (body.embedding, board) {
            (SquareEmbedding::Dense { feed_forward, .. }, Some(board)) => Some(DenseEmbedding {
                board,
                features: extra,
                norm: builder.norm("norm", width, true, EPSILON),
                feed_forward: build_feed_forward(builder, width, feed_forward, style),
            }),
            _ => None,
        };
        Embedding {
            activation,
            project,
            gates,
            dense,
        }
    }

    fn forward(&self, weights: &Weights, x: &Tensor, reach: Option<&Tensor>) -> Tensor {
        let wide = match (&self.dense, reach) {
            (Some(dense), _) => {
                let pieces = x.narrow(2, 0, PIECES).flatten(1, 2);
                let seen = dense.board.forward(weights, &pieces);
                Tensor::cat(&[x, &seen.view([-1, 64, dense.features])], 2)
            }
            (None, Some(reach)) => {
                // Addition expands `reach` to the batch. Expanding to a size would trace the size
                // as a constant.
                let zeros = x.narrow(1, 0, 1).narrow(2, 0, 1).zeros_like();
                let reach = weights.made("reach", self.project.weight, || reach.type_as(x));
                Tensor::cat(&[x, &(zeros + reach)], 2)
            }
            (None, None) => x.shallow_clone(),
        };
        let projected = self.project.forward(weights, &wide);
        let mut tokens = self.activation.forward(&projected);
        if let Some(dense) = &self.dense {
            tokens = dense.norm.forward(weights, &tokens);
        }
        if let Some(gates) = self.gates {
            let [multiply, add] = gates.map(|gate| weights[gate].transpose(0, 1));
            tokens = tokens * multiply + add;
        }
        match &self.dense {
            Some(dense) => dense
                .feed_forward
                .forward(weights, &tokens, &Tap::default()),
            None => tokens,
        }
    }
}

/// Builds a stack of encoder layers over tokens of this width.
pub(super) fn build_encoder(
    builder: &mut Builder,
    config: &EncoderConfig,
    width: i64,
    style: Style,
) -> Vec<EncoderLayer> {
    let layer = |builder: &mut Builder| {
        let (projection, output, norm) = builder.scope("attention", |builder| {
            let inner = Dense::per_token(width, config.attention);
            let projections = ["query", "key", "value"];
            (
                projections.map(|name| builder.linear(name, inner, style.part)),
                builder.linear(
                    "output",
                    Dense::per_token(config.attention, width),
                    style.part,
                ),
                builder.norm("norm", width, true, style.epsilon),
            )
        });
        let position = match (config.smolgen, style.generator) {
            (Some(smolgen), Some(generator)) => {
                PositionEncoding::Gab(builder.scope("smolgen", |builder| {
                    build_smolgen(builder, smolgen, config.heads, width, style, generator)
                }))
            }
            _ => PositionEncoding::None,
        };
        EncoderLayer {
            attention: Attention {
                heads: config.heads,
                head_width: config.attention / config.heads,
                residual_gain: style.gain,
                projection: Projection::Separate(projection),
                output,
                norm,
                position,
            },
            feed_forward: build_feed_forward(builder, width, config.feed_forward, style),
        }
    };
    (0..config.layers)
        .map(|number| builder.hidden(|builder| builder.scope(format!("encoder.{number}"), layer)))
        .collect()
}

fn build_feed_forward(builder: &mut Builder, width: i64, wide: i64, style: Style) -> FeedForward {
    builder.scope("feed_forward", |builder| FeedForward {
        widen: builder.linear("widen", Dense::per_token(width, wide), style.part),
        activation: style.feed_forward_activation,
        narrow: builder.linear("narrow", Dense::per_token(wide, width), style.part),
        norm: builder.norm("norm", width, true, style.epsilon),
        residual_gain: style.gain,
    })
}

fn build_smolgen(
    builder: &mut Builder,
    config: SmolgenConfig,
    heads: i64,
    width: i64,
    style: Style,
    generator: Slot,
) -> Gab {
    let SmolgenConfig {
        compress,
        hidden,
        generator: wide,
    } = config;
    let squares = Dense::per_token(width, compress).without_bias();
    let summary = Dense::per_board(64 * compress, hidden);
    let generated = heads * wide;
    Gab {
        wide,
        activation: style.smolgen_activation,
        squares: Some(builder.linear("squares", squares, Part::Other)),
        summary: builder.linear("summary", summary, Part::Other),
        summary_norm: builder.norm("summary_norm", hidden, true, GAB_EPSILON),
        heads_of: builder.linear("heads", Dense::per_board(hidden, generated), Part::Other),
        heads_norm: builder.norm("heads_norm", generated, true, GAB_EPSILON),
        generator,
    }
}
