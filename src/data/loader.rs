//! Shards and chunks to batches: shuffled, weighted, in an order that depends
//! on the configuration alone and can be resumed anywhere.
//!
//! An epoch goes through all blocks of all sources [`Sampling::spread`] times, each
//! time in another random order and for another slice of every game's samples.
//! That order is cut into groups of about [`Sampling::group`] samples. A group is decoded whole by
//! many threads, shuffled, and cut into batches; what is left over at its end,
//! less than a batch, is dropped. While one group is handed out the next one
//! is decoded, and never are more than two in memory. Every random choice is
//! drawn from the seed and the place it is made for, so the threads' timing
//! changes nothing, and a [`Position`] of three numbers is all that a
//! checkpoint needs.

mod batch;
mod faults;
mod group;
mod plan;
mod sampling;
mod source;

use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, Sender, bounded};
use serde::{Deserialize, Serialize};

use super::shard::ShardError;
use super::v6::V6Error;

pub use batch::{Batch, PolicyTargets};
use faults::Faults;
use group::Group;
use plan::Plan;
pub use sampling::{Focus, Sampling, Source};

/// Batches that wait ready for the trainer.
const PREFETCH: usize = 8;

/// Which of the games to draw from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Those to learn from, epoch after epoch without end.
    Train,
    /// Those kept apart, once, in the order of the sources; the last batch of a
    /// group may be smaller.
    Validation,
}

/// A place in the endless sequence of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Times all sources have been gone through.
    pub epoch: u64,
    /// Groups of the epoch that have been used up.
    pub group: u64,
    /// Samples of the group that have been used up.
    pub offset: u64,
}

/// Which part of every batch is handed out: the `number`-th, from 0, `of` so many
/// parts of equal size, which follow each other.
///
/// Processes that train together each take a part. All decode all groups, at a
/// million samples a second and core, but gather their own samples alone; so the
/// batches are the same however many processes share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which part.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share { number: 0, of: 1 };

    /// The part of `places`.
    fn part(self, places: Range<usize>) -> Range<usize> {
        let bound = |number: usize| places.start + places.len() * number / self.of;
        bound(self.number)..bound(self.number + 1)
    }
}

/// Why there are no batches.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// A shard cannot be read.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A chunk, or a record of it, cannot be read.
    #[error(transparent)]
    Chunk(#[from] V6Error),
    /// A number of the configuration makes no sense.
    #[error("{name} is {value}, but must be {expected}")]
    Setting {
        /// The number.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// The data does not fill a batch.
    #[error("the data gives about {samples} samples an epoch, fewer than one batch of {batch}")]
    TooFew {
        /// Samples that an epoch gives on average.
        samples: u64,
        /// Samples of a batch.
        batch: usize,
    },
    /// No such group: the configuration is not the one that the position is of.
    #[error(
        "group {group} of epoch {epoch} does not exist (there are {groups}): \
         resume with the data and settings that training began with"
    )]
    Position {
        /// The epoch asked for.
        epoch: u64,
        /// The group asked for.
        group: u64,
        /// How many there are.
        groups: u64,
    },
    /// The system gave no thread.
    #[error("cannot start the loader's threads: {0}")]
    Threads(String),
}

/// Batches, prepared by threads of its own.
pub struct Loader {
    batches: Option<Receiver<Result<Batch, LoaderError>>>,
    workers: Vec<JoinHandle<()>>,
    samples: u64,
    faults: Arc<Faults>,
}

impl Loader {
    /// Starts to prepare batches of `batch_size` samples from `position` on,
    /// decoding on `threads` threads.
    ///
    /// # Errors
    /// [`LoaderError`] if a source cannot be opened or a setting makes no sense.
    pub fn new(
        sampling: &Sampling,
        split: Split,
        batch_size: usize,
        position: Position,
        threads: usize,
    ) -> Result<Loader, LoaderError> {
        Loader::sharing(sampling, split, batch_size, position, Share::WHOLE, threads)
    }

