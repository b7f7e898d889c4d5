//! Settings of a server.

use super::access::Tokens;
use super::hosts::Host;
use super::lichess_account::Lichess;
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
    /// Hosts that it answers for, in addition to this machine and the address.
    pub hosts: Vec<Host>,
    /// The default player and its network.
    pub player: player::Settings,
    /// Files of further networks, for requests to name or agents to use.
    pub networks: Vec<PathBuf>,
    /// The file of a network that writes games, used if none of `networks` does.
    pub writer: Option<PathBuf>,
    /// The allowed clients; `None` allows all.
    pub tokens: Option<Tokens>,
    /// The origins whose pages may send requests.
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
    /// Moves per game.
    pub moves: usize,
    /// Nodes per search.
    pub nodes: u64,
    /// Time per search.
    pub time: Duration,
    /// Default time of a search, if the request sets no limit.
    pub default_time: Duration,
    /// Lines per analysis.
    pub lines: usize,
    /// Games that a request may generate.
    pub games: usize,
    /// Concurrent searches.
    pub parallel: usize,
    /// Concurrent evaluations per backend.
    pub evaluations: usize,
    /// Requests that may wait for a search or an evaluation.
    pub queue: usize,
    /// Search trees kept; the least recently used is dropped first. Each takes up to the memory
    /// of [`player::Settings::hash`].
    pub trees: usize,
    /// Requests per second and client; 0 sets no limit.
    pub rate: u32,
    /// Open streams per client.
    pub streams: usize,
    /// Open connections.
    pub connections: usize,
    /// Timeout for the head of a request, the first or the next, and for its body. A stream is
    /// never silent for more than half of this.
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
    /// Returns the interval of a silent stream's keep-alives.
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
    /// Returns the number of HTTP threads.
    pub(super) fn workers(&self) -> usize {
        self.limits.parallel.clamp(1, 4)
    }
}
