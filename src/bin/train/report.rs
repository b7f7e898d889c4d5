//! `train report`: runs side by side, on one page.

use super::{console, stats};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
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
    /// Leave out what the data consists of, which takes a pass over it.
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
            let sources = run.config.as_ref().map(sources).unwrap_or_default();
            if !seen.iter().any(|(known, _)| *known == sources) {
                let data = if self.no_data || sources.is_empty() {
                    Value::Null
                } else {
                    survey(&sources)?
                };
                seen.push((sources, data));
            }
        }
        let data: Vec<Value> = runs
            .iter()
            .map(|run| {
                let sources = run.config.as_ref().map(sources).unwrap_or_default();
                let known = seen.iter().find(|(known, _)| *known == sources);
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

fn sources(config: &TrainConfig) -> Vec<PathBuf> {
    let sources = config.data.shards.iter().chain(&config.data.chunks);
    sources.map(|source| source.path.clone()).collect()
}

/// What the sources hold; null, with a warning, if they are no longer there.
fn survey(sources: &[PathBuf]) -> anyhow::Result<Value> {
    let progress = console::bar(0, "{elapsed} {human_pos} samples surveyed, {per_sec}")?;
    let mut survey = Survey::default();
    for path in sources {
        // Training has told of bad records; here they are only counted.
        let counting = |samples| progress.inc(samples);
        if let Err(error) = stats::add_packed(&mut survey, path, counting, |_| Ok(())) {
            tracing::warn!("{error:#}; the report says nothing of the data");
            return Ok(Value::Null);
        }
    }
    progress.finish_and_clear();
    let mut data = serde_json::to_value(survey.finish())?;
    let names = sources.iter().filter_map(|path| path.file_name());
    data["files"] = json!(names.map(|name| name.to_string_lossy()).collect::<Vec<_>>());
    Ok(data)
}
