//! Shards in object stores: Amazon S3 and whatever speaks its protocol, and
//! plain web servers.
//!
//! Requests that fail are repeated with growing pauses by the object_store
//! crate, also where an answer breaks off midway. What will be read soon is
//! asked for ahead of time, so that threads decode while answers travel; at
//! most [`AHEAD`] blocks of a process lie in memory unread.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, parse_url_opts};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use url::Url;

/// Blocks that are asked for ahead. Blocks are of a few hundred kilobytes: at
/// 50 ms an answer, 16 of them are 100 MB/s, some 20 million samples.
const AHEAD: usize = 16;

static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(AHEAD)));

/// Where requests run.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    // Of the two that rustls has, ring is the one that is quick to build. A
    // program that has chosen before keeps its choice.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("object-store")
        .enable_all()
        .build()
});

fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// What is asked for: offset and length.
type Span = (u64, u64);

/// The bytes of a span with the room they take; none where a reader was faster.
type Fetched = Option<(Vec<u8>, OwnedSemaphorePermit)>;

/// A span asked for ahead.
#[derive(Debug)]
struct Ahead {
    /// Whether a reader, or the request itself, has taken the work.
    is_taken: Arc<AtomicBool>,
    answer: JoinHandle<io::Result<Fetched>>,
}

/// An object in a store.
#[derive(Debug)]
pub(super) struct Object {
    store: Arc<dyn ObjectStore>,
    key: Key,
    size: u64,
    ahead: Mutex<HashMap<Span, Ahead>>,
}

impl Object {
    /// Finds what an address names.
    ///
    /// Credentials, region and endpoint are taken from the environment
    /// variables that all of Amazon's tools use (AWS_ACCESS_KEY_ID,
    /// AWS_ENDPOINT_URL and so on).
    pub fn open(address: &str) -> io::Result<Object> {
        let url = Url::parse(address).map_err(io::Error::other)?;
        let runtime = runtime()?;
        let variables: Vec<(String, String)> = std::env::vars()
            .filter(|(name, _)| name.starts_with("AWS_"))
            .collect();
        let is_plain = |text: &str| text.starts_with("http://");
        let plain = is_plain(url.as_str())
            || variables
                .iter()
                .any(|(name, value)| name.starts_with("AWS_ENDPOINT_URL") && is_plain(value));
        // Whoever writes http:// means it.
        let plain = plain.then(|| ("allow_http".to_owned(), "true".to_owned()));
        let options = variables.into_iter().chain(plain);
        let (store, key) = parse_url_opts(&url, options).map_err(io::Error::other)?;
        let store: Arc<dyn ObjectStore> = Arc::from(store);
        let found = runtime.block_on(store.head(&key)).map_err(failure)?;
        Ok(Object {
            store,
            key,
            size: found.size,
            ahead: Mutex::default(),
        })
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let runtime = runtime()?;
        let span = (offset, length);
        let ahead = self.ahead.lock().remove(&span);
        // One that still waits for room may wait for this very thread.
        if let Some(ahead) = ahead.filter(|ahead| ahead.is_taken.swap(true, Ordering::AcqRel)) {
            let answer = runtime.block_on(ahead.answer).map_err(io::Error::other)?;
            if let Some((bytes, _room)) = answer? {
                return Ok(bytes);
            }
        }
        runtime.block_on(fetch(Arc::clone(&self.store), self.key.clone(), span))
    }

    pub fn announce(&self, offset: u64, length: u64) {
        let Ok(runtime) = runtime() else {
            // Reading will tell.
            return;
        };
        let span = (offset, length);
        self.ahead.lock().entry(span).or_insert_with(|| {
            let is_taken = Arc::new(AtomicBool::new(false));
            let (store, key) = (Arc::clone(&self.store), self.key.clone());
            let flag = Arc::clone(&is_taken);
            let answer = runtime.spawn(async move {
                let room = Arc::clone(&ROOM).acquire_owned().await;
                let room = room.map_err(io::Error::other)?;
                if flag.swap(true, Ordering::AcqRel) {
                    return Ok(None);
                }
                let bytes = fetch(store, key, span).await?;
                Ok(Some((bytes, room)))
            });
            Ahead { is_taken, answer }
        });
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        for ahead in self.ahead.lock().values() {
            ahead.answer.abort();
        }
    }
}

async fn fetch(
    store: Arc<dyn ObjectStore>,
    key: Key,
    (offset, length): Span,
) -> io::Result<Vec<u8>> {
    let range = offset..offset + length;
    let bytes = store.get_range(&key, range).await.map_err(failure)?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}

fn failure(error: object_store::Error) -> io::Error {
    match error {
        object_store::Error::NotFound { .. } => io::Error::new(
            io::ErrorKind::NotFound,
            "the store has no object of this name",
        ),
        error => io::Error::other(error),
    }
}
