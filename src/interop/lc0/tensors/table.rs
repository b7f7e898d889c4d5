//! The location of each tensor in Lc0's messages. Fields are listed by number, each with our name.

/// The fields of a message.
pub(super) type Message = &'static [(u32, &'static str, Field)];

/// The type of a field.
pub(super) enum Field {
    Tensor,
    /// The weights of a dense layer, convolution or norm; the next field contains the biases.
    Pair,
    Number,
    One(Message),
    Many(Message),
}
use Field::{Many, Number, One, Pair, Tensor};

/// A convolution and the batch norm after it.
const CONVOLUTION: Message = &[
    (1, "", Pair),
    (3, "bn_means", Tensor),
    // Despite the field's name, these are variances.
    (4, "bn_stddivs", Tensor),
    (5, "bn_gammas", Tensor),
    (6, "bn_betas", Tensor),
];

/// A residual block, with squeeze and excitation by Hu et al. (2018).
const BLOCK: Message = &[
    (1, "conv1", One(CONVOLUTION)),
    (2, "conv2", One(CONVOLUTION)),
    (3, "", One(&[(1, "squeeze", Pair), (3, "excite", Pair)])),
];

const FEED_FORWARD: Message = &[(1, "widen", Pair), (3, "narrow", Pair)];

/// Generates a layer's attention biases from the board.
const SMOLGEN: Message = &[
    (1, "squares.weight", Tensor),
    (2, "summary", Pair),
    (4, "summary_norm", Pair),
    (6, "heads", Pair),
    (8, "heads_norm", Pair),
];

const ATTENTION: Message = &[
    (1, "attention.query", Pair),
    (3, "attention.key", Pair),
    (5, "attention.value", Pair),
    (7, "attention.output", Pair),
    (9, "smolgen", One(SMOLGEN)),
    // Relative position encodings, which Lc0 itself rejects.
    (10, "rpe_q", Tensor),
    (11, "rpe_k", Tensor),
    (12, "rpe_v", Tensor),
];

const LAYER: Message = &[
    (1, "", One(ATTENTION)),
    (2, "attention.norm", Pair),
    (4, "feed_forward", One(FEED_FORWARD)),
    (5, "feed_forward.norm", Pair),
];

/// A policy head, which uses attention or one or two convolutions. The `squares` and `moves` of a
/// classical policy are called `conv2` and `embedding` here.
const POLICY: Message = &[
    (1, "embedding", Pair),
    (3, "query", Pair),
    (5, "key", Pair),
    (7, "promotion.weight", Tensor),
    (8, "encoder", Many(LAYER)),
    (9, "heads", Number),
    (10, "conv1", One(CONVOLUTION)),
    (11, "conv2", One(CONVOLUTION)),
];

/// A value head. It reads attention bodies through `squares`, and towers through `conv`.
const VALUE: Message = &[
    (1, "squares", Pair),
    (3, "hidden", Pair),
    (5, "output", Pair),
    (7, "error", Pair),
    (9, "categorical", Pair),
    (11, "conv", One(CONVOLUTION)),
];

const POLICIES: Message = &[
    (1, "embedding", Pair),
    (3, "vanilla", One(POLICY)),
    (4, "optimistic", One(POLICY)),
    (5, "soft", One(POLICY)),
    (6, "opponent", One(POLICY)),
];

const VALUES: Message = &[
    (1, "winner", One(VALUE)),
    (2, "q", One(VALUE)),
    (3, "st", One(VALUE)),
];

/// All tensors. Files with one policy and one value head store them under `single`; other files use
/// `policy` and `value`.
pub(super) const WEIGHTS: Message = &[
    (1, "input", One(CONVOLUTION)),
    (2, "body", Many(BLOCK)),
    (3, "single.policy.vanilla.conv2", One(CONVOLUTION)),
    (4, "single.policy.embedding", Pair),
    (6, "single.value.winner.conv", One(CONVOLUTION)),
    (7, "single.value.winner.hidden", Pair),
    (9, "single.value.winner.output", Pair),
    (11, "single.policy.vanilla.conv1", One(CONVOLUTION)),
    (12, "moves_left.conv", One(CONVOLUTION)),
    (13, "moves_left.hidden", Pair),
    (15, "moves_left.output", Pair),
    (17, "single.policy.vanilla.query", Pair),
    (19, "single.policy.vanilla.key", Pair),
    (21, "single.policy.vanilla.encoder", Many(LAYER)),
    (22, "single.policy.vanilla.promotion.weight", Tensor),
    (24, "single.policy.vanilla.heads", Number),
    (25, "embedding.project", Pair),
    (27, "encoder", Many(LAYER)),
    (28, "heads", Number),
    (29, "single.value.winner.squares", Pair),
    (31, "moves_left.squares", Pair),
    (33, "embedding.multiply", Tensor),
    (34, "embedding.add", Tensor),
    (35, "smolgen.weight", Tensor),
    (37, "embedding.board", Pair),
    (39, "embedding.norm", Pair),
    (41, "embedding.feed_forward", One(FEED_FORWARD)),
    (42, "embedding.feed_forward.norm", Pair),
    (44, "value", One(VALUES)),
    (45, "policy", One(POLICIES)),
];
