//! `tessera serve`: every agent over HTTP, for programs, and a page for people.
//!
//! Handlers are asynchronous and short; what computes runs on threads of its own. A
//! thinking agent is a [`crate::player::Player`] out of a bounded pool, so that a game
//! that goes on finds its tree again. All players and `/v1/eval` share one backend for
//! each network, which merges what they ask into batches.
//!
//! | part | holds |
//! |---|---|
//! | `config` | what a server may be told, and the defaults |
//! | `problem` | errors as RFC 9457 has them |
//! | `body`, `position`, `request` | what clients send: JSON, positions, limits |
//! | `answer`, `stream` | what they get: moves, scores, lines; piece by piece |
//! | `metrics` | counters for Prometheus |
//! | `backends`, `networks`, `players` | what computes |
//! | `access` | tokens, rates, streams a client |
//! | `state` | all that handlers share |
//! | `routes`, `openapi` | the endpoints, and their description |
//! | `page` | the page, with the board that is built in |
//! | `listen` | connections: their number, their patience, their end |

mod access;
mod answer;
mod backends;
mod body;
mod config;
mod listen;
mod metrics;
mod networks;
mod openapi;
mod page;
mod players;
mod position;
mod problem;
mod request;
mod routes;
mod state;
mod stream;

pub use access::{Tokens, TokensError};
pub use config::{Config, Limits};
pub use openapi::openapi;
pub use request::is_request;

use crate::backend::LoadError;
use axum::Router;
use state::State;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// How long requests that run when the server is told to end may go on.
const GRACE: Duration = Duration::from_secs(10);
/// How long those that were then stopped may take to send what they have.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why a server ended, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No network.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The system refused threads or connections.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Serves until the process is told to end (SIGTERM, or Ctrl-C). `listening` is called
/// with the address once connections are taken.
///
/// # Errors
/// [`ServeError`] if the address is taken, the network cannot be loaded, or the system
/// has no threads.
pub fn run(config: Config, listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.workers())
        .max_blocking_threads(config.limits.parallel + 8)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(config, listening, &runtime));
    // A network that is still being loaded is not waited for.
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
    let mut ended = std::pin::pin!(told_to_end()?);
    let state = Arc::new(State::new(config));
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
        () = &mut ended => None,
        error = failed(loading) => Some(error),
    };
    state.close();
    let _ = close.send(());
    if tokio::time::timeout(GRACE, &mut server).await.is_err() {
        state.stop_all();
        // Who has not read the answer by then does not get it.
        let _ = tokio::time::timeout(LAST_WORDS, &mut server).await;
    }
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Waits for the loading to fail, for ever if it succeeds.
async fn failed(loading: tokio::task::JoinHandle<Result<(), LoadError>>) -> LoadError {
    match loading.await {
        Ok(Err(error)) => error,
        Ok(Ok(())) | Err(_) => std::future::pending().await,
    }
}

/// Completes when the process is told to end.
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut terminate = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate())?
    };
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    })
}
