//! Resumes from the store's newest generation.

use super::Learner;
use super::lineage::{Lineage, set_aside};
use crate::cycle::CycleError;
use crate::cycle::context::WorkerContext;
use crate::store::{Generation, Name, Store};
use crate::train::{Checkpoint, TrainConfig};
use std::path::Path;
use tempfile::TempDir;

impl Learner<'_> {
    /// Ensures that the run in the folder descends from the newest generation; if it does not,
    /// fetches that generation's checkpoint.
    pub(super) fn restore(
        &self,
        context: &WorkerContext,
        base: &TrainConfig,
        last: &Generation,
    ) -> Result<(), CycleError> {
        let run = self.config.run_folder();
        let lineage = Lineage::read(&run)?;
        let step = Checkpoint::read(&run).ok().map(|it| it.state.step);
        let most = last.steps + base.steps;
        let goes_on = step.is_some_and(|step| match &lineage {
            Some(lineage) => lineage.holds(last) && step >= last.steps,
            // The folder was written by an earlier version, which wrote no note.
            None => (last.steps..=most).contains(&step),
        });
        if !goes_on {
            let number = last.number;
            let fetched = fetch(context.store, number)?;
            let fetched = fetched.ok_or_else(|| CycleError::NoCheckpoint {
                number,
                folder: run.clone(),
            })?;
            let is_of_store = match &lineage {
                Some(lineage) => lineage.is_of(context.store, self.manifest())?,
                None => step.is_none_or(|step| step <= most),
            };
            if !is_of_store {
                self.set_aside(context)?;
            }
            (context.tell)(&format!(
                "resuming from the store's checkpoint of generation {number}"
            ));
            Checkpoint::remove_later(&run, fetched.state.step)?;
            keep(&fetched, &run)?;
        }
        // The note is written last: if the learner is killed before that, it repeats these steps.
        let is_noted = goes_on && lineage.is_some();
        match is_noted {
            true => Ok(()),
            false => Lineage::of([last]).write(&run),
        }
    }

    /// Moves the run's folder aside, because it belongs to another store.
    pub(super) fn set_aside(&self, context: &WorkerContext) -> Result<(), CycleError> {
        let run = self.config.run_folder();
        let aside = set_aside(&run)?;
        (context.tell)(&format!(
            "{} holds no run of this store, and is {} from now on",
            run.display(),
            aside.display()
        ));
        Ok(())
    }
}

/// Returns the checkpoint of a generation, if the store contains it.
pub(super) fn fetch(store: &Store, number: u64) -> Result<Option<Checkpoint>, CycleError> {
    let Some(bytes) = store.get(&Name::checkpoint(number))? else {
        return Ok(None);
    };
    let folder = TempDir::new().map_err(CycleError::io(std::env::temp_dir()))?;
    let path = folder.path().join(format!("{number:06}.safetensors"));
    std::fs::write(&path, bytes).map_err(CycleError::io(&path))?;
    Ok(Some(Checkpoint::read(&path)?))
}

/// Writes a checkpoint to the place where its run looks for it.
pub(super) fn keep(checkpoint: &Checkpoint, run: &Path) -> Result<(), CycleError> {
    let place = Checkpoint::place(run, checkpoint.state.step);
    let folder = place.parent().unwrap_or(run);
    std::fs::create_dir_all(folder).map_err(CycleError::io(folder))?;
    Ok(checkpoint.write(&place)?)
}
