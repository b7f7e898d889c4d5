//! `tessera serve`: every agent over HTTP for programs, and a web page for people.
//!
//! Handlers are asynchronous and short; computation runs on its own threads. A thinking agent is
//! a [`crate::player::Player`] from a bounded pool, so each game reuses its search tree. All
//! players and `/v1/eval` share one backend per network, which batches their evaluations.
//!
//! | part | contents |
//! |---|---|
//! | `config` | the server's settings, and their defaults |
//! | `problem` | errors in the format of RFC 9457 |
//! | `body`, `json`, `media`, `position`, `request` | requests: JSON, positions, limits |
//! | `answer`, `stream` | responses: moves, scores, lines; streams |
//! | `metrics` | counters for Prometheus |
//! | `backends`, `networks`, `players`, `reviews` | computation |
//! | `hosts`, `origins` | the host names that the server answers for, and the origins whose pages may send requests |
//! | `shared` | reviews that can be read by a link |
//! | `access` | tokens, rate limits, streams per client |
//! | `state` | the state shared by all handlers |
//! | `routes`, `openapi` | the endpoints and their OpenAPI description |
//! | `page` | the web page, with its built-in board |
//! | `lichess` | analysis on Lichess's board |
//! | `listen` | connections: their maximum number, timeouts and shutdown |

mod access;
mod answer;
mod backends;
mod body;
mod config;
mod gate;
mod hosts;
mod json;
mod lichess;
mod lichess_account;
mod listen;
mod media;
mod metrics;
mod networks;
#[cfg(test)]
#[path = "serve/tests/openapi.rs"]
mod openapi;
mod origins;
mod page;
mod players;
mod position;
mod problem;
mod request;
mod reviews;
mod routes;
mod shared;
mod state;
mod stream;

pub use access::{Tokens, TokensError};
pub use config::{Config, Limits, Sharing};
pub use hosts::{Host, HostError};
pub use lichess::LichessError;
pub use lichess_account::{Lichess, LichessToken};
pub use origins::{Origin, OriginError};
pub use request::is_request;

use crate::inference::LoadError;
use axum::Router;
use lichess::LichessClient;
use shared::SharedPages;
use state::AppState;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Grace period for running requests at shutdown.
const GRACE: Duration = Duration::from_secs(10);
/// Grace period for stopped requests to send their results.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Interval at which shared reviews that have expired are deleted, even if nobody requests them.
const SWEEP: Duration = Duration::from_secs(600);

/// Why a server ended, or failed to start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The folder of shared reviews cannot be read or written.
    #[error("cannot share reviews in {}: {source}", folder.display())]
    Share {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server received a second termination signal.
    #[error("stopped at once: running requests got no response")]
    Hurried,
    /// The network cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Lichess cannot be served.
    #[error(transparent)]
    Lichess(#[from] LichessError),
    /// The system refused to create threads or connections.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Serves until SIGTERM or Ctrl-C; a second signal ends the process immediately. Calls `listening`
/// with the address once the server accepts connections.
///
/// # Errors
/// [`ServeError`] if the address is taken, the network cannot be loaded, Lichess refuses the
/// engine, the system has no threads, or a second signal cut off running requests.
pub fn run(config: Config, listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.workers())
        .max_blocking_threads(config.limits.parallel + 8)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(config, listening, &runtime));
    // Do not wait for a network that is still loading.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

async fn serve(
    config: Config,
    listening: impl FnOnce(SocketAddr),
    runtime: &Runtime,
) -> Result<(), ServeError> {
    let address = config.address;
    let refused = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let mut signals = Signals::new()?;
    let lichess = config.lichess.as_ref().map(LichessClient::new);
    let lichess = lichess.transpose()?;
    let shared = config.sharing.as_ref().map(|sharing| {
        SharedPages::open(sharing).map_err(|source| {
            let folder = sharing.folder.clone();
            ServeError::Share { folder, source }
        })
    });
    let state = Arc::new(AppState::new(config, shared.transpose()?));
    if let Some(shared) = state.shared.clone() {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                shared.delete_expired();
            }
        });
    }
    let loading = {
        let state = state.clone();
        runtime.spawn_blocking(move || state.load())
    };
    listening(listener.local_addr()?);
    let (close, closed) = oneshot::channel::<()>();
    let application: Router = routes::router(state.clone());
    let limits = state.config.limits.clone();
    let mut server = tokio::spawn(async move {
        let closed = async { drop(closed.await) };
        listen::serve(listener, application, &limits, closed).await;
    });
    let failure = tokio::select! {
        () = signals.next() => None,
        error = work(&state, loading, lichess) => Some(error),
    };
    state.close();
    let _ = close.send(());
    let drained = async {
        if tokio::time::timeout(GRACE, &mut server).await.is_err() {
            state.stop_all();
            // Clients that have not read the response by then do not receive it.
            let _ = tokio::time::timeout(LAST_WORDS, &mut server).await;
        }
    };
    tokio::select! {
        () = drained => match failure {
            Some(error) => Err(error),
            None => Ok(()),
        },
        () = signals.next() => {
            state.stop_all();
            Err(ServeError::Hurried)
        }
    }
}

/// Waits for the networks, then serves Lichess if a client is configured; returns only on failure.
async fn work(
    state: &Arc<AppState>,
    loading: JoinHandle<Result<(), LoadError>>,
    lichess: Option<LichessClient>,
) -> ServeError {
    match (loading.await, lichess, &state.config.lichess) {
        (Ok(Err(error)), ..) => error.into(),
        (Ok(Ok(())), Some(client), Some(account)) => {
            lichess::provide(state, client, account).await.into()
        }
        _ => std::future::pending().await,
    }
}

/// The signals that end the process.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Signals> {
        Ok(Signals {})
    }

    /// Completes each time a termination signal arrives.
    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
