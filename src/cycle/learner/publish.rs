//! Publishes a generation to the store.

use super::lineage::Lineage;
use super::restore::fetch;
use super::{Learner, Learning};
use crate::cycle::CycleError;
use crate::cycle::context::WorkerContext;
use crate::cycle::networks::digest;
use crate::cycle::shard_uploader::put_any;
use crate::store::{Generation, Name, Put, Store};
use crate::torch::ExportPrecision;
use crate::train::Checkpoint;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The checkpoint that was stored for the next generation.
pub(super) struct Claim {
    pub checkpoint: Checkpoint,
    /// Whether this learner stored the checkpoint; false if another one was faster.
    pub is_own: bool,
}

impl Learner<'_> {
    /// Stores a checkpoint, if enabled. If there are several learners, all of them continue with
    /// the checkpoint that was stored first.
    pub(super) fn claim(
        &self,
        store: &Store,
        number: u64,
        checkpoint: &Path,
    ) -> Result<Claim, CycleError> {
        if self.config.learner.checkpoints {
            let bytes = std::fs::read(checkpoint).map_err(CycleError::io(checkpoint))?;
            let name = Name::checkpoint(number);
            if put_any(store, &name, &bytes)? == Put::Taken {
                return Ok(Claim {
                    checkpoint: fetch(store, number)?.ok_or_else(taken(name))?,
                    is_own: false,
                });
            }
        }
        Ok(Claim {
            checkpoint: Checkpoint::read(checkpoint)?,
            is_own: true,
        })
    }

    /// Stores a checkpoint's network and then its manifest. Returns whether this learner was the
    /// first to publish the generation.
    pub(super) fn publish(
        &mut self,
        context: &WorkerContext,
        last: Option<&Generation>,
        generation: Generation,
        claim: Claim,
        seconds: [Duration; 2],
    ) -> Result<bool, CycleError> {
        let number = generation.number;
        let name = generation.network();
        let folder = TempDir::new().map_err(CycleError::io(std::env::temp_dir()))?;
        let path = folder.path().join("network.pt");
        let network = claim.checkpoint.into_network(false)?;
        network.write(ExportPrecision::default(), &path)?;
        let mut bytes = std::fs::read(&path).map_err(CycleError::io(&path))?;
        let mut is_own = claim.is_own;
        if put_any(context.store, &name, &bytes)? == Put::Taken {
            // Without stored checkpoints, the learner that stored the network first has won. With
            // them, all learners export the same checkpoint, and a stored network differs only if
            // another version of the program wrote it. In both cases, the stored file is kept, and
            // the manifest contains its hash.
            is_own &= self.config.learner.checkpoints;
            bytes = context.store.get(&name)?.ok_or_else(taken(name))?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let generation = Generation {
            sha256: digest(&bytes),
            time: now.unwrap_or_default().as_secs(),
            ..generation
        };
        // The note is written before the manifest, so that it contains the store's newest
        // generation whenever the learner is killed. If another learner won, its generation is not
        // in the note, and its checkpoint will be fetched.
        let own = is_own.then_some(&generation);
        Lineage::of(last.into_iter().chain(own)).write(&self.config.run_folder())?;
        let json = generation.to_json();
        if number == 0 && self.config.gate.is_some() {
            // The initial network has no opponent and is accepted at once. Its candidate's manifest
            // is written last, to mark completion.
            put_any(context.store, &Name::generation(0), &json)?;
        }
        let is_first = put_any(context.store, &self.manifest()(number), &json)? != Put::Taken;
        if is_first {
            let seconds = seconds.map(|time| time.as_secs_f64());
            (self.observe)(&Learning::Published {
                generation,
                seconds,
            });
        } else {
            tracing::warn!("another learner was faster with generation {number}");
        }
        Ok(is_first)
    }
}

/// Returns the error for a file that could not be written because it existed, but that has since
/// vanished.
fn taken(name: Name) -> impl FnOnce() -> CycleError {
    || CycleError::Missing {
        name,
        what: "taken, but not there",
    }
}
