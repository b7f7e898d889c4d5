//! Collects games until they fill a shard.

use super::config::header;
use super::context::WorkerContext;
use super::ending::is_lasting_store;
use super::error::CycleError;
use crate::data::record::Record;
use crate::data::shard::{Block, Header, SAMPLES_PER_BLOCK, ShardWriter};
use crate::store::{Name, Put, ShardName, Store, WorkerName};
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Number of attempts to store an object before a worker gives up.
const TRIES: u32 = 12;
/// Pause after the first failure; the pause doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The games of a worker that are not yet in a shard.
pub(super) struct ShardUploader<'a> {
    context: &'a WorkerContext<'a>,
    worker: WorkerName,
    header: Header,
    /// Number of rows in a full shard.
    full: u64,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    generation: u64,
    serial: u64,
    records: Vec<Record>,
    rows: u64,
    since: Instant,
}

/// A shard's worth of games.
struct Batch {
    name: ShardName,
    records: Vec<Record>,
    rows: u64,
    since: Instant,
}

impl<'a> ShardUploader<'a> {
    pub fn new(
        context: &'a WorkerContext<'a>,
        worker: WorkerName,
        full: u64,
        generation: u64,
    ) -> ShardUploader<'a> {
        ShardUploader {
            header: header(worker.as_str()),
            context,
            worker,
            full,
            waiting: Mutex::new(Waiting {
                generation,
                serial: 0,
                records: Vec::new(),
                rows: 0,
                since: Instant::now(),
            }),
        }
    }

    /// Adds a game, and stores a shard once it is full.
    pub fn add(&self, record: Record) -> Result<(), CycleError> {
        let rows = self.header.rules.samples(&record);
        if rows == 0 {
            return Ok(());
        }
        let full = {
            let waiting = &mut *self.waiting.lock();
            waiting.records.push(record);
            waiting.rows += rows;
            (waiting.rows >= self.full).then(|| self.take(waiting))
        };
        full.map_or(Ok(()), |batch| self.put(batch))
    }

    /// Stores the waiting games. Games that are added later belong to this generation.
    pub fn turn(&self, generation: u64) -> Result<(), CycleError> {
        let rest = {
            let waiting = &mut *self.waiting.lock();
            let rest = (waiting.rows > 0).then(|| self.take(waiting));
            waiting.generation = generation;
            rest
        };
        rest.map_or(Ok(()), |batch| self.put(batch))
    }

    /// Stores the waiting games.
    pub fn clear(&self) -> Result<(), CycleError> {
        let generation = self.waiting.lock().generation;
        self.turn(generation)
    }

    fn take(&self, waiting: &mut Waiting) -> Batch {
        let name = ShardName {
            generation: waiting.generation,
            worker: self.worker.clone(),
            serial: waiting.serial,
        };
        waiting.serial += 1;
        Batch {
            name,
            records: std::mem::take(&mut waiting.records),
            rows: std::mem::take(&mut waiting.rows),
            since: std::mem::replace(&mut waiting.since, Instant::now()),
        }
    }

    fn put(&self, batch: Batch) -> Result<(), CycleError> {
        let bytes = self.pack(&batch.records)?;
        let name = batch.name.name();
        put(self.context.store, &name, &bytes)?;
        let rate = batch.rows as f64 / batch.since.elapsed().as_secs_f64();
        let (games, rows) = (batch.records.len(), batch.rows);
        (self.context.tell)(&format!(
            "{name}: {games} games, {rows} rows, {rate:.1} rows/s"
        ));
        Ok(())
    }

    fn pack(&self, records: &[Record]) -> Result<Vec<u8>, CycleError> {
        let folder = TempDir::new().map_err(CycleError::io(std::env::temp_dir()))?;
        let path = folder.path().join("games.shard");
        let mut writer = ShardWriter::create(&path, &self.header)?;
        let (mut first, mut samples) = (0, 0);
        for (place, record) in records.iter().enumerate() {
            samples += self.header.rules.samples(record);
            if samples >= SAMPLES_PER_BLOCK || place + 1 == records.len() {
                let block = Block::new(&records[first..=place], samples);
                writer.append(&block.map_err(CycleError::io(&path))?)?;
                (first, samples) = (place + 1, 0);
            }
        }
        writer.finish()?;
        std::fs::read(&path).map_err(CycleError::io(&path))
    }
}

/// Stores bytes under a name that only this worker uses. Failed requests are retried. If the name
/// already exists, an earlier request has stored the bytes although its response was lost.
pub(super) fn put(store: &Store, name: &Name, bytes: &[u8]) -> Result<(), CycleError> {
    match put_any(store, name, bytes)? {
        Put::New | Put::Repeated => Ok(()),
        Put::Taken => Err(CycleError::Taken(name.clone())),
    }
}

/// Stores bytes under a name that other workers may also use. Failed requests are retried.
pub(super) fn put_any(store: &Store, name: &Name, bytes: &[u8]) -> Result<Put, CycleError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match store.put(name, bytes) {
            Ok(put) => return Ok(put),
            Err(error) if is_lasting_store(&error) => return Err(error.into()),
            Err(error) => tracing::warn!("{error}; trying again in {pause:?}"),
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    Ok(store.put(name, bytes)?)
}
