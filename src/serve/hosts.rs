//! The hosts that a server answers for. If the owner of a website points its name at this machine
//! (DNS rebinding), the site's pages could read the server's responses, but the `Host` header of
//! their requests reveals them.

use super::problem::Problem;
use axum::http::uri::Authority;
use axum::http::{Version, header};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Number of characters of a host that a problem quotes.
const SHOWN: usize = 100;

/// A host as written in URLs, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name, in lower case and without a trailing dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Why a text is not a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a name or an address, without a port, as in chess.example.org or 192.0.2.1")]
pub struct HostError;

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Host, HostError> {
        // Accepts addresses without the brackets that URLs require.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Host::Address(address.to_canonical()));
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        match url::Host::parse(text).map_err(|_| HostError)? {
            url::Host::Domain(name) if name.is_empty() || name.contains('*') => Err(HostError),
            url::Host::Domain(name) => Ok(Host::Name(name)),
            url::Host::Ipv4(address) => Ok(Host::Address(address.into())),
            url::Host::Ipv6(address) => Ok(Host::Address(IpAddr::from(address).to_canonical())),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => formatter.write_str(name),
            Host::Address(address) => address.fmt(formatter),
        }
    }
}

/// The hosts that a server answers for. Any port is accepted, because a proxy or a container may
/// publish a different one.
#[derive(Debug)]
pub(super) struct Hosts {
    bound: IpAddr,
    named: Vec<Host>,
}

impl Hosts {
    pub(super) fn new(bound: IpAddr, named: Vec<Host>) -> Hosts {
        Hosts { bound, named }
    }

    fn serve(&self, host: &Host) -> bool {
        let is_own = match host {
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            // Addresses cannot be rebound. Every address is accepted if the server listens on all
            // of them, because address translation may have changed it.
            Host::Address(address) => {
                address.is_loopback() || self.bound.is_unspecified() || *address == self.bound
            }
        };
        is_own || self.named.contains(host)
    }

    /// Rejects a request for another host, or without a host.
    pub(super) fn check<B>(&self, request: &axum::http::Request<B>) -> Result<(), Problem> {
        let mut headers = request.headers().get_all(header::HOST).iter();
        let header = match (headers.next(), headers.next()) {
            (Some(header), None) => {
                let header = header.to_str().ok().and_then(|text| text.parse().ok());
                Some(header.ok_or_else(Problem::wrong_host)?)
            }
            // Browsers do not use this version, but proxies' health checks do.
            (None, _) if request.version() < Version::HTTP_11 => None,
            _ => return Err(Problem::wrong_host()),
        };
        // An absolute request target takes precedence over the header.
        let header: Option<Authority> = header;
        let Some(authority) = request.uri().authority().or(header.as_ref()) else {
            return Ok(());
        };
        let host = host_of(authority).ok_or_else(Problem::wrong_host)?;
        match self.serve(&host) {
            true => Ok(()),
            false => Err(Problem::misdirected(
                &host.to_string().chars().take(SHOWN).collect::<String>(),
            )),
        }
    }
}

/// Returns the host of an authority, which must be a host with an optional port, as HTTP requires.
fn host_of(authority: &Authority) -> Option<Host> {
    let text = authority.as_str();
    let port = text.strip_prefix(authority.host())?;
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match port.strip_prefix(':').map_or(port.is_empty(), is_port) {
        true => authority.host().parse().ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use proptest::prelude::*;

    fn hosts(bound: &str, named: &[&str]) -> Hosts {
        let named = named.iter().map(|name| name.parse().unwrap());
        Hosts::new(bound.parse().unwrap(), named.collect())
    }

    /// Returns the status of a request for a host, which is 200 if it is admitted.
    fn status(hosts: &Hosts, host: &str) -> u16 {
        let request = Request::builder().header("Host", host).body(()).unwrap();
        hosts
            .check(&request)
            .map_or_else(|problem| problem.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_hosts_of_its_own_are_served() {
        let local = hosts("127.0.0.1", &["Chess.Example.org"]);
        for own in [
            "localhost",
            "localhost:8080",
            "LOCALHOST.:1",
            "me.localhost",
            "127.0.0.1:8080",
            "127.8.9.1",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
            "chess.example.org:",
            "CHESS.example.org.:443",
        ] {
            assert_eq!(status(&local, own), 200, "{own}");
        }
        for other in [
            "evil.example:8080",
            "localhost.evil.example",
            "notlocalhost",
            "www.chess.example.org",
            "127.0.0.1.evil.example",
            "0.0.0.0:8080",
            "192.168.1.9",
            "[2001:db8::1]:80",
            "localhost,evil.example",
        ] {
            assert_eq!(status(&local, other), 421, "{other}");
        }
        for wrong in [
            "",
            ".",
            "a b",
            "localhost:x",
            "me@localhost",
            "[::1",
            "::1",
            "localhost/",
            "*",
        ] {
            assert_eq!(status(&local, wrong), 400, "{wrong}");
        }
    }

    #[test]
    fn addresses_are_those_that_are_listened_on() {
        let one = hosts("192.168.1.5", &[]);
        assert_eq!(status(&one, "192.168.1.5:8080"), 200);
        assert_eq!(status(&one, "192.168.1.6:8080"), 421);
        for every in ["0.0.0.0", "::"] {
            let every = hosts(every, &[]);
            for address in ["10.0.0.7:8080", "[2001:db8::1]", "0.0.0.0:8080", "[::]"] {
                assert_eq!(status(&every, address), 200, "{address}");
            }
            assert_eq!(status(&every, "evil.example"), 421);
        }
    }

    #[test]
    fn a_request_says_once_for_whom_it_is() {
        let local = hosts("127.0.0.1", &[]);
        let check = |version, uri: &str, values: &[&str]| {
            let mut request = Request::builder().version(version).uri(uri);
            for value in values {
                request = request.header("Host", *value);
            }
            let checked = local.check(&request.body(()).unwrap());
            checked.map_or_else(|problem| problem.status().as_u16(), |()| 200)
        };
        let (old, new) = (Version::HTTP_10, Version::HTTP_11);
        assert_eq!(check(new, "/", &[]), 400);
        assert_eq!(check(old, "/", &[]), 200);
        assert_eq!(check(old, "/", &["evil.example"]), 421);
        for version in [old, new] {
            assert_eq!(check(version, "/", &["localhost", "localhost"]), 400);
        }
        // If they differ, the target takes precedence.
        assert_eq!(check(new, "http://evil.example/", &["localhost"]), 421);
        assert_eq!(check(new, "http://localhost/", &["evil.example"]), 200);
        assert_eq!(check(new, "http://me@localhost/", &["localhost"]), 400);
        assert_eq!(check(new, "http://localhost/", &["a b"]), 400);
    }

    proptest! {
        #[test]
        fn no_host_panics(host in "[a-zA-Z0-9.:\\[\\]@%*_/-]{0,24}|\\PC{0,12}") {
            if let Ok(value) = axum::http::HeaderValue::from_str(&host) {
                let request = Request::builder().header("Host", value).body(()).unwrap();
                let _ = hosts("::", &[]).check(&request);
            }
            let _ = host.parse::<Host>();
        }
    }
}
