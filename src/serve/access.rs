//! Access control and rate limits.

use super::origins::Origin;
use super::problem::Problem;
use crate::header_text;

use axum::http::{HeaderMap, header};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use subtle::{Choice, ConstantTimeEq};

/// Number of clients that a limiter tracks before it drops the idle ones.
const MANY_CLIENTS: usize = 10_000;
/// Retry delay when too many streams are open.
const BUSY: Duration = Duration::from_secs(5);
/// Reviews that a client may share per hour, if requests are limited.
const SHARES: u32 = 20;

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("cannot read the tokens {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file contains no tokens.
    #[error("{0} contains no tokens: write one per line")]
    Empty(PathBuf),
    /// A token contains a character that no request can send.
    #[error(
        "line {line} of {} contains {character}, which a request cannot send: \
         a token is a line of ASCII letters, digits and punctuation",
        path.display()
    )]
    Unsendable {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// A description of the character.
        character: String,
    },
}

/// The tokens that admit clients, stored as digests.
#[derive(Clone, Debug)]
pub struct Tokens(Vec<[u8; 32]>);

impl Tokens {
    /// Reads a file with one token per line, ignoring empty lines and lines that begin with `#`.
    ///
    /// # Errors
    /// [`TokensError`] if the file cannot be read, contains no tokens, or contains a token that no
    /// request can send.
    pub fn read(path: &Path) -> Result<Tokens, TokensError> {
        let tokens = token_lines(path)?;
        Ok(Tokens(tokens.iter().map(|token| digest(token)).collect()))
    }

    /// Returns the token's index, in a time that does not depend on how closely it matched.
    fn find(&self, token: &str) -> Option<usize> {
        let wanted = digest(token);
        let mut found = None;
        for (number, known) in self.0.iter().enumerate() {
            let is_it: Choice = known.ct_eq(&wanted);
            if bool::from(is_it) {
                found = Some(number);
            }
        }
        found
    }
}

