//! What a run measured, line by line in a file, and as a picture.

use super::loss::NAMES;
use crate::files;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;

/// Appends to `metrics.jsonl`: one JSON object a line, with `split` (`train` or
/// `validation`), `step`, and an average for each loss that had a target.
#[derive(Debug)]
pub(super) struct Metrics {
    file: std::fs::File,
}

/// Averages of the losses, in the order of [`NAMES`]; `None` where no sample
/// carried the target.
pub(super) type Averages = Vec<Option<f64>>;

impl Metrics {
    /// Opens the file and drops lines after `step`: they belong to a future
    /// that a kill undid.
    pub fn open(path: &Path, step: u64) -> std::io::Result<Metrics> {
        let kept: Vec<String> = match std::fs::read_to_string(path) {
            Ok(text) => text
                .lines()
                .filter(|line| step_of(line).is_some_and(|at| at <= step))
                .map(|line| format!("{line}\n"))
                .collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut fresh = files::unfinished(path)?;
        fresh.write_all(kept.concat().as_bytes())?;
        fresh.persist(path)?;
        Ok(Metrics {
            file: std::fs::OpenOptions::new().append(true).open(path)?,
        })
    }

    /// Appends one line.
    pub fn write(
        &mut self,
        split: &str,
        step: u64,
        averages: &Averages,
        more: &[(&str, f64)],
    ) -> std::io::Result<()> {
        let mut line = Map::new();
        line.insert("split".to_owned(), json!(split));
        line.insert("step".to_owned(), json!(step));
        for (name, average) in NAMES.iter().zip(averages) {
            if let Some(average) = average {
                line.insert((*name).to_owned(), json!(average));
            }
        }
        for &(name, value) in more {
            line.insert(name.to_owned(), json!(value));
        }
        writeln!(self.file, "{}", Value::Object(line))
    }
}

fn step_of(line: &str) -> Option<u64> {
    let line: Value = serde_json::from_str(line).ok()?;
    line.get("step")?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_the_checkpoint_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let averages = vec![Some(1.5); NAMES.len()];
        let mut metrics = Metrics::open(&path, 0).unwrap();
        for step in [10, 20, 30] {
            metrics
                .write("train", step, &averages, &[("rate", 0.1)])
                .unwrap();
        }
        let mut metrics = Metrics::open(&path, 20).unwrap();
        metrics
            .write("validation", 20, &vec![None; NAMES.len()], &[])
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let steps: Vec<_> = text.lines().map(|line| step_of(line).unwrap()).collect();
        assert_eq!(steps, [10, 20, 20]);
        assert!(text.lines().next().unwrap().contains("\"policy\":1.5"));
        assert!(!text.lines().last().unwrap().contains("policy"));
    }
}
