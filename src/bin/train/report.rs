//! `tessera-train report`: writes a page that compares runs.

use super::{console, stats};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::PathBuf;
use tessera::data::statistics::Survey;
use tessera::train::{History, TrainConfig, write_report};
use tessera::{error_report, output, overwrite};

/// Arguments of `tessera-train report`.
#[derive(Args)]
pub struct Report {
    /// Folders of runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The page to write, which browsers can show offline.
    #[arg(short, long, value_name = "OUT.html")]
    output: PathBuf,
    /// Leave out the statistics of the data, which require a pass over it.
    #[arg(long)]
    no_data: bool,
}

impl Report {
    /// Writes the page.
    pub fn run(self) -> anyhow::Result<()> {
        output::check(&self.output)?;
        let runs: Vec<History> = self
            .runs
            .iter()
            .map(|run| History::read(run))
            .collect::<Result<_, _>>()?;
        let read = self.runs.iter().flat_map(|run| History::files(run));
        let configs = runs.iter().filter_map(|run| run.config.as_ref());
        overwrite::refuse(&self.output, read.chain(configs.flat_map(sources)))?;
        let mut seen: Vec<(Vec<PathBuf>, Value)> = Vec::new();
        let mut told = HashSet::new();
        for run in &runs {
            let sources = run.config.as_ref().map(sources).unwrap_or_default();
            if !seen.iter().any(|(known, _)| *known == sources) {
                let data = if self.no_data || sources.is_empty() {
                    Value::Null
                } else {
                    survey(&sources, &mut told)?
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
        write_report(&self.output, &runs, &data)
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        Ok(())
    }
}

fn sources(config: &TrainConfig) -> Vec<PathBuf> {
    let sources = config.data.shards.iter().chain(&config.data.chunks);
    sources.map(|source| source.path.clone()).collect()
}

/// Surveys the sources and returns their statistics. If a source no longer exists, returns null and
/// prints a warning, unless `told` already contains the source.
fn survey(sources: &[PathBuf], told: &mut HashSet<String>) -> anyhow::Result<Value> {
    let progress = console::bar(None, "samples surveyed");
    let mut survey = Survey::default();
    for path in sources {
        // Unusable records are only counted, because training has already reported them.
        let counting = |samples| progress.inc(samples);
        if let Err(error) = stats::add(&mut survey, path, None, counting, |_| Ok(())) {
            let error = error_report::one_line(error.as_ref());
            if !told.contains(&error) {
                progress.finish_and_clear();
                tracing::warn!("{error}; the report has no statistics of this data");
                told.insert(error);
            }
            return Ok(Value::Null);
        }
    }
    progress.finish_and_clear();
    let mut data = serde_json::to_value(survey.finish())?;
    let names = sources.iter().filter_map(|path| path.file_name());
    data["files"] = json!(names.map(|name| name.to_string_lossy()).collect::<Vec<_>>());
    Ok(data)
}