/// Returns the tokens in a file, in order; there is at least one. They consist of visible ASCII
/// characters, because a client sends them in a header, as the last word of its value.
pub(super) fn token_lines(path: &Path) -> Result<Vec<String>, TokensError> {
    let bytes = fs::read(path).map_err(|source| TokensError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut tokens = Vec::new();
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    for (line, bytes) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let unsendable = |character| TokensError::Unsendable {
            path: path.to_owned(),
            line,
            character,
        };
        if bytes.trim_ascii_start().starts_with(b"#") {
            continue;
        }
        let token = std::str::from_utf8(bytes).map_err(|error| {
            let byte = bytes[error.valid_up_to()];
            unsendable(format!("the byte 0x{byte:02X}, which is not UTF-8"))
        })?;
        let token = token.trim();
        if let Some(character) = header_text::unsendable(token) {
            return Err(unsendable(character));
        }
        if !token.is_empty() {
            tokens.push(token.to_owned());
        }
    }
    match tokens.is_empty() {
        true => Err(TokensError::Empty(path.to_owned())),
        false => Ok(tokens),
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The identity under which a client's requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Client {
    /// Any client with this token.
    Token(usize),
    /// Any client from this address.
    Address(IpAddr),
    /// A session on Lichess's analysis board.
    Lichess(String),
}

/// Counts the requests and streams of clients.
pub(super) struct Access {
    tokens: Option<Tokens>,
    rate: Option<DefaultKeyedRateLimiter<Client>>,
    shares: Option<DefaultKeyedRateLimiter<Client>>,
    streams: Arc<Mutex<HashMap<Client, usize>>>,
    most_streams: usize,
}

impl Access {
    pub(super) fn new(tokens: Option<Tokens>, rate: u32, most_streams: usize) -> Access {
        let rate = NonZeroU32::new(rate);
        let shares = NonZeroU32::new(SHARES).filter(|_| rate.is_some());
        Access {
            tokens,
            rate: rate.map(|rate| RateLimiter::keyed(Quota::per_second(rate))),
            shares: shares.map(|shares| RateLimiter::keyed(Quota::per_hour(shares))),
            streams: Arc::default(),
            most_streams,
        }
    }

    pub(super) fn client(
        &self,
        headers: &HeaderMap,
        address: SocketAddr,
    ) -> Result<Client, Problem> {
        let Some(tokens) = &self.tokens else {
            return Ok(Client::Address(address.ip().to_canonical()));
        };
        let header = headers.get(header::AUTHORIZATION);
        let token = header
            .and_then(|value| value.to_str().ok()?.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
        token
            .map(|(_, token)| token)
            .and_then(|token| tokens.find(token.trim()))
            .map(Client::Token)
            .ok_or_else(Problem::unauthorised)
    }

    pub(super) fn check_rate(&self, client: &Client) -> Result<(), Problem> {
        check(self.rate.as_ref(), client, || {
            "too many requests: try again later".to_owned()
        })
    }

    /// Counts a review that a client shares.
    pub(super) fn check_shares(&self, client: &Client) -> Result<(), Problem> {
        check(self.shares.as_ref(), client, || {
            format!("this server lets you share {SHARES} reviews an hour: try again later")
        })
    }

    /// Counts a stream until it is dropped.
    pub(super) fn open_stream(&self, client: &Client) -> Result<OpenStream, Problem> {
        let mut streams = self.streams.lock();
        let count = streams.entry(client.clone()).or_default();
        if *count >= self.most_streams {
            let detail = format!("{} streams are open: close one first", self.most_streams);
            return Err(Problem::too_many(detail, BUSY));
        }
        *count += 1;
        Ok(OpenStream {
            streams: self.streams.clone(),
            client: client.clone(),
        })
    }
}

fn check(
    limiter: Option<&DefaultKeyedRateLimiter<Client>>,
    client: &Client,
    detail: impl FnOnce() -> String,
) -> Result<(), Problem> {
    let Some(limiter) = limiter else {
        return Ok(());
    };
    if limiter.len() > MANY_CLIENTS {
        limiter.retain_recent();
    }
    limiter.check_key(client).map_err(|early| {
        let wait = early.wait_time_from(DefaultClock::default().now());
        Problem::too_many(detail(), wait)
    })
}

/// An open stream.
pub(super) struct OpenStream {
    streams: Arc<Mutex<HashMap<Client, usize>>>,
    client: Client,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock();
        if let Some(count) = streams.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.client);
            }
        }
    }
}

