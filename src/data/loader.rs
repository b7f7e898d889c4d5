//! Loads batches of examples of any kind ([`Examples`]) from shards and chunks. The examples are
//! weighted and shuffled. Their order depends only on the configuration, and loading can resume at
//! any batch.
//!
//! An epoch makes [`Sampling::spread`] passes over all blocks of all sources. Each pass has its own
//! random order of the blocks and uses a different slice of every game's samples. The sequence of
//! blocks is split into groups of about [`Sampling::group`] samples. The samples of a group are
//! decoded by many threads, shuffled and split into batches; a remainder that does not fill a batch
//! is dropped. One group is consumed while the next is decoded, so at most two groups are in
//! memory. Each random choice depends only on the seed and on the choice's place in the order. The
//! timing of threads therefore has no effect, and a checkpoint needs only a [`Cursor`] of three
//! numbers.

mod barren;
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

use super::examples::{Columns, Examples, PositionExamples};
use super::shard::ShardError;
use super::v6::V6Error;

use barren::Barren;
pub use batch::Batch;
use faults::Faults;
use group::Group;
use plan::{BlockId, Plan};
pub use sampling::{Sampling, SourceConfig};

/// Number of batches prepared in advance.
const PREFETCH: usize = 8;

/// The games to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The training games, in an endless sequence of epochs.
    Train,
    /// One pass over the validation games. They are shuffled like the training games, so that the
    /// first few thousand samples cover all sources. The last batch of a group may be smaller.
    Validation,
}

/// A position in the endless sequence of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Number of completed epochs.
    pub epoch: u64,
    /// Number of completed groups in the epoch.
    pub group: u64,
    /// Number of consumed samples in the group.
    pub offset: u64,
}

/// The part of every batch on which one of several processes trains: a range of consecutive
/// samples, equally long for each rank.
///
/// Every process decodes all groups, at a million samples per second and core, but copies only its
/// own samples to batches. The batches are therefore the same for any number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankShard {
    /// Rank of the process, from 0.
    pub rank: usize,
    /// Number of processes.
    pub world_size: usize,
}

impl RankShard {
    /// The whole batch, for a process that trains alone.
    pub const WHOLE: RankShard = RankShard {
        rank: 0,
        world_size: 1,
    };

    /// Returns this rank's part of a range of samples.
    fn part(self, samples: Range<usize>) -> Range<usize> {
        let bound = |rank: usize| samples.start + samples.len() * rank / self.world_size;
        bound(self.rank)..bound(self.rank + 1)
    }
}

/// Why the loader cannot provide batches.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// A shard cannot be read.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A chunk, or one of its records, cannot be read.
    #[error(transparent)]
    Chunk(#[from] V6Error),
    /// A configured number is out of range.
    #[error("{name} is {value}, but must be {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// The setting's value.
        value: f64,
        /// The constraint.
        expected: &'static str,
    },
    /// The data does not fill a single batch.
    #[error(
        "the data gives about {samples} samples an epoch, fewer than one batch of {batch}: add \
         games, or lower `batch`{}",
        or_lower(*.validation)
    )]
    TooFew {
        /// Average number of samples per epoch.
        samples: u64,
        /// Number of samples per batch.
        batch: usize,
        /// Share of the games kept for validation.
        validation: f64,
    },
    /// No source contains any samples.
    #[error(
        "the data contains no samples: check it with `tessera-train stats`, and pack games with `tessera-train pack`"
    )]
    Empty,
    /// No game was selected for validation.
    #[error("no validation games: {}", why_none(*.validation))]
    NothingKept {
        /// Share of the games kept for validation.
        validation: f64,
    },
    /// The cursor's group does not exist, so the cursor belongs to a different configuration.
    #[error(
        "group {group} of epoch {epoch} does not exist (there are {groups}): \
         resume with the data and settings that training began with"
    )]
    Cursor {
        /// The requested epoch.
        epoch: u64,
        /// The requested group.
        group: u64,
        /// Number of groups in the epoch.
        groups: u64,
    },
    /// A thread could not be started.
    #[error("cannot start the loader's threads: {0}")]
    Threads(String),
}

