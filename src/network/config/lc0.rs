//! The sizes and parts of an Lc0 network.

use crate::network::layers::Activation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of move channels in a convolutional policy.
const MOVE_CHANNELS: i64 = 73;

/// A residual tower of 3 × 3 convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tower {
    /// Number of residual blocks with two convolutions each.
    pub blocks: i64,
    /// Number of channels per convolution.
    pub filters: i64,
    /// Width of the squeeze-and-excitation units, if the blocks have them.
    pub squeeze: Option<i64>,
}

/// The generator of attention biases from the board (Lc0's smolgen).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmolgenConfig {
    /// Number of features kept per square.
    pub compress: i64,
    /// Width of the board summary.
    pub hidden: i64,
    /// Width of the vector from which each head's 64 × 64 biases are generated. All layers share
    /// the generating weights.
    pub generator: i64,
}

/// A stack of encoder layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderConfig {
    /// Number of layers.
    pub layers: i64,
    /// Number of attention heads.
    pub heads: i64,
    /// Total width of the queries, keys and values of all heads.
    pub attention: i64,
    /// Width of the feed-forward blocks.
    pub feed_forward: i64,
    /// The generator of attention biases, if any.
    pub smolgen: Option<SmolgenConfig>,
}

/// The input of an attention body, per square.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SquareEmbedding {
    /// The output of the preceding tower.
    Tower,
    /// The planes, and for each other square whether a queen or a knight can reach it from this
    /// square.
    Map,
    /// The planes, and features computed from all pieces on the board. A feed-forward block
    /// follows.
    Dense {
        /// The number of features computed from all pieces.
        board: i64,
        /// Width of the feed-forward block.
        feed_forward: i64,
    },
}

/// An encoder over the 64 squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionBody {
    /// Width of a token.
    pub width: i64,
    /// The input that becomes a token.
    pub embedding: SquareEmbedding,
    /// Whether each feature of each square is scaled and shifted after the embedding.
    pub gates: bool,
    /// The layers.
    pub encoder: EncoderConfig,
    /// Activation inside smolgen.
    pub smolgen_activation: Activation,
    /// Activation inside feed-forward blocks.
    pub feed_forward_activation: Activation,
}

/// The policy used in play.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum PolicyHead {
    /// The search's policy.
    #[default]
    Vanilla,
    /// Moves that turned out better than expected.
    Optimistic,
    /// The search's policy, flattened.
    Soft,
    /// The opponent's reply.
    Opponent,
}

impl PolicyHead {
    /// Returns the head's name in options and in the names of tensors.
    pub fn name(self) -> &'static str {
        match self {
            PolicyHead::Vanilla => "vanilla",
            PolicyHead::Optimistic => "optimistic",
            PolicyHead::Soft => "soft",
            PolicyHead::Opponent => "opponent",
        }
    }
}

/// The value that ranks moves.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum ValueHead {
    /// The result of the game.
    #[default]
    Winner,
    /// The search's value.
    Q,
    /// The value a few moves later.
    St,
}

impl ValueHead {
    /// Returns the head's name in options and in the names of tensors.
    pub fn name(self) -> &'static str {
        match self {
            ValueHead::Winner => "winner",
            ValueHead::Q => "q",
            ValueHead::St => "st",
        }
    }
}

/// The kind of a policy head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum PolicyHeadConfig {
    /// A projection to a few channels, then one dense layer over the board.
    Classical {
        /// The number of channels.
        channels: i64,
    },
    /// Two convolutions, the second with a channel for each direction and distance of moves.
    Convolutional {
        /// Number of channels of the second convolution. The first 73 are moves.
        channels: i64,
    },
    /// Attention from a move's origin square to its destination square.
    Attention {
        /// Width of the head's own embedding, if it does not use the shared one.
        embedding: Option<i64>,
        /// The head's own encoder layers, if any.
        encoder: Option<EncoderConfig>,
        /// Width of queries and keys.
        width: i64,
    },
}

/// The policies of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// Width of the embedding that the heads share.
    pub embedding: Option<i64>,
    /// The heads.
    pub heads: BTreeMap<PolicyHead, PolicyHeadConfig>,
}

impl PolicyConfig {
    /// Returns the heads' own encoders.
    pub(crate) fn encoders(&self) -> impl Iterator<Item = (PolicyHead, EncoderConfig)> {
        self.heads.iter().filter_map(|(&name, head)| match head {
            PolicyHeadConfig::Attention { encoder, .. } => Some((name, (*encoder)?)),
            _ => None,
        })
    }
}

/// The kind of a value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueHeadConfig {
    /// Number of features that the head reads per square.
    pub features: i64,
    /// Width of the head's hidden layer.
    pub hidden: i64,
    /// Whether the head outputs win, draw and loss instead of only the value.
    pub wdl: bool,
    /// Whether the head also predicts the squared error of its value.
    pub error: bool,
    /// Number of buckets of the head's categorical value, if any.
    pub buckets: Option<i64>,
}