/// Rejects a request from another site's page unless its origin is allowed.
pub(super) fn check_site(headers: &HeaderMap, origins: &[Origin]) -> Result<(), Problem> {
    let is_cross_site = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "cross-site");
    let is_named = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origins.iter().any(|known| known.header() == origin));
    match is_cross_site && !is_named {
        true => Err(Problem::cross_site()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn tokens(text: &str) -> Result<Tokens, TokensError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Tokens::read(file.path())
    }

    #[test]
    fn a_token_is_a_line() {
        for text in [
            "# ours\nfirst\n\n  second \n",
            "\u{feff}first\r\nsecond\r\n",
        ] {
            let tokens = tokens(text).unwrap();
            assert_eq!(tokens.find("first"), Some(0));
            assert_eq!(tokens.find("second"), Some(1));
        }
        let tokens = tokens("first\nsecond").unwrap();
        for other in ["", "firs", "first ", "# ours", "First"] {
            assert_eq!(tokens.find(other), None, "{other}");
        }
    }

    #[test]
    fn the_scheme_is_read_without_case() {
        let access = Access::new(Some(tokens("first").unwrap()), 0, 1);
        let client = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            access.client(&headers, ([127, 0, 0, 1], 9).into()).ok()
        };
        for value in ["Bearer first", "bearer first", "BEARER  first "] {
            assert_eq!(client(value), Some(Client::Token(0)), "{value}");
        }
        for value in [
            "Bearer",
            "Bearerfirst",
            "Basic first",
            "Bearer First",
            "first",
        ] {
            assert_eq!(client(value), None, "{value}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_let_in_by_their_origin() {
        let origins = ["https://example.org/".parse().unwrap()];
        let is_let_in = |site: Option<&'static str>, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(site) = site {
                headers.insert("Sec-Fetch-Site", site.parse().unwrap());
            }
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            check_site(&headers, &origins).is_ok()
        };
        for site in ["same-origin", "same-site", "none"] {
            assert!(is_let_in(Some(site), None), "{site}");
        }
        assert!(is_let_in(None, Some("https://evil.example")));
        assert!(is_let_in(Some("cross-site"), Some("https://example.org")));
        assert!(!is_let_in(Some("cross-site"), None));
        for origin in ["https://evil.example", "http://example.org", "null"] {
            assert!(!is_let_in(Some("cross-site"), Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_file_without_tokens_is_a_mistake() {
        assert!(matches!(tokens("# none\n\n"), Err(TokensError::Empty(_))));
        let missing = Tokens::read(Path::new("no/such/file"));
        assert!(matches!(missing, Err(TokensError::Read { .. })));
    }

    #[test]
    fn a_token_that_no_request_can_send_is_refused_by_its_character() {
        let said = tokens("# übersetzt\nfirst\ntwo words\n")
            .unwrap_err()
            .to_string();
        assert!(said.starts_with("line 3 of "), "{said}");
        let character = "contains a blank (U+0020), which a request cannot send";
        assert!(said.contains(character), "{said}");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"schl\xfcssel").unwrap();
        let said = Tokens::read(file.path()).unwrap_err().to_string();
        assert!(said.contains("the byte 0xFC, which is not UTF-8"), "{said}");
        // Every visible ASCII character is accepted, and found in the header of a request.
        let every: String = (b'!'..=b'~').map(char::from).collect();
        let access = Access::new(Some(tokens(&every).unwrap()), 0, 1);
        let mut headers = HeaderMap::new();
        let value = format!("Bearer {every}").parse().unwrap();
        headers.insert(header::AUTHORIZATION, value);
        assert!(access.client(&headers, ([127, 0, 0, 1], 9).into()).is_ok());
    }

    #[test]
    fn streams_are_counted_by_client_and_forgotten() {
        let access = Access::new(None, 0, 2);
        let client = |last| Client::Address([10, 0, 0, last].into());
        let first = access.open_stream(&client(1)).ok().unwrap();
        let _second = access.open_stream(&client(1)).ok().unwrap();
        assert!(access.open_stream(&client(1)).is_err());
        let other = access.open_stream(&client(2)).ok().unwrap();
        drop(first);
        assert!(access.open_stream(&client(1)).is_ok());
        drop(other);
        assert_eq!(access.streams.lock().len(), 1);
    }

    #[test]
    fn who_asks_too_often_is_told_when_to_come_again() {
        let access = Access::new(None, 2, 1);
        let client = Client::Token(0);
        assert!(access.check_rate(&client).is_ok());
        assert!(access.check_rate(&client).is_ok());
        assert!(access.check_rate(&client).is_err());
        assert!(access.check_rate(&Client::Token(1)).is_ok());
    }

    #[test]
    fn clients_share_few_reviews_an_hour_where_requests_are_limited() {
        let access = Access::new(None, 2, 1);
        let shares = |access: &Access| {
            (0..=SHARES)
                .map(|_| access.check_shares(&Client::Token(0)).is_ok())
                .collect::<Vec<_>>()
        };
        let made = shares(&access);
        assert!(made[..SHARES as usize].iter().all(|&it| it));
        assert!(!made[SHARES as usize]);
        assert!(access.check_shares(&Client::Token(1)).is_ok());
        assert!(shares(&Access::new(None, 0, 1)).into_iter().all(|it| it));
    }
}