fn or_lower(validation: f64) -> String {
    match validation > 0.0 {
        true => format!(" or `data.validation`, which is {validation}"),
        false => String::new(),
    }
}

fn why_none(validation: f64) -> String {
    match validation > 0.0 {
        true => format!(
            "`data.validation` keeps one game in {:.0}, and selected none of these; raise it and \
             train again, or add games",
            1.0 / validation
        ),
        false => {
            "`data.validation` is 0; set it to a share such as 0.05, and train again".to_owned()
        }
    }
}

/// A batch of this kind of examples.
pub type BatchOf<E> = Batch<<E as Examples>::Columns>;

/// An iterator over batches, which are prepared in advance on its own threads.
pub struct Loader<E: Examples = PositionExamples> {
    batches: Option<Receiver<Result<BatchOf<E>, LoaderError>>>,
    workers: Vec<JoinHandle<()>>,
    /// The approximate number of samples in an epoch.
    pub samples: u64,
    faults: Arc<Faults>,
}

impl<E: Examples> Loader<E> {
    /// Starts preparing one rank's part of every batch of these examples. `batch_size` is the
    /// number of samples in the whole batch.
    ///
    /// # Errors
    /// [`LoaderError`] if a source cannot be opened or a setting is out of range.
    pub fn for_rank(
        examples: E,
        sampling: &Sampling,
        split: Split,
        batch_size: usize,
        cursor: Cursor,
        shard: RankShard,
        threads: usize,
    ) -> Result<Loader<E>, LoaderError> {
        sampling.check(batch_size)?;
        let plan = Plan::new(sampling.clone(), split, source::open(sampling)?, examples);
        let faults = Arc::new(Faults::new(sampling.strict));
        if plan.is_empty() {
            return Err(LoaderError::Empty);
        }
        let samples = plan.samples();
        let validation = sampling.validation;
        if split == Split::Train && samples < batch_size as u64 {
            return Err(LoaderError::TooFew {
                samples,
                batch: batch_size,
                validation,
            });
        }
        let groups = plan.groups(cursor.epoch).len() as u64;
        if cursor.group >= groups.max(1) {
            return Err(LoaderError::Cursor {
                epoch: cursor.epoch,
                group: cursor.group,
                groups,
            });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|thread| format!("decode-{thread}"))
            .build()
            .map_err(|error| LoaderError::Threads(error.to_string()))?;
        // The channel needs no capacity: the decoder holds one of the two groups, and the batcher
        // the other.
        let (groups_out, groups_in) = bounded(0);
        let (batches_out, batches_in) = bounded(PREFETCH);
        let noted = faults.clone();
        let decoder = move || decode(&plan, &noted, &pool, cursor, &groups_out);
        let cutter = Cutter {
            split,
            validation,
            batch_size,
            start: cursor,
            shard,
        };
        let batcher = move || cutter.cut(&groups_in, &batches_out);
        let workers = [spawn("decoder", decoder)?, spawn("batcher", batcher)?];
        Ok(Loader {
            batches: Some(batches_in),
            workers: workers.into(),
            samples,
            faults,
        })
    }

    /// Returns the number of unusable records skipped since this loader started.
    pub fn skipped(&self) -> u64 {
        self.faults.count()
    }
}

impl<E: Examples> Iterator for Loader<E> {
    type Item = Result<BatchOf<E>, LoaderError>;