    /// The same for a part of every batch; `batch_size` is that of the whole.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn sharing(
        sampling: &Sampling,
        split: Split,
        batch_size: usize,
        position: Position,
        share: Share,
        threads: usize,
    ) -> Result<Loader, LoaderError> {
        sampling.check(batch_size)?;
        let plan = Plan::new(sampling.clone(), split, source::open(sampling)?);
        let faults = Arc::new(Faults::new(sampling.strict));
        let samples = plan.samples();
        if split == Split::Train && samples < batch_size as u64 {
            return Err(LoaderError::TooFew {
                samples,
                batch: batch_size,
            });
        }
        let groups = plan.groups(position.epoch).len() as u64;
        if position.group >= groups.max(1) {
            return Err(LoaderError::Position {
                epoch: position.epoch,
                group: position.group,
                groups,
            });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|thread| format!("decode-{thread}"))
            .build()
            .map_err(|error| LoaderError::Threads(error.to_string()))?;
        // A channel without room: the decoder holds one group, the batcher the
        // other.
        let (groups_out, groups_in) = bounded(0);
        let (batches_out, batches_in) = bounded(PREFETCH);
        let noted = faults.clone();
        let decoder = move || decode(&plan, &noted, &pool, position, &groups_out);
        let batcher = move || cut(split, batch_size, position, share, &groups_in, &batches_out);
        let workers = [spawn("decoder", decoder)?, spawn("batcher", batcher)?];
        Ok(Loader {
            batches: Some(batches_in),
            workers: workers.into(),
            samples,
            faults,
        })
    }

    /// How many records have been skipped because they cannot be used, since
    /// this loader began.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.faults.count()
    }

    /// About how many samples an epoch gives.
    #[must_use]
    pub fn samples_per_epoch(&self) -> u64 {
        self.samples
    }
}

impl Iterator for Loader {
    type Item = Result<Batch, LoaderError>;

    /// Waits for the next batch. After an error there is none.
    ///
    /// # Panics
    /// If a thread of the loader has.
    fn next(&mut self) -> Option<Result<Batch, LoaderError>> {
        if let Ok(batch) = self.batches.as_ref()?.recv() {
            return Some(batch);
        }
        self.batches = None;
        for worker in self.workers.drain(..) {
            // Training must not take it for the end of the data.
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
        None
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // Without a receiver the batcher ends, and then the decoder.
        self.batches = None;
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LoaderError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| LoaderError::Threads(error.to_string()))
}

/// Decodes group after group until nobody takes them.
fn decode(
    plan: &Plan,
    faults: &Faults,
    pool: &rayon::ThreadPool,
    start: Position,
    groups_out: &Sender<Result<Group, LoaderError>>,
) {
    let mut first = start.group;
    for epoch in start.epoch.. {
        let groups = plan.groups(epoch);
        let count = groups.len() as u64;
        for (number, blocks) in (0..).zip(groups).skip(first as usize) {
            let is_last = number + 1 == count;
            let group =
                pool.install(|| Group::decode(plan, faults, epoch, number, is_last, &blocks));
            let failed = group.is_err();
            if groups_out.send(group).is_err() || failed {
                return;
            }
        }
        if plan.split() == Split::Validation {
            return;
        }
        first = 0;
    }
}

/// Cuts groups into batches until nobody takes them.
fn cut(
    split: Split,
    batch_size: usize,
    start: Position,
    share: Share,
    groups_in: &Receiver<Result<Group, LoaderError>>,
    batches_out: &Sender<Result<Batch, LoaderError>>,
) {
    let mut offset = start.offset as usize;
    // Whether the epoch has given anything; without end it must.
    let mut is_barren = start
        == Position {
            epoch: start.epoch,
            ..Position::default()
        };
    for group in groups_in {
        let group = match group {
            Ok(group) => group,
            Err(error) => {
                let _ = batches_out.send(Err(error));
                return;
            }
        };
        let least = match split {
            Split::Train => batch_size,
            Split::Validation => 1,
        };
        while group.len().saturating_sub(offset) >= least {
            let end = group.len().min(offset + batch_size);
            let rest = group.len() - end;
            let next = if rest >= least {
                group.position(end)
            } else {
                group.end()
            };
            let part = share.part(offset..end);
            let mut batch = Batch::gather(group.samples(part.clone()), next);
            (batch.first, batch.joint) = (part.start - offset, end - offset);
            if batches_out.send(Ok(batch)).is_err() {
                return;
            }
            offset = end;
            is_barren = false;
        }
        offset = 0;
        if group.is_last() && split == Split::Train {
            if is_barren {
                let _ = batches_out.send(Err(LoaderError::TooFew {
                    samples: group.len() as u64,
                    batch: batch_size,
                }));
                return;
            }
            is_barren = true;
        }
    }
}
