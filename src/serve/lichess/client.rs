//! Requests to Lichess.

use super::protocol::{Engine, Job, Poll, Registration};
use super::{Lichess, LichessError};
use crate::error_report::one_line;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Client, RequestBuilder, StatusCode};
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Timeout for a response from Lichess, whose broker holds a poll for ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time without data after which the system checks whether the other side is still connected.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// An HTTP client for the site and the broker.
#[derive(Clone)]
pub(in crate::serve) struct LichessClient {
    http: Client,
    account: Lichess,
}

impl LichessClient {
    pub(in crate::serve) fn new(account: &Lichess) -> Result<LichessClient, LichessError> {
        // If the program has already installed a provider, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .user_agent(concat!("tessera/", env!("CARGO_PKG_VERSION")))
            // Closing the connection stops an analysis, so no other request may share the
            // connection.
            .http1_only()
            .connect_timeout(PATIENCE)
            .tcp_keepalive(KEEPALIVE)
            .build()
            .map_err(|error| LichessError::Client(one_line(&error)))?;
        Ok(LichessClient {
            http,
            account: account.clone(),
        })
    }

    /// Registers the engine, replacing any with the same name.
    pub(super) async fn register(&self, registration: &Registration) -> Result<(), LichessError> {
        let done = async {
            let address = format!("{}/api/external-engine", self.account.site);
            let list = self.with_token(self.http.get(&address));
            let engines: Vec<Engine> = serde_json::from_slice(&answer(list).await?.1)?;
            let known = engines
                .iter()
                .find(|engine| engine.name == registration.name);
            let request = match known {
                Some(engine) => self.http.put(format!("{address}/{}", engine.id)),
                None => self.http.post(address),
            };
            let request = with_json(self.with_token(request), registration)?;
            answer(request).await.map(drop)
        };
        done.await.map_err(LichessError::of_token)
    }

    fn with_token(&self, request: RequestBuilder) -> RequestBuilder {
        let token = &self.account.token.0;
        request.bearer_auth(token).timeout(PATIENCE)
    }

    /// Waits for a request; returns `None` if none arrives for a while.
    pub(super) async fn acquire(&self, secret: &str) -> Result<Option<Job>, LichessError> {
        let address = format!("{}/api/external-engine/work", self.account.broker);
        let poll = Poll {
            provider_secret: secret,
        };
        let request = with_json(self.http.post(address).timeout(PATIENCE), &poll)?;
        match answer(request).await? {
            (StatusCode::NO_CONTENT, _) => Ok(None),
            (_, body) => Ok(Some(serde_json::from_slice(&body)?)),
        }
    }

    /// Sends lines until there are no more or the user has left.
    pub(super) async fn submit(
        &self,
        id: &str,
        lines: mpsc::Receiver<String>,
    ) -> Result<(), LichessError> {
        let address = format!("{}/api/external-engine/work/{id}", self.account.broker);
        let lines = ReceiverStream::new(lines).map(Ok::<_, Infallible>);
        let request = self.http.post(address).header(CONTENT_TYPE, "text/plain");
        let request = request.body(Body::wrap_stream(lines));
        answer(request).await.map(drop)
    }
}

fn with_json(
    request: RequestBuilder,
    message: &impl Serialize,
) -> Result<RequestBuilder, LichessError> {
    let body = serde_json::to_vec(message)?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(body))
}

/// Returns the status and body of a successful request.
async fn answer(request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), LichessError> {
    let answer = async {
        let response = request.send().await?;
        Ok((response.status(), response.bytes().await?))
    };
    let answer: Result<_, reqwest::Error> = answer.await;
    let (status, body) = answer.map_err(|error| LichessError::Unreachable(one_line(&error)))?;
    match status.is_success() {
        true => Ok((status, body.to_vec())),
        false => Err(LichessError::Status {
            status: status.as_u16(),
            answer: String::from_utf8_lossy(&body).into_owned(),
        }),
    }
}
