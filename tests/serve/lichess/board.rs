//! Lichess's side of the external-engine protocol: the site, the broker, and users with analysis
//! boards.

use crate::support::wait_until;
use crate::waiting::PATIENCE;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tokio_stream::StreamExt;

/// A token with both scopes.
pub const TOKEN: &str = "lip_both";
/// A token without scopes.
pub const WEAK_TOKEN: &str = "lip_none";
/// The time for which the broker keeps a poll open.
const POLL: Duration = Duration::from_secs(1);

type Shared = State<Arc<Desk>>;
/// A status and a response body.
type Refusal = (StatusCode, String);

/// The site and the broker, at a single address.
pub struct Lichess {
    pub address: String,
    desk: Arc<Desk>,
    runtime: Runtime,
}

/// A user's analysis request; dropping it disconnects the user.
pub struct Analysis {
    lines: mpsc::UnboundedReceiver<String>,
    runtime: Handle,
}

#[derive(Default)]
struct Desk {
    engines: Mutex<Vec<Value>>,
    waiting: Mutex<VecDeque<Job>>,
    running: Mutex<HashMap<String, Job>>,
    failures: Mutex<VecDeque<u16>>,
    news: Notify,
    jobs: AtomicUsize,
}

struct Job {
    id: String,
    work: Value,
    lines: mpsc::UnboundedSender<String>,
}

impl Lichess {
    /// Starts the stand-in with these engines registered.
    pub fn start(engines: &[Value]) -> Lichess {
        let runtime = Runtime::new().unwrap();
        let desk = Arc::new(Desk {
            engines: Mutex::new(engines.to_vec()),
            ..Desk::default()
        });
        let router = Router::new()
            .route("/api/external-engine", get(list).post(create))
            .route("/api/external-engine/{id}", put(update))
            .route("/api/external-engine/work", post(acquire))
            .route("/api/external-engine/work/{id}", post(submit))
            .layer(from_fn_with_state(desk.clone(), fail))
            .with_state(desk.clone());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Lichess {
            address,
            desk,
            runtime,
        }
    }

    /// Makes the next requests fail with these statuses.
    pub fn fail(&self, statuses: &[u16]) {
        self.desk.failures.lock().unwrap().extend(statuses);
    }

    /// Returns the number of outstanding failures.
    pub fn failures(&self) -> usize {
        self.desk.failures.lock().unwrap().len()
    }

    pub fn engines(&self) -> Vec<Value> {
        self.desk.engines.lock().unwrap().clone()
    }

    /// Returns the engine with this name, once its registration has a secret.
    pub fn registered(&self, name: &str) -> Value {
        let mut known = None;
        wait_until("the engine is registered", || {
            known = self
                .engines()
                .into_iter()
                .find(|engine| engine["name"] == name && engine["providerSecret"].is_string());
            known.is_some()
        });
        known.unwrap()
    }

    /// Queues a user's request for the first provider that polls.
    pub fn ask(&self, work: Value) -> Analysis {
        let (sender, lines) = mpsc::unbounded_channel();
        let number = self.desk.jobs.fetch_add(1, Relaxed);
        self.desk.waiting.lock().unwrap().push_back(Job {
            id: format!("job{number}"),
            work,
            lines: sender,
        });
        self.desk.news.notify_one();
        Analysis {
            lines,
            runtime: self.runtime.handle().clone(),
        }
    }
}

impl Analysis {
    /// Returns the next line, or `None` after the last.
    pub fn next(&mut self) -> Option<String> {
        let line = async { timeout(PATIENCE, self.lines.recv()).await };
        self.runtime.block_on(line).expect("no line came")
    }

