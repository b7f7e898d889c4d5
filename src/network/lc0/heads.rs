//! Policy, value and moves-left heads.

use super::body::{Style, build_encoder};
use super::tower::convolve;
use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::network::config::lc0::{
    Lc0Config, PolicyHead, PolicyHeadConfig, ValueHead, ValueHeadConfig,
};
use crate::network::config::lc0_heads::HeadChoice;
use crate::network::encoder::{Board, EncoderLayer, encode};
use crate::network::layers::{Activation, Linear, activated};
use crate::network::outputs::Output;
use crate::network::parameters::{Builder, Dense, Slot, Weights};
use crate::network::size::Part;
use crate::network::taps::Tap;
use shakmaty::Role;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use tch::{Kind, Tensor};

/// The draw logit of value heads without draws, low enough for a probability of 0.
const NO_DRAW: f64 = -1e4;

/// Returns a move's channel in a convolutional policy. There are 56 channels for queen moves (eight
/// directions, clockwise from straight ahead, with seven distances each), 8 for knight moves
/// (clockwise as well), and 9 for promotions other than to knights (to the left, straight and to
/// the right, each to rook, bishop and queen).
fn channel(from: usize, to: usize, promotion: Option<Role>) -> usize {
    const DIRECTIONS: [(i32, i32); 8] = [
        (0, 1),
        (1, 1),
        (1, 0),
        (1, -1),
        (0, -1),
        (-1, -1),
        (-1, 0),
        (-1, 1),
    ];
    const KNIGHT: [(i32, i32); 8] = [
        (1, 2),
        (2, 1),
        (2, -1),
        (1, -2),
        (-1, -2),
        (-2, -1),
        (-2, 1),
        (-1, 2),
    ];
    let files = to as i32 % 8 - from as i32 % 8;
    let ranks = to as i32 / 8 - from as i32 / 8;
    let piece = match promotion {
        Some(Role::Rook) => Some(0),
        Some(Role::Bishop) => Some(1),
        Some(_) => Some(2),
        None => None,
    };
    if let Some(piece) = piece {
        return 64 + 3 * (files + 1) as usize + piece;
    }
    if let Some(knight) = KNIGHT.iter().position(|&step| step == (files, ranks)) {
        return 56 + knight;
    }
    let step = (files.signum(), ranks.signum());
    let direction = DIRECTIONS.iter().position(|&other| other == step);
    let distance = files.abs().max(ranks.abs()) as usize;
    7 * direction.expect("a queen's move") + distance - 1
}

/// Returns the index of each of the 1858 policy entries among the logits [64, channels] of a
/// convolutional policy: the row is the entry's origin square and the column its channel.
pub(super) fn convolutional_gather(channels: i64) -> Vec<i64> {
    (0..POLICY_SIZE)
        .filter_map(from_square_to_square)
        .map(|(from, to, promotion)| from as i64 * channels + channel(from, to, promotion) as i64)
        .collect()
}

/// The heads of a network.
#[derive(Debug)]
pub(super) struct Heads {
    policies: BTreeMap<PolicyHead, Policy>,
    values: BTreeMap<ValueHead, Value>,
    moves_left: Option<(Summary, Linear)>,
}

/// A policy head.
#[derive(Debug)]
enum Policy {
    Classical {
        activation: Activation,
        squares: Linear,
        moves: Linear,
    },
    Convolutional {
        activation: Activation,
        convolutions: [Linear; 2],
    },
    Attention {
        activation: Activation,
        embedding: Linear,
        encoder: Vec<EncoderLayer>,
        query: Linear,
        key: Linear,
        promotion: Linear,
    },
}

/// A value head.
#[derive(Debug)]
struct Value {
    summary: Summary,
    output: Linear,
    /// Whether the output is win, draw and loss instead of only the value.
    wdl: bool,
    error: Option<Linear>,
    categorical: Option<Linear>,
}

/// Layers that summarise the board as one vector for a head.
#[derive(Debug)]
struct Summary {
    activation: Activation,
    /// Whether tokens come from a tower. If so, channels come first in the weights' layout.
    after_tower: bool,
    squares: Linear,
    hidden: Linear,
}

