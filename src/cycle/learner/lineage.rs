//! Records the generation from which the run in the learner's folder descends.
//!
//! The folder and the store may be deleted, changed or restored independently. If a learner always
//! resumed the run in its folder, it could publish networks that do not descend from the store's
//! newest generation. A note stored with the checkpoints therefore names the generations from which
//! they may descend.

use crate::atomic_file;
use crate::cycle::CycleError;
use crate::store::{Generation, Name, Store, StoreError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the note in the run's folder.
const NOTE: &str = "lineage.json";

/// The manifests of the generations from which a run's checkpoints may descend: the last published
/// generation and, as soon as it is about to be published, the next one. No matter when the learner
/// is killed, the store's newest generation is therefore among them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Lineage(Vec<Generation>);

impl Lineage {
    pub fn of<'a>(generations: impl IntoIterator<Item = &'a Generation>) -> Lineage {
        Lineage(generations.into_iter().cloned().collect())
    }

    /// Reads the note in a run's folder. Returns `None` if it is missing, as in folders written by
    /// earlier versions.
    ///
    /// # Errors
    /// [`CycleError::Io`] if the note cannot be read.
    pub fn read(run: &Path) -> Result<Option<Lineage>, CycleError> {
        let path = run.join(NOTE);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(CycleError::io(&path))?,
        };
        let read = serde_json::from_slice(&text).map(Lineage);
        let read = read.inspect_err(|error| tracing::warn!("{}: {error}", path.display()));
        Ok(read.ok())
    }

    /// Writes the note atomically.
    ///
    /// # Errors
    /// [`CycleError::Io`] if the note cannot be written.
    pub fn write(&self, run: &Path) -> Result<(), CycleError> {
        let path = run.join(NOTE);
        let text = serde_json::to_vec_pretty(&self.0).expect("plain data");
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(run)?;
            atomic_file::write(&path, &text)
        };
        write().map_err(CycleError::io(&path))
    }

    /// Returns whether the run descends from this generation.
    pub fn holds(&self, generation: &Generation) -> bool {
        self.0.iter().any(|own| is_same(own, generation))
    }

    /// Returns whether the run belongs to this store, that is, whether it descends from one of the
    /// store's generations, however old, or is untrained. `name` returns the name of a generation's
    /// manifest.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    pub fn is_of(&self, store: &Store, name: fn(u64) -> Name) -> Result<bool, StoreError> {
        for own in &self.0 {
            let there = store.manifest(&name(own.number), own.number)?;
            if there.is_some_and(|there| is_same(own, &there)) {
                return Ok(true);
            }
        }
        Ok(self.0.is_empty())
    }
}

/// Returns whether two manifests describe the same network. The gate's verdict is ignored, because
/// it is added later, and so is the time, because concurrent learners record different times.
fn is_same(one: &Generation, other: &Generation) -> bool {
    (one.number, &one.sha256) == (other.number, &other.sha256)
}

/// Renames a run's folder and returns the new path. Nothing is deleted.
///
/// # Errors
/// [`CycleError::Io`] if the folder cannot be renamed.
pub(super) fn set_aside(run: &Path) -> Result<PathBuf, CycleError> {
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    let free = (1..)
        .map(|number: u64| run.with_file_name(format!("{name}-{number}")))
        .find(|path| !path.exists())
        .expect("numbers do not run out");
    std::fs::rename(run, &free).map_err(CycleError::io(run))?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(number: u64, digit: &str) -> Generation {
        Generation {
            sha256: digit.repeat(64),
            ..Generation::unfinished(number)
        }
    }

    #[test]
    fn a_note_tells_a_store_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        assert_eq!(Lineage::read(&run).unwrap(), None);
        let (last, next) = (generation(4, "a"), generation(5, "b"));
        let lineage = Lineage::of([&last, &next]);
        lineage.write(&run).unwrap();
        assert_eq!(Lineage::read(&run).unwrap(), Some(lineage));
        let lineage = Lineage::read(&run).unwrap().unwrap();
        assert!(lineage.holds(&last) && lineage.holds(&next));
        let judged = Generation { time: 7, ..next };
        assert!(lineage.holds(&judged));
        assert!(!lineage.holds(&generation(5, "c")));
        assert!(!lineage.holds(&generation(6, "b")));

        let store = Store::open(&folder.path().join("store")).unwrap();
        let is_of = |lineage: &Lineage| lineage.is_of(&store, Name::generation).unwrap();
        assert!(!is_of(&lineage) && is_of(&Lineage::default()));
        let put = |it: &Generation| store.put(&Name::generation(it.number), &it.to_json());
        put(&generation(5, "c")).unwrap();
        assert!(!is_of(&lineage));
        put(&last).unwrap();
        assert!(is_of(&lineage));

        std::fs::write(run.join(NOTE), "{").unwrap();
        assert_eq!(Lineage::read(&run).unwrap(), None);
    }

    #[test]
    fn keeps_folders_that_are_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        for number in 1..=2 {
            std::fs::create_dir(&run).unwrap();
            std::fs::write(run.join("it"), number.to_string()).unwrap();
            let aside = set_aside(&run).unwrap();
            assert_eq!(aside, folder.path().join(format!("run-{number}")));
            assert!(!run.exists());
            let kept = std::fs::read_to_string(aside.join("it")).unwrap();
            assert_eq!(kept, number.to_string());
        }
    }
}
