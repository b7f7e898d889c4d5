//! Lichess's analysis board: the provider's side of its external-engine protocol.
//!
//! The server registers itself as an engine of the user's account. It then polls Lichess's broker
//! for requests, and answers each with a stream of UCI info lines until the search ends or the
//! broker closes the request because the user has moved on.
//!
//! | part | contents |
//! |---|---|
//! | `protocol` | the messages |
//! | `client` | requests to Lichess; `no_client` replaces it in a build without the feature `cloud` |
//! | `provider` | registration, polling, one analysis per session |

// Only the client uses all of this.
#![cfg_attr(not(feature = "cloud"), allow(dead_code))]

#[cfg_attr(not(feature = "cloud"), path = "lichess/no_client.rs")]
mod client;
mod protocol;
mod provider;

pub(super) use client::LichessClient;
pub(super) use provider::provide;

use super::lichess_account::Lichess;
use std::time::Duration;

/// Where users create a token.
const TOKEN_PAGE: &str = "https://lichess.org/account/oauth/token/create?scopes[]=engine:read&scopes[]=engine:write&description=Tessera";
/// How long Lichess asks clients to wait after too many requests.
const TOO_MANY: Duration = Duration::from_secs(60);
/// Number of characters of Lichess's response that an error quotes.
const SHOWN: usize = 200;

/// Why Lichess cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LichessError {
    /// The program lacks the feature `cloud`.
    #[error(
        "this program was built without a client for Lichess: `cargo build --release --features cloud` adds it"
    )]
    NotBuiltIn,
    /// The HTTP client cannot be set up.
    #[error("cannot set up a client for Lichess: {0}")]
    Client(String),
    /// Lichess rejected the token.
    #[error("Lichess does not accept the token: make a new one at {TOKEN_PAGE}")]
    Token,
    /// The token lacks the permission to register engines.
    #[error(
        "the token for Lichess lacks the scopes engine:read and engine:write: make a new one at {TOKEN_PAGE}"
    )]
    Scopes,
    /// The request did not reach Lichess, or no response came.
    #[error("cannot reach Lichess: {0}")]
    Unreachable(String),
    /// Lichess responded with an error.
    #[error("Lichess answers {status}{}", excerpt(.answer))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The body.
        answer: String,
    },
    /// Lichess's response does not follow the protocol.
    #[error("cannot read Lichess's answer: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Returns the beginning of a response on one line, after a colon; empty if the response is empty.
fn excerpt(answer: &str) -> String {
    let words: Vec<&str> = answer.split_whitespace().collect();
    let colon = if words.is_empty() { "" } else { ": " };
    let shown: String = words.join(" ").chars().take(SHOWN).collect();
    format!("{colon}{shown}")
}

impl LichessError {
    /// Converts the error of a request that carries the token.
    fn of_token(self) -> LichessError {
        match self {
            LichessError::Status { status: 401, .. } => LichessError::Token,
            LichessError::Status { status: 403, .. } => LichessError::Scopes,
            other => other,
        }
    }

    /// Returns whether the same request may succeed later.
    fn is_passing(&self) -> bool {
        match self {
            LichessError::Unreachable(_) => true,
            LichessError::Status { status, .. } => *status >= 500 || [408, 429].contains(status),
            _ => false,
        }
    }

    /// Returns the pause before the next attempt, which is at least `usual`.
    fn pause(&self, usual: Duration) -> Duration {
        match self {
            LichessError::Status { status: 429, .. } => usual.max(TOO_MANY),
            _ => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::access::TokensError;
    use crate::serve::lichess_account::LichessToken;
    use std::io::Write;

    fn token(text: &str) -> Result<LichessToken, TokensError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        LichessToken::read(file.path())
    }

    #[test]
    fn a_token_is_read_and_never_printed() {
        let read = token("# Lichess\n\n lip_secret \nlip_other\n").unwrap();
        assert_eq!(read.0, "lip_secret");
        assert!(!format!("{read:?}").contains("lip"));
        assert!(matches!(token("\n# none\n"), Err(TokensError::Empty(_))));
        for text in ["lip_secret and more", "lip_sécret"] {
            assert!(matches!(token(text), Err(TokensError::Unsendable { .. })));
        }
    }

    #[test]
    fn errors_say_what_to_do_and_when_to_try_again() {
        let status = |status| LichessError::Status {
            status,
            answer: "x".repeat(1000),
        };
        for (code, is_passing, says) in [
            (401, false, "does not accept the token"),
            (403, false, "engine:read and engine:write"),
            (400, false, "answers 400"),
            (429, true, "answers 429"),
            (503, true, "answers 503"),
        ] {
            let error = status(code).of_token();
            assert_eq!(error.is_passing(), is_passing, "{code}");
            let message = error.to_string();
            assert!(message.contains(says) && message.len() < 300, "{message}");
        }
        let said = |answer: &str| {
            let answer = answer.to_owned();
            let error = LichessError::Status {
                status: 502,
                answer,
            };
            error.to_string()
        };
        assert_eq!(said(""), "Lichess answers 502");
        assert_eq!(said("Bad\n  gateway\n"), "Lichess answers 502: Bad gateway");
        let second = Duration::from_secs(1);
        assert_eq!(status(503).pause(second), second);
        assert_eq!(status(429).pause(second), TOO_MANY);
    }
}
