//! Manages the checkpoints in a run's folder: removes old ones as configured, and finds the newest
//! complete one.

use super::checkpoint::{Checkpoint, CheckpointError};
use super::config::KeepConfig;
use std::path::{Path, PathBuf};

/// Name of the checkpoint folder within a run's folder.
pub(super) const CHECKPOINTS: &str = "checkpoints";

const EXTENSION: &str = "safetensors";
const PREFIX: &str = "step-";

impl Checkpoint {
    /// Reads a checkpoint onto the CPU. `path` is a checkpoint file, a checkpoint folder or a run's
    /// folder. In a folder, the newest complete checkpoint is read, and damaged ones are skipped
    /// with a warning.
    ///
    /// # Errors
    /// [`CheckpointError`], naming the file and its problem.
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        if !path.is_dir() {
            return Checkpoint::read_file(path);
        }
        newest(&folder_in(path))?.ok_or_else(|| CheckpointError::None(path.to_owned()))
    }

    /// Returns the path of a step's checkpoint in a run's folder.
    pub fn place(run: &Path, step: u64) -> PathBuf {
        Folder::new(run.join(CHECKPOINTS), KeepConfig::default()).place(step)
    }

    /// Removes a run's checkpoints after this step.
    ///
    /// # Errors
    /// [`CheckpointError::System`] if the folder cannot be read or changed.
    pub fn remove_later(run: &Path, step: u64) -> Result<(), CheckpointError> {
        let found = list(&run.join(CHECKPOINTS))?;
        for (_, later) in found.iter().filter(|(it, _)| *it > step) {
            std::fs::remove_file(later).map_err(CheckpointError::system("remove", later))?;
        }
        Ok(())
    }

    /// Returns the files from which [`Checkpoint::read`] selects one.
    ///
    /// # Errors
    /// [`CheckpointError::System`] if the folder cannot be read.
    pub fn files(path: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
        if !path.is_dir() {
            return Ok(vec![path.to_owned()]);
        }
        let found = list(&folder_in(path))?;
        Ok(found.into_iter().map(|(_, file)| file).collect())
    }
}

/// Returns the checkpoint folder in a run's folder; any other folder is returned unchanged.
fn folder_in(path: &Path) -> PathBuf {
    let inner = path.join(CHECKPOINTS);
    match inner.is_dir() {
        true => inner,
        false => path.to_owned(),
    }
}

/// The folder that a run writes its checkpoints to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    keep: KeepConfig,
}

impl Folder {
    pub fn new(path: PathBuf, keep: KeepConfig) -> Folder {
        Folder { path, keep }
    }

    /// Returns the path of a step's checkpoint.
    pub fn place(&self, step: u64) -> PathBuf {
        self.path.join(format!("{PREFIX}{step:09}.{EXTENSION}"))
    }

    /// Writes a checkpoint, named after its step, and removes those that are no longer kept.
    ///
    /// # Errors
    /// [`CheckpointError::System`]; older checkpoints are then untouched.
    pub fn write(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        std::fs::create_dir_all(&self.path)
            .map_err(CheckpointError::system("create", &self.path))?;
        let path = self.place(checkpoint.state.step);
        checkpoint.write(&path)?;
        let found = list(&self.path)?;
        // Checkpoints of later steps are obsolete: the run has rolled back, or resumed from an
        // earlier checkpoint because a later one was damaged.
        for (_, old) in found
            .iter()
            .rev()
            .filter(|(step, _)| *step <= checkpoint.state.step)
            .skip(self.keep.newest)
            .filter(|(step, _)| self.keep.every == 0 || step % self.keep.every != 0)
        {
            std::fs::remove_file(old).map_err(CheckpointError::system("remove", old))?;
        }
        Ok(path)
    }
}