impl Heads {
    /// Builds the heads. `generator` holds the weights that the body's smolgens share.
    pub fn build(builder: &mut Builder, config: &Lc0Config, generator: Option<Slot>) -> Heads {
        let policies = |builder: &mut Builder| {
            let shared = config.policy.embedding.map(|embedding| {
                let dense = Dense::per_token(config.width(), embedding);
                (builder.linear("embedding", dense, Part::Main), embedding)
            });
            let heads = config.policy.heads.iter().enumerate();
            let build = |(number, (&name, head)): (usize, (&PolicyHead, &PolicyHeadConfig))| {
                // The network's cost includes only the first policy.
                let part = if number == 0 { Part::Main } else { Part::Other };
                let style = Style::of_policy(config, generator, part);
                let policy = builder.scope(name.name(), |builder| {
                    Policy::build(builder, config, head, shared, style)
                });
                (name, policy)
            };
            heads.map(build).collect()
        };
        let policies = builder.hidden(|builder| builder.scope("policy", policies));
        let values = builder.scope("value", |builder| {
            let heads = config.value.iter();
            let build = |(&name, head): (&ValueHead, &ValueHeadConfig)| {
                (
                    name,
                    builder.scope(name.name(), |builder| Value::build(builder, config, head)),
                )
            };
            heads.map(build).collect()
        });
        let moves_left = config.moves_left.map(|head| {
            builder.scope("moves_left", |builder| {
                let summary = Summary::build(builder, config, head.features, head.hidden);
                let output = Dense::per_board(head.hidden, 1);
                (summary, builder.linear("output", output, Part::Other))
            })
        });
        Heads {
            policies,
            values,
            moves_left,
        }
    }
}

impl Heads {
    /// Returns whether a network with these heads has an output.
    pub fn has(&self, choice: HeadChoice, output: Output) -> bool {
        let value = |head| self.values.get(&head);
        let has_policy = |head| self.policies.contains_key(&head);
        let has_error = |value: Option<&Value>| value.is_some_and(|it| it.error.is_some());
        let has_buckets = |value: Option<&Value>| value.is_some_and(|it| it.categorical.is_some());
        match output {
            Output::Policy => has_policy(choice.policy),
            Output::PolicySoft => has_policy(PolicyHead::Soft),
            Output::Wdl => value(choice.value).is_some(),
            Output::Q => {
                value(ValueHead::Q).is_some() || value(ValueHead::Winner).is_some_and(|it| !it.wdl)
            }
            Output::QError => has_error(value(ValueHead::Q)),
            Output::QCategorical => has_buckets(value(ValueHead::Q)),
            Output::ShortTerm => value(ValueHead::St).is_some(),
            Output::ShortTermError => has_error(value(ValueHead::St)),
            Output::ShortTermCategorical => has_buckets(value(ValueHead::St)),
            Output::MovesLeft => self.moves_left.is_some(),
        }
    }
}

impl Policy {
    fn build(
        builder: &mut Builder,
        config: &Lc0Config,
        head: &PolicyHeadConfig,
        shared: Option<(Linear, i64)>,
        style: Style,
    ) -> Policy {
        let (width, part) = (config.width(), style.part);
        match *head {
            PolicyHeadConfig::Classical { channels } => {
                let moves = Dense::per_board(64 * channels, POLICY_SIZE as i64);
                Policy::Classical {
                    activation: config.activation,
                    squares: builder.linear("squares", Dense::per_token(width, channels), part),
                    moves: builder.linear("moves", moves, part),
                }
            }
            PolicyHeadConfig::Convolutional { channels } => Policy::Convolutional {
                activation: config.activation,
                convolutions: [
                    builder.convolution("conv1", width, width, part),
                    builder.convolution("conv2", width, channels, part),
                ],
            },
            PolicyHeadConfig::Attention {
                embedding,
                encoder,
                width: attention,
            } => {
                let own = embedding.map(|embedding| {
                    let dense = Dense::per_token(width, embedding);
                    (builder.linear("embedding", dense, part), embedding)
                });
                let (embedding, embedded) = own.or(shared).expect("checked");
                let (activation, _) = config.policy_activations();
                let encoder = encoder
                    .map(|encoder| build_encoder(builder, &encoder, embedded, style))
                    .unwrap_or_default();
                let dense = Dense::per_token(embedded, attention);
                // The layer is applied only to the squares of the last rank.
                let promotion = Dense::per_token(attention, 4)
                    .with_rows(8)
                    .without_bias()
                    .outer();
                Policy::Attention {
                    activation,
                    embedding,
                    encoder,
                    query: builder.linear("query", dense, part),
                    key: builder.linear("key", dense, part),
                    promotion: builder.linear("promotion", promotion, part),
                }
            }
        }
    }

