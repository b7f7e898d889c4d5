//! What actors and reanalysers have in common: many threads that make games, one after
//! the other, with the newest network.

use super::config::CycleConfig;
use super::error::CycleError;
use super::latest::Latest;
use super::networks::Networks;
use super::shelf::Shelf;
use crate::data::record::Record;
use crate::encode::Encoder;
use crate::nn::Backend;
use crate::scoped_threads::join;
use crate::store::{Generations, Store, StoreError, WorkerName};
use rand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two looks at whether to stop.
const BLINK: Duration = Duration::from_millis(50);
/// Time between two lines on the speed.
const TELLS: Duration = Duration::from_secs(60);

/// Where a worker works, and what it is told from outside.
pub struct Post<'a> {
    /// The store.
    pub store: &'a Store,
    /// The worker's name.
    pub name: WorkerName,
    /// Threads that compute.
    pub threads: usize,
    /// Becomes true for the worker to finish what it can at once, and to return.
    pub stop: Arc<AtomicBool>,
    /// Called with what is worth a line.
    pub tell: &'a (dyn Fn(&str) + Sync),
}

impl Post<'_> {
    /// Whether the worker is to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Sleeps, but not past the stop. Whether to go on.
    pub(super) fn wait(&self, seconds: f64) -> bool {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while !self.is_stopped() && Instant::now() < end {
            std::thread::sleep(BLINK.min(end.saturating_duration_since(Instant::now())));
        }
        !self.is_stopped()
    }

    /// The name of this run of the worker, which no other run has.
    pub(super) fn run_name(&self) -> WorkerName {
        self.name.marked(rand::rng().random())
    }
}

/// Whether a store that cannot be asked now may be asked later.
pub(super) fn bear(result: Result<bool, StoreError>) -> Result<bool, CycleError> {
    match result {
        Err(error @ StoreError::Io { .. }) => {
            tracing::warn!("{error}");
            Ok(false)
        }
        result => Ok(result?),
    }
}

/// Makes games until the post is stopped or `until` generations are there. Each of many
/// threads `begin`s with the newest network and then makes one game after the other;
/// `None` says that it was stopped within one.
pub(super) fn work<'a, J>(
    post: &Post,
    config: &CycleConfig,
    until: Option<u64>,
    begin: impl Fn(Arc<Latest>) -> J + Sync,
) -> Result<(), CycleError>
where
    J: FnMut(u64, &dyn Fn() -> bool) -> Result<Option<Record>, CycleError> + 'a,
{
    let mut generations = Generations::default();
    let is_over = |generations: &Generations| {
        let last = generations.last().map(|last| last.number);
        until.is_some_and(|until| last.is_some_and(|last| last >= until))
    };
    let first = loop {
        bear(generations.look(post.store))?;
        if is_over(&generations) {
            return Ok(());
        }
        if let Some(generation) = generations.accepted() {
            break generation.clone();
        }
        if !post.wait(config.poll) {
            return Ok(());
        }
    };
    let networks = Networks::new(post.store, &config.search, post.threads);
    let network = networks.load(&first)?;
    let at_once = concurrency(config, &*network, post.threads);
    let latest = Arc::new(Latest::new(network, first.number));
    let shelf = Shelf::new(post, post.run_name(), config.shard_rows, first.number);
    (post.tell)(&format!(
        "generation {}: {at_once} games at once",
        first.number
    ));
    let over = AtomicBool::new(false);
    let stopped = || over.load(Relaxed) || post.is_stopped();
    let next = AtomicU64::new(0);
    let make = || -> Result<(), CycleError> {
        let mut make = begin(Arc::clone(&latest));
        while !stopped() {
            match make(next.fetch_add(1, Relaxed), &stopped)? {
                Some(record) => shelf.add(record)?,
                None => break,
            }
        }
        Ok(())
    };
    let make = || make().inspect_err(|_| over.store(true, Relaxed));
    let worked = std::thread::scope(|scope| {
        let mut makers = Vec::new();
        for number in 0..at_once {
            let thread = std::thread::Builder::new().name(format!("game {number}"));
            let spawned = thread.spawn_scoped(scope, make);
            makers.push(spawned.map_err(|error| {
                over.store(true, Relaxed);
                CycleError::io("a thread")(error)
            })?);
        }
        let mut current = first.number;
        let mut told = Instant::now();
        let mut follow = || -> Result<(), CycleError> {
            while !stopped() {
                post.wait(config.poll);
                if told.elapsed() >= TELLS {
                    let rate = networks.evaluations() as f64 / told.elapsed().as_secs_f64();
                    (post.tell)(&format!("{rate:.0} evaluations/s"));
                    told = Instant::now();
                }
                bear(generations.look(post.store))?;
                if is_over(&generations) {
                    break;
                }
                let newest = generations.accepted();
                if let Some(newest) = newest.filter(|newest| newest.number != current) {
                    let network = networks.load(newest)?;
                    if !latest.replace(network, newest.number) {
                        return Err(CycleError::Inputs(newest.number));
                    }
                    current = newest.number;
                    shelf.turn(current)?;
                    (post.tell)(&format!("generation {current}"));
                }
            }
            Ok(())
        };
        let followed = follow();
        over.store(true, Relaxed);
        join(makers)?;
        followed
    });
    // What was finished is not lost, whatever went wrong.
    let cleared = shelf.clear();
    worked.and(cleared)
}

/// Games at once: as many as fill the network's batches. Searches in imagination fill
/// batches of their own, each on its game's thread.
fn concurrency(config: &CycleConfig, network: &dyn Backend, threads: usize) -> usize {
    let properties = network.properties();
    let is_merged = properties.encoder != Encoder::Nothing && !config.search.imagination;
    let usual = match is_merged {
        true => properties.recommended_batch * properties.recommended_threads,
        false => threads,
    };
    config.search.concurrency.unwrap_or(usual).max(1)
}
