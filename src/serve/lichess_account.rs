//! The Lichess account for which the server analyses.

use super::access::{TokensError, token_lines};
use std::fmt;
use std::path::Path;

/// The account on whose analysis board the server analyses.
#[derive(Clone, Debug)]
pub struct Lichess {
    /// The token with which the server registers itself.
    pub token: LichessToken,
    /// The address of the site, where engines are registered.
    pub site: String,
    /// The address of the broker, which forwards requests.
    pub broker: String,
}

/// A Lichess API token.
// Only the client reads the token.
#[cfg_attr(not(feature = "cloud"), allow(dead_code))]
#[derive(Clone)]
pub struct LichessToken(pub(super) String);

impl fmt::Debug for LichessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LichessToken")
    }
}

impl LichessToken {
    /// Reads the first token in a file, whose format is that of
    /// [`Tokens::read`](super::Tokens::read).
    ///
    /// # Errors
    /// As [`Tokens::read`](super::Tokens::read).
    pub fn read(path: &Path) -> Result<LichessToken, TokensError> {
        Ok(LichessToken(token_lines(path)?.swap_remove(0)))
    }
}
