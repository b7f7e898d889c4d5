//! Why a game cannot be read.

use std::fmt;

use shakmaty::san::SanError;

use super::expected::MAX_DEPTH;
use crate::chess::FenError;

/// Maximum number of characters of a token that an error shows.
const SHOWN: usize = 40;

/// Why a game was rejected.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    /// The FEN tag is invalid.
    #[error(transparent)]
    Fen(#[from] FenError),
    /// The FEN tag is not text.
    #[error("the FEN tag is not UTF-8")]
    FenTag,
    /// The game is a chess variant with different rules.
    #[error("variant `{0}` is not chess")]
    Variant(String),
    /// A move is illegal or ambiguous.
    #[error(
        "{place} is {}",
        match .source {
            SanError::IllegalSan => "not a legal move",
            SanError::AmbiguousSan => "ambiguous",
        }
    )]
    Move {
        /// The move.
        place: TokenPlace,
        /// The kind of error.
        source: SanError,
    },
    /// A token is neither a move nor another element of PGN.
    #[error("{0} is not a move")]
    Token(TokenPlace),
    /// A move follows the game's result.
    #[error("{0} follows the result")]
    Late(TokenPlace),
    /// A null move is on the main line.
    #[error("{0} is a null move, with which the game ends")]
    NullMove(TokenPlace),
    /// A position has too many legal moves for records, which store a move's index in a byte. This
    /// happens only in artificial positions.
    #[error("`{0}` is one of more than 256 legal moves")]
    Crowd(String),
    /// A variation precedes any move that it could replace.
    #[error("a variation precedes the first move")]
    EarlyVariation,
    /// A closing parenthesis has no matching opening parenthesis.
    #[error("a variation ends without having begun")]
    LateEnd,
    /// A variation is not closed.
    #[error("a variation has no end")]
    OpenVariation,
    /// A comment is not closed.
    #[error("a comment after ply {0} has no end")]
    OpenComment(usize),
    /// Variations are nested too deeply.
    #[error("variations nest deeper than {MAX_DEPTH}")]
    TooDeep,
    /// The text contains no game.
    #[error("there is no game in the text")]
    Empty,
}

/// A token and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPlace {
    /// The token as written, truncated if it is long.
    pub token: String,
    /// Number of plies before the token.
    pub ply: usize,
    /// Nesting depth of the token's variation; 0 on the main line.
    pub depth: usize,
}

impl TokenPlace {
    pub(super) fn new(token: &[u8], ply: usize, depth: usize) -> TokenPlace {
        let token = String::from_utf8_lossy(token);
        let visible = |letter: char| match letter.is_control() {
            true => char::REPLACEMENT_CHARACTER,
            false => letter,
        };
        TokenPlace {
            token: token.chars().map(visible).take(SHOWN).collect(),
            ply,
            depth,
        }
    }
}

impl fmt::Display for TokenPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TokenPlace { token, ply, depth } = self;
        let of = if *depth > 0 { " of a variation" } else { "" };
        write!(formatter, "`{token}` at ply {}{of}", ply + 1)
    }
}
