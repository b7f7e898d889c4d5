//! Writes the metrics of a run.
//!
//! `metrics.jsonl` contains one JSON object per line, with `split` (`tessera-train`, `validation` or
//! `event`), `step`, and the measurements. A term appears under its name if at least one sample had
//! its target.

mod appended;
mod events;

use super::objective::Term;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

use appended::Appended;
use events::Events;

/// Name of the metrics file in a run's folder.
pub(super) const FILE: &str = "metrics.jsonl";

/// Writes a run's metrics to `metrics.jsonl` and for TensorBoard.
#[derive(Debug)]
pub(super) struct Metrics {
    folder: PathBuf,
    lines: Appended,
    events: Events,
    /// Whether the last attempt to write a line failed.
    is_failing: bool,
}

impl Metrics {
    /// Opens the files in `folder` and drops the lines after `step`, because those steps will be
    /// repeated.
    pub fn open(folder: &Path, step: u64) -> std::io::Result<Metrics> {
        let path = folder.join(FILE);
        let whole = match std::fs::read_to_string(&path) {
            Ok(text) => past(&text, step),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(Metrics {
            folder: folder.to_owned(),
            lines: Appended::open(&path, whole as u64)?,
            events: Events::new(folder, step),
            is_failing: false,
        })
    }

    /// Drops the lines after `step`.
    pub fn rewind(&mut self, step: u64) -> std::io::Result<()> {
        *self = Metrics::open(&self.folder, step)?;
        Ok(())
    }

    /// Appends one line. A full disk does not stop training: after a warning, the line is kept and
    /// written together with a later one.
    pub fn write(&mut self, split: &str, step: u64, fields: Map<String, Value>) {
        let mut line = Map::new();
        line.insert("split".to_owned(), json!(split));
        line.insert("step".to_owned(), json!(step));
        line.extend(fields);
        let text = format!("{}\n", Value::Object(line.clone()));
        let lines = self.lines.append(text.as_bytes());
        let written = lines.and(self.events.write(split, step, &line));
        if let (Err(error), false) = (&written, self.is_failing) {
            tracing::warn!(
                "cannot write metrics into {}: {error}; trying again with later ones",
                self.folder.display()
            );
        }
        self.is_failing = written.is_err();
    }
}

/// Returns the terms' averages by name, omitting terms for which no sample had a target.
pub(super) fn named(terms: &[Term], averages: &[Option<f64>]) -> Map<String, Value> {
    let pairs = terms.iter().zip(averages);
    pairs
        .filter_map(|(term, average)| Some((term.name.to_owned(), json!((*average)?))))
        .collect()
}

/// Returns the length in bytes of the lines up to and including `step`.
fn past(text: &str, step: u64) -> usize {
    let step_of = |line: &str| -> Option<u64> {
        let line: Value = serde_json::from_str(line.strip_suffix('\n')?).ok()?;
        line.get("step")?.as_u64()
    };
    text.split_inclusive('\n')
        .take_while(|line| step_of(line).is_some_and(|at| at <= step))
        .map(str::len)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(folder: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: Value| line["step"].as_u64().unwrap())
            .collect()
    }

    #[test]
    fn lines_after_the_checkpoint_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut metrics = Metrics::open(folder, 0).unwrap();
        let terms = ["policy", "q"].map(|name| Term { name, weight: 1.0 });
        for step in [10, 20, 30] {
            metrics.write("train", step, named(&terms, &[Some(1.5); 2]));
        }
        metrics.rewind(20).unwrap();
        metrics.write("validation", 20, named(&terms, &[None; 2]));
        assert_eq!(steps(folder), [10, 20, 20]);
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        assert!(text.lines().next().unwrap().contains("\"policy\":1.5"));
        assert!(!text.lines().last().unwrap().contains("policy"));
        // The last line is incomplete, as after a kill.
        std::fs::write(folder.join(FILE), text + "{\"split\":\"train\",\"st").unwrap();
        Metrics::open(folder, 40).unwrap();
        assert_eq!(steps(folder), [10, 20, 20]);
    }
}
