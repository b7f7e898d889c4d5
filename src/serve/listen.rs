//! Connections: their number, timeouts and shutdown.

use super::config::Limits;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Maximum time for which a client may leave sent data unread.
const UNREAD: Duration = Duration::from_secs(30);
/// Pause when the system is out of connections.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Serves connections until `ended` completes, then lets running requests finish.
pub(super) async fn serve(
    listener: TcpListener,
    application: Router,
    limits: &Limits,
    ended: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut ended = std::pin::pin!(ended);
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut ended => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause(&error).await;
                continue;
            }
        };
        if let Err(error) = prepare(&stream) {
            tracing::debug!("{address}: {error}");
        }
        let service = TowerToHyperService::new(application.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(address));
            service.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.silence)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!("{address}: {error}");
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Configures a connection to send without delay and to drop a client that stops reading.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    SockRef::from(stream).set_tcp_user_timeout(Some(UNREAD))?;
    Ok(())
}

/// Pauses after a failed accept if the system is out of file descriptors, which become available
/// again. A connection aborted by the client needs no pause.
async fn pause(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if ![ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind()) {
        tracing::warn!("cannot take a connection: {error}");
        tokio::time::sleep(EXHAUSTED).await;
    }
}
