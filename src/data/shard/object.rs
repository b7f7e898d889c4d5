//! Reads shards from object stores: Amazon S3, compatible stores, and plain web servers.
//!
//! The object_store crate retries failed requests and interrupted responses with exponential
//! backoff. Blocks that will be read soon are prefetched, so that decoding overlaps with requests;
//! each process holds at most [`AHEAD`] unread blocks in memory.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::store::cloud::{self, connect, runtime};

/// Maximum number of prefetched blocks. A block has a few hundred kilobytes. With a latency of 50
/// ms per response, 16 blocks in flight give 100 MB/s, which is about 20 million samples per
/// second.
const AHEAD: usize = 16;

static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(AHEAD)));

/// A requested range, as offset and length.
type Span = (u64, u64);

/// The bytes of a range with their memory permit; `None` if a reader fetches the range itself.
type Fetched = Option<(Vec<u8>, OwnedSemaphorePermit)>;

/// A range that is being prefetched.
#[derive(Debug)]
struct Ahead {
    /// Whether the range has been claimed, either by the prefetch or by a reader that fetches it
    /// itself.
    is_taken: Arc<AtomicBool>,
    answer: JoinHandle<io::Result<Fetched>>,
}

/// An object in an object store.
#[derive(Debug)]
pub(super) struct Object {
    store: Arc<dyn ObjectStore>,
    key: Key,
    size: u64,
    ahead: Mutex<HashMap<Span, Ahead>>,
}

impl Object {
    /// Opens the object at an address, using [`connect`].
    pub fn open(address: &str) -> io::Result<Object> {
        let (store, key) = connect(address)?;
        let runtime = runtime()?;
        let found = runtime.block_on(store.head(&key));
        let found = found.map_err(|error| failure(error, false))?;
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
        // If the prefetch is still waiting for memory, this thread must not wait for the prefetch:
        // the memory may become free only when this thread reads further blocks.
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
            // A read will report the error.
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
    let bytes = store.get_range(&key, range).await;
    // The shard was opened, so the store has answered.
    let bytes = bytes.map_err(|error| failure(error, true))?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}

fn failure(error: object_store::Error, has_answered: bool) -> io::Error {
    match error {
        object_store::Error::NotFound { .. } => io::Error::new(
            io::ErrorKind::NotFound,
            "the store has no object of this name",
        ),
        error => cloud::failure(error, has_answered),
    }
}