    /// Waits for the next batch. If an error occurs, it is the last item.
    ///
    /// # Panics
    /// If a thread of the loader panicked.
    fn next(&mut self) -> Option<Result<BatchOf<E>, LoaderError>> {
        if let Ok(batch) = self.batches.as_ref()?.recv() {
            return Some(batch);
        }
        self.batches = None;
        for worker in self.workers.drain(..) {
            // A panic must not be mistaken for the end of the data.
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
        None
    }
}

impl<E: Examples> Drop for Loader<E> {
    fn drop(&mut self) {
        // Once its receiver is dropped, the batcher stops, and then the decoder.
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

/// Decodes group after group until the receiver is dropped.
fn decode<E: Examples>(
    plan: &Plan<E>,
    faults: &Faults,
    pool: &rayon::ThreadPool,
    start: Cursor,
    groups_out: &Sender<Result<Group<E::Example>, LoaderError>>,
) {
    let mut first = start.group;
    let mut barren = Barren::default();
    for epoch in start.epoch.. {
        let groups = plan.groups(epoch);
        let count = groups.len() as u64;
        for (number, blocks) in (0..).zip(groups).skip(first as usize) {
            let is_last = number + 1 == count;
            let group =
                pool.install(|| Group::decode(plan, faults, epoch, number, is_last, &blocks));
            if let Ok(group) = &group {
                tell_of_silence(plan, &mut barren, &blocks, group);
            }
            let failed = group.is_err();
            if groups_out.send(group).is_err() || failed {
                return;
            }
        }
        if plan.split == Split::Validation {
            return;
        }
        first = 0;
    }
}

/// Warns about sources that have unexpectedly given no samples up to this group.
fn tell_of_silence<E: Examples>(
    plan: &Plan<E>,
    barren: &mut Barren,
    blocks: &[BlockId],
    group: &Group<E::Example>,
) {
    for (&id, found) in blocks.iter().zip(group.found()) {
        if let Some(expected) = barren.note(id.source, plan.expected(id), found) {
            let name = plan.source(id).path().display().to_string();
            let warning = format!(
                "{name} has given nothing that this network learns from, \
                 where about {expected:.0} samples were expected"
            );
            // A damaged shard has been reported as such, and each epoch has its own loader.
            faults::warn_once(name, warning);
        }
    }
}

/// Splits groups into batches.
struct Cutter {
    split: Split,
    /// Share of the games kept for validation.
    validation: f64,
    batch_size: usize,
    start: Cursor,
    shard: RankShard,
}

impl Cutter {
    /// Splits groups into batches until the receiver is dropped.
    fn cut<C: Columns>(
        &self,
        groups_in: &Receiver<Result<Group<C::Example>, LoaderError>>,
        batches_out: &Sender<Result<Batch<C>, LoaderError>>,
    ) where
        C::Example: Send,
    {
        let mut offset = self.start.offset as usize;
        // Whether the epoch has given no batch so far. Such an epoch is an error, because training
        // would wait forever.
        let mut is_barren = (self.start.group, self.start.offset) == (0, 0);
        let least = match self.split {
            Split::Train => self.batch_size,
            Split::Validation => 1,
        };
        for group in groups_in {
            let group = match group {
                Ok(group) => group,
                Err(error) => {
                    let _ = batches_out.send(Err(error));
                    return;
                }
            };
            while group.len().saturating_sub(offset) >= least {
                let end = group.len().min(offset + self.batch_size);
                let rest = group.len() - end;
                let next = if rest >= least {
                    group.cursor(end)
                } else {
                    group.end()
                };
                let part = self.shard.part(offset..end);
                let mut batch = Batch::<C>::gather(group.samples(part.clone()), next);
                (batch.first, batch.global_batch) = (part.start - offset, end - offset);
                if batches_out.send(Ok(batch)).is_err() {
                    return;
                }
                offset = end;
                is_barren = false;
            }
            offset = 0;
            if group.is_last {
                if is_barren {
                    let _ = batches_out.send(Err(self.barren(group.len())));
                    return;
                }
                is_barren = true;
            }
        }
    }

    /// Returns the error for an epoch without a batch, whose last group has `samples` samples.
    fn barren(&self, samples: usize) -> LoaderError {
        match self.split {
            Split::Train => LoaderError::TooFew {
                samples: samples as u64,
                batch: self.batch_size,
                validation: self.validation,
            },
            Split::Validation => LoaderError::NothingKept {
                validation: self.validation,
            },
        }
    }
}