/// The kind of the moves-left head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovesLeftConfig {
    /// Number of features that the head reads per square.
    pub features: i64,
    /// Width of the head's hidden layer.
    pub hidden: i64,
}

/// Why an architecture is not a valid Lc0 network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lc0ConfigError {
    /// The combination of parts is invalid or not supported.
    #[error("Lc0 networks with {0} are not supported")]
    Unsupported(String),
    /// The network lacks this head.
    #[error("the network has no {kind} head `{name}`; it has: {known}")]
    NoHead {
        /// `policy` or `value`.
        kind: &'static str,
        /// The requested name.
        name: String,
        /// The available heads.
        known: String,
    },
}

/// The architecture of an Lc0 network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lc0Config {
    /// The encoding of positions: Lc0's format number.
    pub input_format: u32,
    /// The default activation.
    pub activation: Activation,
    /// The residual tower, if any.
    pub tower: Option<Tower>,
    /// The encoder, if any. A network has a tower, an encoder, or a tower followed by an encoder.
    pub attention: Option<AttentionBody>,
    /// The policies.
    pub policy: PolicyConfig,
    /// The values.
    pub value: BTreeMap<ValueHead, ValueHeadConfig>,
    /// The moves-left head, if any.
    pub moves_left: Option<MovesLeftConfig>,
}

impl Lc0Config {
    /// Returns the number of features per square that the heads read.
    pub fn width(&self) -> i64 {
        match (&self.attention, &self.tower) {
            (Some(body), _) => body.width,
            (None, Some(tower)) => tower.filters,
            (None, None) => 0,
        }
    }

    /// Returns the number of layers in the body and in the encoders of the policies.
    pub(crate) fn layers(&self) -> i64 {
        let tower = self.tower.map_or(0, |tower| tower.blocks);
        let body = self.attention.map_or(0, |body| body.encoder.layers);
        let policies = self.policy.encoders().map(|(_, encoder)| encoder.layers);
        tower + body + policies.sum::<i64>()
    }

    /// Checks that the parts of the network fit together, apart from their shapes.
    ///
    /// # Errors
    /// [`Lc0ConfigError::Unsupported`], which names the part that does not fit.
    pub(crate) fn check(&self) -> Result<(), Lc0ConfigError> {
        let body = self.attention.as_ref();
        let reads_tower = body.is_some_and(|body| body.embedding == SquareEmbedding::Tower);
        let bodies = match (&self.tower, body) {
            (None, None) => Err("neither tower nor attention body"),
            (tower, Some(_)) if tower.is_some() != reads_tower => {
                Err("a tower that the attention body does not read")
            }
            _ => Ok(()),
        };
        let heads = self.policy.heads.values();
        let kind = |head: &PolicyHeadConfig| std::mem::discriminant(head);
        let mut kinds = heads.clone().map(kind);
        let first = kinds.next();
        let policies = match kinds.all(|kind| Some(kind) == first) {
            _ if first.is_none() => Err("no policy"),
            false => Err("policies of several kinds"),
            true => Ok(()),
        };
        let channels = heads.clone().all(|head| match head {
            PolicyHeadConfig::Convolutional { channels } => *channels >= MOVE_CHANNELS,
            _ => true,
        });
        let channels = match channels {
            true => Ok(()),
            false => Err("a policy of fewer than 73 channels"),
        };
        let body_encoder = body.map(|body| body.encoder);
        let policies_encoders = self.policy.encoders().map(|(_, encoder)| encoder);
        let mut encoders = policies_encoders.chain(body_encoder);
        let divided =
            encoders.all(|encoder| encoder.heads >= 1 && encoder.attention % encoder.heads == 0);
        let divided = match divided {
            true => Ok(()),
            false => Err("attention heads that do not share their features evenly"),
        };
        let generates = |encoder: &EncoderConfig| encoder.smolgen.is_some();
        let has_generator = body.is_some_and(|body| generates(&body.encoder));
        let generated = match self
            .policy
            .encoders()
            .any(|(_, encoder)| generates(&encoder))
        {
            true if !has_generator => Err("smolgen in a policy's encoder alone"),
            _ => Ok(()),
        };
        [bodies, policies, channels, divided, generated]
            .into_iter()
            .collect::<Result<(), &str>>()
            .map_err(|what| Lc0ConfigError::Unsupported(what.to_owned()))
    }

    /// Returns the activation of the attention policy's embedding, and that of the feed-forward
    /// blocks in the policy's encoder. Attention policies on towers use SELU.
    pub(crate) fn policy_activations(&self) -> (Activation, Activation) {
        match &self.attention {
            Some(body) => (self.activation, body.feed_forward_activation),
            None => (Activation::Selu, Activation::Selu),
        }
    }
}
