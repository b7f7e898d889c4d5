//! `train report`: runs side by side, on one page.

use super::console;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use tessera::data::shard::Shard;
use tessera::data::statistics::Survey;
use tessera::train::{History, TrainConfig, report};

/// What `train report` is asked to do.
#[derive(Args)]
pub struct Report {
    /// Folders of runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The page to write; any browser shows it, without a network.
    #[arg(short, long, value_name = "OUT.html")]
    output: PathBuf,
    /// Leave out what the shards consist of, which takes a pass over them.
    #[arg(long)]
    no_data: bool,
}

impl Report {
    /// Writes the page.
    pub fn run(self) -> anyhow::Result<()> {
        let runs: Vec<History> = self
            .runs
            .iter()
            .map(|run| History::read(run))
            .collect::<Result<_, _>>()?;
        let mut seen: Vec<(Vec<PathBuf>, Value)> = Vec::new();
        for run in &runs {
            let shards = run.config.as_ref().map(shards).unwrap_or_default();
            if !seen.iter().any(|(known, _)| *known == shards) {
                let data = if self.no_data || shards.is_empty() {
                    Value::Null
                } else {
                    survey(&shards)?
                };
                seen.push((shards, data));
            }
        }
        let data: Vec<Value> = runs
            .iter()
            .map(|run| {
                let shards = run.config.as_ref().map(shards).unwrap_or_default();
                let known = seen.iter().find(|(known, _)| *known == shards);
                known.map_or(Value::Null, |(_, data)| data.clone())
            })
            .collect();
        let page = report(&runs, &data);
        let folder = self
            .output
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        let unwritable = || format!("cannot write {}", self.output.display());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(".".as_ref()))
            .with_context(unwritable)?;
        file.write_all(page.as_bytes()).with_context(unwritable)?;
        file.persist(&self.output).with_context(unwritable)?;
        Ok(())
    }
}

fn shards(config: &TrainConfig) -> Vec<PathBuf> {
    let sources = config.data.shards.iter();
    sources.map(|source| source.path.clone()).collect()
}

/// What the shards hold; null, with a warning, if they are no longer there.
fn survey(shards: &[PathBuf]) -> anyhow::Result<Value> {
    let progress = console::bar(0, "{elapsed} {human_pos} samples surveyed, {per_sec}")?;
    let mut survey = Survey::default();
    for path in shards {
        let added = Shard::open(path)
            .and_then(|shard| survey.add_shard(&shard, |samples| progress.inc(samples)));
        if let Err(error) = added {
            tracing::warn!("{error}; the report says nothing of the data");
            return Ok(Value::Null);
        }
    }
    progress.finish_and_clear();
    let mut data = serde_json::to_value(survey.finish())?;
    let names = shards.iter().filter_map(|path| path.file_name());
    data["files"] = json!(names.map(|name| name.to_string_lossy()).collect::<Vec<_>>());
    Ok(data)
}
