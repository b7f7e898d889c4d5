//! The sizes of a move-token GPT.

use super::chessformer::NormKind;
use crate::encode::Vocabulary;
use crate::serde_default::number;
use serde::{Deserialize, Serialize};

/// Upper bound on every size, so that products of sizes do not overflow.
const LARGEST: i64 = 1 << 16;
const DEEPEST: i64 = 1 << 10;

/// The sizes of a move-token GPT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GptConfig {
    /// The kind of tokens.
    #[serde(default)]
    pub vocabulary: VocabularyConfig,
    /// Number of layers.
    pub layers: i64,
    /// Width of a token.
    pub width: i64,
    /// Number of attention heads, which must divide the width.
    pub heads: i64,
    /// Number of hidden features in a layer's feed-forward network.
    pub feed_forward: i64,
    /// Maximum number of tokens that the network reads, including the start token.
    #[serde(default = "number::<512, _>")]
    pub context: i64,
    /// The norm before each block.
    #[serde(default)]
    pub norm: NormKind,
    /// The position encoding of tokens.
    #[serde(default)]
    pub positions: PositionKind,
    /// The feed-forward network.
    #[serde(default)]
    pub mlp: MlpKind,
    /// Whether the token embedding also serves as the output layer.
    #[serde(default)]
    pub tied: bool,
    /// Whether the network predicts the result at each ply.
    #[serde(default = "default_outcome")]
    pub outcome: bool,
    /// Whether the network predicts the board at each ply. This helps it to learn the rules and
    /// reveals its knowledge of the board, but play does not use the prediction.
    #[serde(default)]
    pub board: bool,
}

fn default_outcome() -> bool {
    true
}

/// The kind of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VocabularyConfig {
    /// Moves in UCI notation. A token's embedding is the sum of the embeddings of its origin
    /// square, destination square and promotion.
    #[default]
    Uci,
    /// The listed moves, in standard algebraic notation.
    San(Vec<String>),
}

/// The position encoding of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionKind {
    /// Queries and keys are rotated by angles proportional to the position.
    #[default]
    Rotary,
    /// Each position has an embedding, as in GPT-2.
    Learned,
}

/// The feed-forward network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MlpKind {
    /// One half of the hidden features gates the other.
    #[default]
    SwiGlu,
    /// GELU, as in GPT-2.
    Gelu,
}

/// Why the sizes of a GPT are invalid.
#[derive(Debug, thiserror::Error)]
pub enum GptConfigError {
    /// A size is out of range.
    #[error("its {field} is {value}, but must be in {least}…{most}")]
    OutOfRange {
        /// The field of [`GptConfig`].
        field: &'static str,
        /// The field's value.
        value: i64,
        /// The minimum.
        least: i64,
        /// The maximum.
        most: i64,
    },
    /// The heads do not divide the width.
    #[error("its width ({width}) is not an even multiple of its heads ({heads})")]
    Heads {
        /// Width of a token.
        width: i64,
        /// Number of attention heads.
        heads: i64,
    },
    /// The moves do not form a vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] crate::encode::VocabularyError),
}

impl GptConfig {
    /// Checks the sizes and returns the vocabulary.
    ///
    /// # Errors
    /// [`GptConfigError`], which names the field.
    pub fn check(&self) -> Result<Vocabulary, GptConfigError> {
        let sizes = [
            ("layers", self.layers, 1, DEEPEST),
            ("width", self.width, 1, LARGEST),
            ("heads", self.heads, 1, LARGEST),
            ("feed_forward", self.feed_forward, 1, LARGEST),
            ("context", self.context, 2, LARGEST),
        ];
        for (field, value, least, most) in sizes {
            if !(least..=most).contains(&value) {
                return Err(GptConfigError::OutOfRange {
                    field,
                    value,
                    least,
                    most,
                });
            }
        }
        // Rotation acts on pairs of features.
        if self.width % (2 * self.heads) != 0 {
            return Err(GptConfigError::Heads {
                width: self.width,
                heads: self.heads,
            });
        }
        Ok(match &self.vocabulary {
            VocabularyConfig::Uci => Vocabulary::Uci,
            VocabularyConfig::San(moves) => Vocabulary::san(moves.iter().cloned())?,
        })
    }
}