    /// Returns logits [B, 1858].
    fn forward(&self, reading: &Reading) -> Tensor {
        let (weights, x) = (reading.weights, reading.tokens);
        let logits = match self {
            Policy::Classical {
                activation,
                squares,
                moves,
            } => {
                let squares = activation.forward(&squares.forward(weights, x));
                return moves.forward(weights, &channels_first(&squares));
            }
            Policy::Convolutional {
                activation,
                convolutions: [first, second],
            } => {
                let hidden = activation.forward(&convolve(weights, first, x));
                convolve(weights, second, &hidden).flatten(1, 2)
            }
            Policy::Attention {
                activation,
                embedding,
                encoder,
                query,
                key,
                promotion,
            } => {
                let moves =
                    reading.once(embedding, || activated(weights, x, embedding, *activation));
                let moves = encode(encoder, weights, moves, Board::default(), &Tap::default());
                let (query, key) = (query.forward(weights, &moves), key.forward(weights, &moves));
                pairs_and_promotions(weights, &query, &key, promotion)
            }
        };
        let gather = reading.gather.expect("made for such policies");
        logits.index_select(1, gather)
    }
}

/// Returns logits of the 64 · 64 pairs of squares, followed by 8 · 8 · 3 promotions.
fn pairs_and_promotions(
    weights: &Weights,
    query: &Tensor,
    key: &Tensor,
    promotion: &Linear,
) -> Tensor {
    let scale = 1.0 / (key.size()[2] as f64).sqrt();
    let pairs = query.bmm(&key.transpose(1, 2)) * scale;
    let offsets = promotion.forward(weights, &key.narrow(1, 56, 8));
    // The offset of a promotion is the sum of the piece's own offset and the knight's.
    let offsets = (offsets.narrow(2, 0, 3) + offsets.narrow(2, 3, 1)).unsqueeze(1);
    let promotions = pairs.narrow(1, 48, 8).narrow(2, 56, 8).unsqueeze(3) + offsets;
    Tensor::cat(&[pairs.flatten(1, 2), promotions.flatten(1, 3)], 1)
}

impl Value {
    fn build(builder: &mut Builder, config: &Lc0Config, head: &ValueHeadConfig) -> Value {
        let summary = Summary::build(builder, config, head.features, head.hidden);
        let outputs = if head.wdl { 3 } else { 1 };
        let mut layer = |name, outputs| {
            let dense = Dense::per_board(head.hidden, outputs);
            builder.linear(name, dense, Part::Other)
        };
        Value {
            summary,
            output: layer("output", outputs),
            wdl: head.wdl,
            error: head.error.then(|| layer("error", 1)),
            categorical: head.buckets.map(|buckets| layer("categorical", buckets)),
        }
    }

    /// Returns logits [B, 3] of win, draw and loss. A head without draws gets logits whose W − L
    /// equals its value.
    fn result(&self, reading: &Reading) -> Tensor {
        let output = self.forward(reading, &self.output);
        if self.wdl {
            return output;
        }
        // The value is tanh y = (e^y − e^−y) / (e^y + e^−y).
        Tensor::cat(&[&output, &(output.zeros_like() + NO_DRAW), &-&output], 1)
    }

    /// Returns W − L, `[B]`.
    fn expectation(&self, reading: &Reading) -> Tensor {
        let output = self.forward(reading, &self.output);
        if !self.wdl {
            return output.squeeze_dim(1).tanh();
        }
        let wdl = output.softmax(-1, None::<Kind>);
        wdl.select(1, 0) - wdl.select(1, 2)
    }

    /// Returns the expected squared error, `[B]`, if the head predicts it.
    fn expected_error(&self, reading: &Reading) -> Option<Tensor> {
        let error = self.error.as_ref()?;
        Some(self.forward(reading, error).squeeze_dim(1).sigmoid())
    }

    /// Returns the logits of the value's buckets, if the head has them.
    fn bucket(&self, reading: &Reading) -> Option<Tensor> {
        let categorical = self.categorical.as_ref()?;
        Some(self.forward(reading, categorical))
    }

    fn forward(&self, reading: &Reading, layer: &Linear) -> Tensor {
        reading.once(layer, || {
            layer.forward(reading.weights, &self.summary.forward(reading))
        })
    }
}

