//! Origins of pages on other servers, in the form that browsers send.

use axum::http::HeaderValue;
use std::str::FromStr;
use url::{Position, Url};

/// The origin of a page on another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

/// Why a text is not a valid origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The scheme or the host is missing.
    #[error("write a scheme and a host, as in https://example.org")]
    Incomplete,
    /// The text continues after the host and the port.
    #[error("write no more than a scheme, a host and a port, as in https://example.org:8443")]
    Longer,
    /// The text matches more than one origin.
    #[error("name each origin: `*` and `null` do not identify a site")]
    Anybody,
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Origin, OriginError> {
        if text == "null" || text.contains('*') {
            return Err(OriginError::Anybody);
        }
        let url = Url::parse(text).map_err(|_| OriginError::Incomplete)?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(OriginError::Incomplete);
        }
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || !matches!(&url[Position::BeforePath..], "" | "/") {
            return Err(OriginError::Longer);
        }
        let origin = &url[..Position::AfterPort];
        let origin = HeaderValue::from_str(origin).map_err(|_| OriginError::Incomplete)?;
        Ok(Origin(origin))
    }
}

impl Origin {
    /// Returns the origin in the form that a browser sends.
    pub(super) fn header(&self) -> &HeaderValue {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for (text, sent) in [
            ("https://example.org", "https://example.org"),
            ("https://example.org/", "https://example.org"),
            ("HTTPS://Example.ORG:443", "https://example.org"),
            ("http://example.org:80/", "http://example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:3000/", "http://[::1]:3000"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!(origin.header(), sent, "{text}");
        }
    }

    #[test]
    fn what_matches_no_page_is_refused() {
        for (text, error) in [
            ("*", OriginError::Anybody),
            ("https://*.example.org", OriginError::Anybody),
            ("null", OriginError::Anybody),
            ("", OriginError::Incomplete),
            ("example.org", OriginError::Incomplete),
            ("example.org:8080", OriginError::Incomplete),
            ("//example.org", OriginError::Incomplete),
            ("https://", OriginError::Incomplete),
            ("file:///tmp", OriginError::Incomplete),
            ("https://example.org/app", OriginError::Longer),
            ("https://example.org?", OriginError::Longer),
            ("https://example.org/#a", OriginError::Longer),
            ("https://me@example.org", OriginError::Longer),
        ] {
            assert_eq!(text.parse::<Origin>(), Err(error), "{text}");
        }
    }
}
