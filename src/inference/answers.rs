//! A cache, kept between runs, of the best way and format of each network.
//!
//! If the cache file is missing or damaged, the candidates are checked and measured again.

use crate::atomic_file;
use crate::backend::Format;
use crate::bounded;
use etcetera::BaseStrategy;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Maximum number of answers to keep. The oldest answers are dropped first.
const MOST: usize = 256;
/// Maximum file size in bytes: several times the size of the maximum number of answers.
const LARGEST: u64 = 1 << 20;

/// The answers of this process and of earlier processes.
#[derive(Debug)]
pub(super) struct Answers {
    known: Vec<Answer>,
    file: Option<PathBuf>,
}

/// The best way and format of a network on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Answer {
    /// A hash of the network's file, and the candidates.
    network: String,
    /// The name of the device, and a hash of everything else that affects the choice.
    machine: String,
    format: Format,
}

impl Answer {
    fn is_of(&self, network: &str, machine: &str) -> bool {
        self.network == network && self.machine == machine
    }
}

impl Answers {
    /// Locks and returns the current user's answers.
    pub fn of_user() -> MutexGuard<'static, Answers> {
        static ANSWERS: LazyLock<Mutex<Answers>> =
            LazyLock::new(|| Mutex::new(Answers::new(file_of_user())));
        ANSWERS.lock()
    }

    fn new(file: Option<PathBuf>) -> Answers {
        Answers {
            known: Vec::new(),
            file,
        }
    }

    /// Returns the best known way and format of a network on a machine.
    pub fn find(&self, network: &str, machine: &str) -> Option<Format> {
        let kept = self.kept();
        let mut answers = self.known.iter().chain(&kept);
        let answer = answers.find(|answer| answer.is_of(network, machine));
        answer.map(|answer| answer.format.clone())
    }

    /// Stores an answer, and writes it to the cache file if possible.
    pub fn keep(&mut self, network: &str, machine: &str, format: &Format) {
        let answer = Answer {
            network: network.to_owned(),
            machine: machine.to_owned(),
            format: format.clone(),
        };
        self.known.push(answer.clone());
        // Keep entries that other processes have written in the meantime.
        let mut answers = self.kept();
        answers.retain(|kept| !kept.is_of(network, machine));
        answers.push(answer);
        answers.drain(..answers.len().saturating_sub(MOST));
        if let Some(file) = &self.file
            && let Err(error) = write(file, &answers)
        {
            tracing::debug!("{} cannot be written: {error}", file.display());
        }
    }

    /// Returns the entries of the cache file, or an empty list if the file is missing or malformed.
    fn kept(&self) -> Vec<Answer> {
        let bytes = self
            .file
            .as_ref()
            .and_then(|file| bounded::read_regular(file, LARGEST).ok());
        bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }
}

fn write(file: &Path, answers: &[Answer]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut unfinished = atomic_file::unfinished(file)?;
    serde_json::to_writer_pretty(&mut unfinished, answers)?;
    atomic_file::persist(unfinished, file)
}

/// Returns the path of the cache file in the system's cache folder, or `None` in unit tests.
fn file_of_user() -> Option<PathBuf> {
    let folder = etcetera::base_strategy::choose_native_strategy()
        .ok()?
        .cache_dir();
    (!cfg!(test)).then(|| folder.join("tessera/ways.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Precision, Way};
    use std::fs;

    fn format(precision: Precision) -> Format {
        Format::only(Way::Kernels, precision)
    }

    #[test]
    fn answers_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("made/on/demand.json"));
        let mut first = Answers::new(file.clone());
        assert_eq!(first.find("net", "cpu"), None);
        first.keep("net", "cpu", &format(Precision::F32));
        let mut second = Answers::new(file.clone());
        second.keep("net", "another cpu", &format(Precision::Int8));
        second.keep("another net", "cpu", &format(Precision::Bf16));
        let third = Answers::new(file);
        for (network, machine, precision) in [
            ("net", "cpu", Precision::F32),
            ("net", "another cpu", Precision::Int8),
            ("another net", "cpu", Precision::Bf16),
        ] {
            assert_eq!(third.find(network, machine), Some(format(precision)));
        }
        assert_eq!(third.find("another net", "another cpu"), None);
        // Within a process, the first answer remains valid even without the file.
        fs::remove_file(folder.path().join("made/on/demand.json")).unwrap();
        assert_eq!(first.find("net", "cpu"), Some(format(Precision::F32)));
    }

    #[test]
    fn the_latest_answers_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.json");
        let mut answers = Answers::new(Some(file.clone()));
        for network in 0..=MOST {
            answers.keep(&network.to_string(), "cpu", &format(Precision::F32));
        }
        answers.keep("7", "cpu", &format(Precision::Bf16));
        let kept = Answers::new(Some(file.clone()));
        assert_eq!(kept.find("0", "cpu"), None);
        assert_eq!(kept.find("1", "cpu"), Some(format(Precision::F32)));
        assert_eq!(kept.find("7", "cpu"), Some(format(Precision::Bf16)));
        assert!(file.metadata().unwrap().len() < LARGEST);
    }

    #[test]
    fn a_broken_file_is_no_answer_and_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.json");
        let honest = {
            Answers::new(Some(file.clone())).keep("net", "cpu", &format(Precision::F32));
            fs::read_to_string(&file).unwrap()
        };
        let half = &honest[..honest.len() / 2];
        let odd = honest.replace("f32", "f31");
        for broken in ["", "[", "{}", "null", half, &odd, &"[".repeat(1 << 20)] {
            fs::write(&file, broken).unwrap();
            let mut answers = Answers::new(Some(file.clone()));
            assert_eq!(answers.find("net", "cpu"), None, "{broken:.40}");
            answers.keep("net", "cpu", &format(Precision::F32));
            assert_eq!(fs::read_to_string(&file).unwrap(), honest);
        }
    }

    #[test]
    fn where_nothing_can_be_kept_the_process_remembers() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("a file");
        fs::write(&taken, "no folder").unwrap();
        for file in [
            None,
            Some(taken.join("answers.json")),
            Some(folder.path().to_owned()),
        ] {
            let mut answers = Answers::new(file);
            answers.keep("net", "cpu", &format(Precision::F32));
            assert_eq!(answers.find("net", "cpu"), Some(format(Precision::F32)));
        }
        assert_eq!(fs::read_to_string(&taken).unwrap(), "no folder");
    }
}
