//! `tessera-train ablate`: trains variants of one configuration and compares them.

use super::device::DeviceArguments;
use super::run::{STOPPING, stop_when_interrupted, take_shards_from, train};
use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tch::Device;
use tessera::backend::CodeArguments;
use tessera::command_line::TimeSpan;
use tessera::output;
use tessera::train::{
    Ablation, History, Interval, Override, Progress, Row, RunOptions, TrainConfig, Trainer,
    Variant, table,
};

/// Share of a variant's time that is spent on measuring its speed.
const TRIAL: f64 = 0.05;

/// Share of a variant's time that is reserved for validations and checkpoints.
const RESERVE: f64 = 0.06;

/// Name of the file that stores a variant's number of steps.
const STEPS: &str = "steps.json";

/// Arguments of `tessera-train ablate`.
#[derive(Args)]
pub struct Ablate {
    /// The ablation: a base configuration and its variants.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Folder for the runs, one folder for each variant. Finished variants are not
    /// trained again.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Set a key of the base, such as batch=256; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,
    /// Train each variant for this time, with its schedule fitted to its speed, instead of for the
    /// same number of steps.
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::positive)]
    time: Option<TimeSpan>,
    /// Train each variant with this many seeds, and print means with their 95 % intervals.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Train only these variants, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Folder of the shards, instead of the configuration's folders; shards are matched by name.
    #[arg(long, value_name = "FOLDER")]
    shards: Option<PathBuf>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Settings shared by all variants.
struct Bench {
    device: Device,
    threads: usize,
    stop: Arc<AtomicBool>,
}

impl Ablate {
    /// Trains the variants that are not yet trained, and prints the table.
    pub fn run(self) -> anyhow::Result<()> {
        output::check_folder(&self.output)?;
        let ablation = Ablation::read(&self.file)?;
        let minutes = self.time.map(|time| time.0.as_secs_f64() / 60.0);
        let minutes = minutes.or(ablation.minutes);
        for name in &self.only {
            if !ablation
                .variants
                .iter()
                .any(|variant| variant.name == *name)
            {
                let names: Vec<_> = ablation.variants.iter().map(|v| v.name.as_str()).collect();
                bail!(
                    "there is no variant `{name}`; the variants are: {}",
                    names.join(", ")
                );
            }
        }
        let bench = Bench {
            device: self.device.prepare()?,
            threads: self.device.threads(),
            stop: stop_when_interrupted(STOPPING)?,
        };
        let is_wanted = |it: &&Variant| self.only.is_empty() || self.only.contains(&it.name);
        let variants: Vec<&Variant> = ablation.variants.iter().filter(is_wanted).collect();
        let mut runs: Vec<Vec<Row>> = vec![Vec::new(); variants.len()];
        for seed in 0..self.seeds {
            for (variant, rows) in variants.iter().zip(&mut runs) {
                rows.push(self.train(&ablation, variant, seed, minutes, &bench)?);
            }
        }
        let rows: Vec<Row> = runs.into_iter().filter_map(Row::of_seeds).collect();
        if self.json {
            let (title, source) = (&ablation.title, &ablation.source);
            writeln!(
                stdout(),
                "{}",
                json!({ "title": title, "source": source, "rows": rows })
            )?;
            return Ok(());
        }
        writeln!(
            stdout(),
            "{}\n\n{}",
            ablation.title,
            table(&ablation.metrics, &rows)
        )?;
        if let Some(source) = &ablation.source {
            writeln!(stdout(), "Reference: {source}")?;
        }
        Ok(())
    }