impl Summary {
    fn build(builder: &mut Builder, config: &Lc0Config, features: i64, hidden: i64) -> Summary {
        let squares = Dense::per_token(config.width(), features);
        let dense = Dense::per_board(64 * features, hidden);
        Summary {
            activation: config.activation,
            after_tower: config.attention.is_none(),
            squares: builder.linear("squares", squares, Part::Other),
            hidden: builder.linear("hidden", dense, Part::Other),
        }
    }

    fn forward(&self, reading: &Reading) -> Tensor {
        let (weights, activation) = (reading.weights, self.activation);
        reading.once(&self.hidden, || {
            let squares = activated(weights, reading.tokens, &self.squares, activation);
            let flat = match self.after_tower {
                true => channels_first(&squares),
                false => squares.flatten(1, 2),
            };
            activation.forward(&self.hidden.forward(weights, &flat))
        })
    }
}

/// One evaluation of the heads, with its inputs.
pub(super) struct Reading<'a> {
    pub heads: &'a Heads,
    pub choice: HeadChoice,
    pub weights: &'a Weights,
    /// [B, 64, width].
    pub tokens: &'a Tensor,
    /// i64 [1858]: the index of each policy entry in a convolutional or attention policy.
    pub gather: Option<&'a Tensor>,
    /// Results that several outputs share, by the layer that computes them.
    pub known: RefCell<HashMap<Slot, Tensor>>,
}

impl Reading<'_> {
    /// Returns an output in f32, or `None` if the network does not have it.
    pub fn output(&self, output: Output) -> Option<Tensor> {
        let value = |head| self.heads.values.get(&head);
        let winner = value(ValueHead::Winner);
        let q = value(ValueHead::Q);
        let tensor = match output {
            Output::Policy => self.policy(self.choice.policy),
            Output::PolicySoft => self.policy(PolicyHead::Soft),
            Output::Wdl => value(self.choice.value).map(|head| head.result(self)),
            // Without a head `q`, a winner head without draws computes the same output.
            Output::Q => q
                .or(winner.filter(|head| !head.wdl))
                .map(|head| head.expectation(self)),
            Output::QError => q.and_then(|head| head.expected_error(self)),
            Output::QCategorical => q.and_then(|head| head.bucket(self)),
            Output::ShortTerm => value(ValueHead::St).map(|head| head.expectation(self)),
            Output::ShortTermError => {
                value(ValueHead::St).and_then(|head| head.expected_error(self))
            }
            Output::ShortTermCategorical => value(ValueHead::St).and_then(|head| head.bucket(self)),
            Output::MovesLeft => {
                let head = self.heads.moves_left.as_ref();
                head.map(|(summary, output)| {
                    let hidden = summary.forward(self);
                    output.forward(self.weights, &hidden).squeeze_dim(1).relu()
                })
            }
        };
        tensor.map(|tensor| tensor.to_kind(Kind::Float))
    }

    fn policy(&self, head: PolicyHead) -> Option<Tensor> {
        let policy = self.heads.policies.get(&head)?;
        Some(policy.forward(self))
    }

    /// Returns a layer's output, and computes it only in the first call.
    fn once(&self, layer: &Linear, compute: impl FnOnce() -> Tensor) -> Tensor {
        if let Some(known) = self.known.borrow().get(&layer.weight) {
            return known.shallow_clone();
        }
        let tensor = compute();
        let kept = tensor.shallow_clone();
        self.known.borrow_mut().insert(layer.weight, kept);
        tensor
    }
}

/// Flattens [B, 64, channels] channel by channel, as dense layers after convolutions expect.
fn channels_first(x: &Tensor) -> Tensor {
    x.transpose(1, 2).flatten(1, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_entry_has_its_own_channel_and_square() {
        let gather = convolutional_gather(80);
        assert_eq!(gather.len(), POLICY_SIZE);
        let mut distinct = gather.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), POLICY_SIZE);
        assert!(gather.iter().all(|place| place % 80 < 73));
        // The entries are a1a2, e1h1, a7a8, a7a8q and h7h8b.
        assert_eq!(gather[7], 0);
        assert_eq!(gather[103], 4 * 80 + 16);
        assert_eq!(gather[1401], 48 * 80);
        assert_eq!(gather[1792], 48 * 80 + 69);
        assert_eq!(gather[1857], 55 * 80 + 68);
    }
}