/// Returns the newest complete checkpoint in a folder, if any. Damaged checkpoints are skipped with
/// a warning.
///
/// # Errors
/// [`CheckpointError::AllBroken`] if all checkpoints are damaged, or the system's error if they
/// cannot be read.
pub(super) fn newest(folder: &Path) -> Result<Option<Checkpoint>, CheckpointError> {
    let mut first = None;
    for (_, path) in list(folder)?.iter().rev() {
        match Checkpoint::read_file(path) {
            Ok(checkpoint) => {
                if first.is_some() {
                    let step = checkpoint.state.step;
                    tracing::warn!("resuming from the previous checkpoint, of step {step}");
                }
                return Ok(Some(checkpoint));
            }
            Err(error @ CheckpointError::Broken { .. }) => {
                tracing::warn!("{error}");
                first.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match first {
        None => Ok(None),
        Some(newest) => Err(CheckpointError::AllBroken {
            folder: folder.to_owned(),
            newest: Box::new(newest),
        }),
    }
}

/// Returns the checkpoints in a folder with their steps, oldest first. The list is empty if the
/// folder does not exist.
fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, CheckpointError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CheckpointError::system("read", folder)(error)),
    };
    let step_of = |path: &Path| -> Option<u64> {
        let is_ours = path.extension()? == EXTENSION && path.is_file();
        let step = path.file_stem()?.to_str()?.strip_prefix(PREFIX)?;
        step.parse().ok().filter(|_| is_ours)
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((step_of(&path)?, path)))
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::tests::tiny;
    use super::*;

    fn steps(folder: &Path) -> Vec<u64> {
        list(folder)
            .unwrap()
            .into_iter()
            .map(|(step, _)| step)
            .collect()
    }

    fn filled(keep: KeepConfig, last: u64) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().join("checkpoints"), keep);
        let mut checkpoint = tiny().checkpoint().unwrap();
        for step in (0..=last).step_by(10) {
            checkpoint.state.step = step;
            folder.write(&checkpoint).unwrap();
        }
        (place, folder)
    }

    #[test]
    fn the_newest_and_every_so_many_are_kept() {
        let (_place, folder) = filled(
            KeepConfig {
                newest: 2,
                every: 40,
                failures: 0,
            },
            100,
        );
        assert_eq!(steps(&folder.path), [0, 40, 80, 90, 100]);
        let (_place, folder) = filled(KeepConfig::default(), 100);
        assert_eq!(steps(&folder.path), [90, 100]);
    }

    #[test]
    fn later_ones_are_removed_even_if_damaged() {
        let (place, folder) = filled(KeepConfig::default(), 20);
        std::fs::write(folder.place(30), "short").unwrap();
        Checkpoint::remove_later(place.path(), 10).unwrap();
        assert_eq!(steps(&folder.path), [10]);
        Checkpoint::remove_later(&place.path().join("none"), 0).unwrap();
    }

    #[test]
    fn a_damaged_checkpoint_is_passed_over() {
        let (_place, folder) = filled(KeepConfig::default(), 20);
        let step = |folder: &Folder| newest(&folder.path).map(|found| found.unwrap().state.step);
        assert_eq!(step(&folder).unwrap(), 20);
        std::fs::write(folder.place(20), "short").unwrap();
        assert_eq!(step(&folder).unwrap(), 10);
        std::fs::write(folder.place(10), "").unwrap();
        let error = step(&folder).unwrap_err().to_string();
        assert!(error.contains("step-000000020"), "{error}");
    }

    #[test]
    fn damaged_later_ones_take_no_place() {
        let one = KeepConfig {
            newest: 1,
            ..KeepConfig::default()
        };
        let (_place, folder) = filled(one, 10);
        std::fs::write(folder.place(40), "short").unwrap();
        let mut checkpoint = tiny().checkpoint().unwrap();
        checkpoint.state.step = 20;
        folder.write(&checkpoint).unwrap();
        assert_eq!(steps(&folder.path), [20, 40]);
        assert_eq!(newest(&folder.path).unwrap().unwrap().state.step, 20);
    }

    #[test]
    fn a_checkpoint_that_cannot_be_written_leaves_the_others() {
        let (_place, folder) = filled(KeepConfig::default(), 20);
        std::fs::create_dir(folder.place(30)).unwrap();
        let mut checkpoint = tiny().checkpoint().unwrap();
        checkpoint.state.step = 30;
        assert!(folder.write(&checkpoint).is_err());
        assert_eq!(steps(&folder.path), [10, 20]);
        let files = std::fs::read_dir(&folder.path).unwrap().count();
        assert_eq!(files, 3, "nothing unfinished is left behind");
    }
}
