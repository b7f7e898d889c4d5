//! Settings of a server.

use super::access::Tokens;
use super::hosts::Host;
use super::lichess::Lichess;
use super::origins::Origin;
use crate::player;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its address.
    pub address: SocketAddr,
    /// Hosts that it answers for, besides this machine and the address.
    pub hosts: Vec<Host>,
    /// The default player and its network.
    pub player: player::Settings,
    /// Files of further networks, which requests name or their agents need.
    pub networks: Vec<PathBuf>,
    /// The file of a network that writes games, for when none of `networks` does.
    pub writer: Option<PathBuf>,
    /// The allowed clients; `None` allows everybody.
    pub tokens: Option<Tokens>,
    /// The origins of pages of other servers that may ask.
    pub origins: Vec<Origin>,
    /// The account on Lichess to analyse for.
    pub lichess: Option<Lichess>,
    /// Limits of a request, of a client and of all clients together.
    pub limits: Limits,
}

/// Limits of a request, of a client and of all clients together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Moves of a game.
    pub moves: usize,
    /// Nodes of a search.
    pub nodes: u64,
    /// Time of a search.
    pub time: Duration,
    /// Time of a search whose request names no limit.
    pub default_time: Duration,
    /// Lines of an analysis.
    pub lines: usize,
    /// Games that a request has written.
    pub games: usize,
    /// Searches that run at once.
    pub parallel: usize,
    /// Evaluations that are asked of a backend at once.
    pub evaluations: usize,
    /// Requests that may wait for a search or an evaluation.
    pub queue: usize,
    /// Search trees that are kept, the least recently used goes first. Each takes up to
    /// the memory of [`player::Settings::hash`].
    pub trees: usize,
    /// Requests a second that a client may make; 0 sets no limit.
    pub rate: u32,
    /// Streams that a client may have open.
    pub streams: usize,
    /// Connections that are open at once.
    pub connections: usize,
    /// Longest wait for the head of a request, the first or the next, and for its body. A stream
    /// is never silent for more than half of it.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Limits {
            body: 64 << 10,
            moves: 2000,
            nodes: 1_000_000,
            time: Duration::from_secs(60),
            default_time: Duration::from_secs(1),
            lines: 10,
            games: 100,
            parallel: cores,
            evaluations: 256,
            queue: 256,
            trees: 4 * cores,
            rate: 0,
            streams: 8,
            connections: 20_000,
            silence: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Longest silence of a stream before it sends a sign of life.
    pub(super) fn beat(&self) -> Duration {
        self.silence / 2
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            address: (Ipv4Addr::LOCALHOST, 8080).into(),
            hosts: Vec::new(),
            player: player::Settings::default(),
            networks: Vec::new(),
            writer: None,
            tokens: None,
            origins: Vec::new(),
            lichess: None,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Threads that speak HTTP.
    pub(super) fn workers(&self) -> usize {
        self.limits.parallel.clamp(1, 4)
    }
}
