//! Reads a run's metrics and configuration from its folder.

use super::config::{ConfigError, TrainConfig};
use super::config_file::parse;
use super::metrics::FILE;
use super::recorder::CONFIG;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The metrics and the configuration of a run.
#[derive(Clone, Debug)]
pub struct History {
    /// The folder's name.
    pub name: String,
    /// The configuration of the run's last session, if any.
    pub config: Option<TrainConfig>,
    /// The lines of the run's metrics.
    pub lines: Vec<Value>,
    /// The measured strength of the run's generations, if it belongs to a loop.
    pub strengths: Vec<Value>,
}

/// Why a run's folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The metrics cannot be read.
    #[error("cannot read {path}: {source}; name a run's folder, or its metrics.jsonl")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line is not JSON.
    #[error("{path}, line {line}: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The line's problem.
        source: serde_json::Error,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl History {
    /// Returns the files that [`History::read`] reads: the metrics and the configuration.
    pub fn files(run: &Path) -> [PathBuf; 2] {
        match run.is_dir() {
            true => [run.join(FILE), run.join(CONFIG)],
            false => [run.to_owned(), run.with_file_name(CONFIG)],
        }
    }

    /// Reads a run, given its folder or the metrics file in it.
    ///
    /// # Errors
    /// [`HistoryError`], naming the file.
    pub fn read(run: &Path) -> Result<History, HistoryError> {
        let [metrics, config] = History::files(run);
        let folder = metrics.parent().unwrap_or(Path::new("."));
        let name = std::path::absolute(folder)
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let text = std::fs::read_to_string(&metrics).map_err(|source| HistoryError::Read {
            path: metrics.clone(),
            source,
        })?;
        // A killed process may have left its last line incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().enumerate().map(|(number, line)| {
            serde_json::from_str(line).map_err(|source| HistoryError::Line {
                path: metrics.clone(),
                line: number + 1,
                source,
            })
        });
        Ok(History {
            name: name.unwrap_or_else(|| metrics.display().to_string()),
            config: config.is_file().then(|| parse(&config)).transpose()?,
            lines: lines.collect::<Result<_, _>>()?,
            strengths: Vec::new(),
        })
    }

    /// Returns the last line with this split.
    pub fn last(&self, split: &str) -> Option<&Value> {
        self.lines.iter().rev().find(|line| line["split"] == split)
    }
}
