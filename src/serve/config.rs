//! Server settings.

use super::access::Tokens;
use super::hosts::Host;
use super::lichess_account::Lichess;
use super::origins::Origin;
use crate::player::PlayerSettings;
use crate::review::Judge;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address that the server listens on.
    pub address: SocketAddr,
    /// The hosts that the server answers for, in addition to this machine and the address.
    pub hosts: Vec<Host>,
    /// The default player and its network.
    pub player: PlayerSettings,
    /// Files of additional networks, which requests can name and agents can use.
    pub networks: Vec<PathBuf>,
    /// The file of a network that generates games, used if none of `networks` does.
    pub writer: Option<PathBuf>,
    /// The engine that scores reviews.
    pub judge: Option<Arc<Judge>>,
    /// The allowed clients; `None` allows all.
    pub tokens: Option<Tokens>,
    /// The origins whose pages may send requests.
    pub origins: Vec<Origin>,
    /// The Lichess account for which to analyse.
    pub lichess: Option<Lichess>,
    /// Where and how long shared reviews are kept; `None` shares none.
    pub sharing: Option<Sharing>,
    /// The limits of a request, of a client, and of all clients together.
    pub limits: Limits,
}

/// Where and how long shared reviews are kept.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The folder of their pages, which is created if it does not exist.
    pub folder: PathBuf,
    /// The time after which a page expires.
    pub time: Duration,
}

/// The limits of a request, of a client, and of all clients together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of a body in bytes.
    pub body: usize,
    /// Maximum number of moves per game.
    pub moves: usize,
    /// Maximum number of nodes per search.
    pub nodes: u64,
    /// Maximum time per search.
    pub time: Duration,
    /// Default time of a search if the request sets no limit.
    pub default_time: Duration,
    /// Maximum number of lines per analysis.
    pub lines: usize,
    /// Maximum number of games that a request may generate.
    pub games: usize,
    /// Maximum number of concurrent searches.
    pub parallel: usize,
    /// Maximum number of concurrent evaluations per backend.
    pub evaluations: usize,
    /// Maximum number of requests that may wait for a search or an evaluation.
    pub queue: usize,
    /// Number of search trees to keep; the least recently used is dropped first. Each uses up to
    /// [`PlayerSettings::hash`] of memory.
    pub trees: usize,
    /// Maximum requests per second and client; 0 sets no limit.
    pub rate: u32,
    /// Maximum number of open streams per client.
    pub streams: usize,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Timeout for the head of a request, whether the first or a later one, and for its body. A
    /// stream is never silent for more than half of this time.
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
    /// Returns the interval between keep-alives on a silent stream.
    pub(super) fn beat(&self) -> Duration {
        self.silence / 2
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            address: (Ipv4Addr::LOCALHOST, 8080).into(),
            hosts: Vec::new(),
            player: PlayerSettings::default(),
            networks: Vec::new(),
            writer: None,
            judge: None,
            tokens: None,
            origins: Vec::new(),
            lichess: None,
            sharing: None,
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