    /// Trains a variant with this seed, counted from 0, unless it is already trained.
    fn train(
        &self,
        ablation: &Ablation,
        variant: &Variant,
        seed: u32,
        minutes: Option<f64>,
        bench: &Bench,
    ) -> anyhow::Result<Row> {
        let mut config = ablation.config(variant, &self.set)?;
        config.code = self.code.policy();
        if let Some(folder) = &self.shards {
            take_shards_from(folder, &mut config)?;
        }
        if let Some(minutes) = minutes {
            config.steps = self.fitted_steps(&variant.name, &config, minutes, bench)?;
        }
        // A variant's name cannot contain a dot.
        let mut folder = variant.name.clone();
        if seed > 0 {
            config.seed += i64::from(seed);
            config.data.seed += u64::from(seed);
            folder = format!("{folder}.{seed}");
        }
        let folder = self.output.join(folder);
        let options = bench.options(folder.clone(), None);
        let mut trainer = Trainer::open(&config, &options, bench.device)?;
        let summary = train(&config, &mut trainer, &options)?;
        if !summary.finished {
            bail!(
                "stopped at step {} of `{}`; run again to resume",
                summary.step,
                config.name
            );
        }
        let size = trainer.model().size();
        let run = History::read(&folder)?;
        Ok(ablation.row(variant, size.parameters, size.macs, &run))
    }

    /// Returns the number of steps that a variant can take in this many minutes, estimated by a
    /// short trial. The number is stored, so that a resumed ablation uses the same one.
    fn fitted_steps(
        &self,
        variant: &str,
        config: &TrainConfig,
        minutes: f64,
        bench: &Bench,
    ) -> anyhow::Result<u64> {
        let memory = self.output.join(STEPS);
        let mut known: BTreeMap<String, Fitted> = match std::fs::read(&memory) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} is damaged: remove it", memory.display()))?,
            Err(_) => BTreeMap::new(),
        };
        if let Some(fitted) = known.get(variant) {
            if (fitted.minutes, fitted.batch) != (minutes, config.batch) {
                bail!(
                    "`{variant}` was started for {} minutes with batches of {}: \
                     use the same settings, or another folder",
                    fitted.minutes,
                    fitted.batch
                );
            }
            return Ok(fitted.steps);
        }
        let seconds = minutes * 60.0;
        let limit = Duration::try_from_secs_f64(seconds * TRIAL)
            .context("the time of a variant must be a positive number of minutes")?;
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot create {}", self.output.display()))?;
        let trial = tempfile::tempdir_in(&self.output)?;
        let speed = speed(config, limit, trial.path(), bench)?;
        let steps = (seconds * (1.0 - RESERVE) * speed / config.batch as f64) as u64;
        let fitted = Fitted {
            minutes,
            batch: config.batch,
            steps: steps.max(1),
        };
        known.insert(variant.to_owned(), fitted);
        let file = tempfile::NamedTempFile::new_in(&self.output)?;
        serde_json::to_writer(&file, &known)?;
        file.persist(&memory)?;
        Ok(steps.max(1))
    }
}

/// The number of steps that a variant can take in a given time.
#[derive(Serialize, Deserialize)]
struct Fitted {
    minutes: f64,
    batch: usize,
    steps: u64,
}

impl Bench {
    fn options(&self, folder: PathBuf, time: Option<Duration>) -> RunOptions {
        RunOptions {
            folder,
            threads: self.threads,
            time,
            trace: None,
            stop: self.stop.clone(),
        }
    }
}

/// Returns the positions trained per second, ignoring the slower first steps.
fn speed(
    config: &TrainConfig,
    limit: Duration,
    folder: &Path,
    bench: &Bench,
) -> anyhow::Result<f64> {
    let config = TrainConfig {
        steps: u64::MAX,
        log_every: 10,
        validate_every: u64::MAX,
        checkpoint_every: Interval::Steps(u64::MAX),
        ..config.clone()
    };
    let options = bench.options(folder.to_owned(), Some(limit));
    let mut trainer = Trainer::open(&config, &options, bench.device)?;
    let mut speeds = Vec::new();
    let started = Instant::now();
    let report = &mut |progress: &Progress| {
        if !progress.trained.is_empty() {
            speeds.push(progress.samples_per_second);
        }
    };
    let summary = trainer.run(&options, report)?;
    if bench.stop.load(Ordering::Relaxed) {
        bail!("stopped before the speed was known; run again to resume");
    }
    Ok(match speeds.as_slice() {
        [_, rest @ ..] if !rest.is_empty() => rest.iter().sum::<f64>() / rest.len() as f64,
        // Hardly any steps fitted into the trial.
        _ => summary.samples as f64 / started.elapsed().as_secs_f64(),
    })
}