    /// Returns all remaining lines.
    pub fn all(mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Desk {
    /// Rejects a request whose token lacks the scopes.
    fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let token = headers.get(header::AUTHORIZATION);
        let token = token.and_then(|token| token.to_str().ok()?.strip_prefix("Bearer "));
        let (status, error) = match token {
            Some(TOKEN) => return Ok(()),
            Some(WEAK_TOKEN) => (StatusCode::FORBIDDEN, "Missing scope: engine:read"),
            _ => (StatusCode::UNAUTHORIZED, "No such token"),
        };
        Err((status, json!({"error": error}).to_string()))
    }

    /// Returns the next request whose user is still connected.
    fn take(&self) -> Option<Job> {
        let mut waiting = self.waiting.lock().unwrap();
        loop {
            let job = waiting.pop_front()?;
            if !job.lines.is_closed() {
                return Some(job);
            }
        }
    }
}

/// Rejects a registration that violates the documented limits.
fn validate(registration: &Value) -> Result<(), Refusal> {
    let length = |name: &str| registration[name].as_str().map_or(0, str::len);
    let number = |name: &str| registration[name].as_u64().unwrap_or(0);
    let is_valid = (3..=200).contains(&length("name"))
        && (16..=1024).contains(&length("providerSecret"))
        && (1..=65_536).contains(&number("maxThreads"))
        && (1..=1_048_576).contains(&number("maxHash"))
        && registration["variants"] == json!(["chess"]);
    match is_valid {
        true => Ok(()),
        false => Err((StatusCode::BAD_REQUEST, registration.to_string())),
    }
}

async fn fail(State(desk): Shared, request: Request, next: Next) -> Response {
    let failure = desk.failures.lock().unwrap().pop_front();
    match failure {
        Some(status) => StatusCode::from_u16(status).unwrap().into_response(),
        None => next.run(request).await,
    }
}

async fn list(State(desk): Shared, headers: HeaderMap) -> Result<Json<Vec<Value>>, Refusal> {
    desk.check(&headers)?;
    let mut engines = desk.engines.lock().unwrap().clone();
    for engine in &mut engines {
        // Secrets are never returned.
        engine.as_object_mut().unwrap().remove("providerSecret");
    }
    Ok(Json(engines))
}

async fn create(
    State(desk): Shared,
    headers: HeaderMap,
    Json(mut engine): Json<Value>,
) -> Result<Json<Value>, Refusal> {
    desk.check(&headers)?;
    validate(&engine)?;
    let mut engines = desk.engines.lock().unwrap();
    engine["id"] = json!(format!("eei_{}", engines.len()));
    engines.push(engine.clone());
    Ok(Json(engine))
}

async fn update(
    State(desk): Shared,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(mut engine): Json<Value>,
) -> Result<Json<Value>, Refusal> {
    desk.check(&headers)?;
    validate(&engine)?;
    let mut engines = desk.engines.lock().unwrap();
    let known = engines.iter_mut().find(|engine| engine["id"] == id);
    let known = known.ok_or((StatusCode::NOT_FOUND, id.clone()))?;
    engine["id"] = json!(id);
    known.clone_from(&engine);
    Ok(Json(engine))
}

async fn acquire(State(desk): Shared, headers: HeaderMap, Json(poll): Json<Value>) -> Response {
    // The broker is on another domain and must not receive the token.
    assert!(!headers.contains_key(header::AUTHORIZATION));
    let engine = {
        let engines = desk.engines.lock().unwrap();
        let secret = &poll["providerSecret"];
        let mut known = engines.iter().filter(|it| it["providerSecret"] == *secret);
        known.next().cloned()
    };
    let job = async {
        loop {
            match desk.take() {
                Some(job) if engine.is_some() => return job,
                _ => desk.news.notified().await,
            }
        }
    };
    let Ok(job) = timeout(POLL, job).await else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let answer = json!({"id": job.id, "work": job.work, "engine": engine});
    desk.running.lock().unwrap().insert(job.id.clone(), job);
    Json(answer).into_response()
}

async fn submit(
    State(desk): Shared,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> StatusCode {
    let Some(job) = desk.running.lock().unwrap().remove(&id) else {
        return StatusCode::NOT_FOUND;
    };
    if headers
        .get(header::CONTENT_TYPE)
        .is_none_or(|it| it != "text/plain")
    {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    let mut body = body.into_data_stream();
    let mut rest = String::new();
    loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            () = job.lines.closed() => None,
        };
        let Some(Ok(piece)) = piece else {
            return StatusCode::OK;
        };
        rest.push_str(std::str::from_utf8(&piece).unwrap());
        while let Some((line, others)) = rest.split_once('\n') {
            let _ = job.lines.send(line.to_owned());
            rest = others.to_owned();
        }
    }
}
