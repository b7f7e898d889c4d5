//! `tessera-train actor`, `reanalyser`, `learner`, `gate` and `gauntlet`: the workers of a loop. They
//! communicate through the loop's store.

use super::device::DeviceArguments;
use super::run::stop_when_interrupted;
use super::scheduling::prefer_throughput;
use anyhow::Context;
use clap::Args;
use indicatif::HumanCount;
use std::fs::{File, TryLockError};
use std::io::{Read, stdin};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tessera::command_line::TimeSpan;
use tessera::cycle::{
    self, Actor, CycleConfig, CycleConfigError, Gate, Gauntlet, Learner, Learning, Reanalyser,
    WorkerContext,
};
use tessera::error_report::{one_line, tell};
use tessera::exit::{FAILURE, SUCCESS};
use tessera::store::{Store, WorkerName};
use tessera::train::{Launch, World};

/// Environment variables that contain the index of this task among identical tasks, as set by
/// Kubernetes for indexed jobs, and by Slurm for job arrays and for tasks.
const INDICES: [&str; 3] = [
    "JOB_COMPLETION_INDEX",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_PROCID",
];
/// Minimum time between two progress lines.
const BETWEEN_LINES: Duration = Duration::from_secs(30);
/// Name of the lock file that a learner holds in the loop's folder.
const LOCK: &str = "learner.lock";

/// Settings of every worker of a loop.
#[derive(Args)]
pub struct WorkerArguments {
    /// The loop's configuration.
    #[arg(value_name = "FILE.toml")]
    config: PathBuf,
    /// The store, instead of the configuration's: a folder, or an address such as s3://bucket/loop.
    #[arg(value_name = "STORE")]
    store: Option<PathBuf>,
    /// The worker's name, of at most 71 letters, digits, `-`, `_` and `.`, to which an identifier
    /// of this run is appended. By default the worker's kind, with its task index on Kubernetes or
    /// Slurm.
    #[arg(long, value_name = "NAME")]
    name: Option<WorkerName>,
    /// End the worker when its standard input closes, which happens when the program that started
    /// it exits.
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// Arguments of workers that search.
#[derive(Args)]
pub struct Searching {
    #[command(flatten)]
    worker: WorkerArguments,
    /// Threads that evaluate on a CPU; by default one for each processor.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Arguments of the learner.
#[derive(Args)]
pub struct LearnerCommand {
    #[command(flatten)]
    worker: WorkerArguments,
    #[command(flatten)]
    device: DeviceArguments,
    /// With several processes: how long each waits for the others before it gives up.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = TimeSpan::positive)]
    timeout: TimeSpan,
}

/// The kinds of worker that search.
#[derive(Clone, Copy, Debug)]
pub enum Searcher {
    Actor,
    Reanalyser,
    Gate,
    Gauntlet,
}

/// A worker's resources.
struct Workplace {
    config: CycleConfig,
    store: Store,
    name: WorkerName,
    stop: Arc<AtomicBool>,
}

impl WorkerArguments {
    fn open(self, kind: &str) -> anyhow::Result<Workplace> {
        let config = CycleConfig::read(&self.config)?;
        let store = Store::open(self.store.as_ref().unwrap_or(&config.store))?;
        let index = INDICES.iter().find_map(|name| std::env::var(name).ok());
        let name = match (self.name, index) {
            (Some(name), _) => name,
            (None, Some(index)) => format!("{kind}{index}").parse()?,
            (None, None) => kind.parse()?,
        };
        let stop = stop_when_interrupted("stopping; press again to stop at once")?;
        if self.with_parent {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut input = stdin().lock();
                while input.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
                stop.store(true, Relaxed);
            });
        }
        Ok(Workplace {
            config,
            store,
            name,
            stop,
        })
    }
}

impl Workplace {
    fn context(&self, threads: usize) -> WorkerContext<'_> {
        WorkerContext {
            store: &self.store,
            name: self.name.clone(),
            threads,
            stop: Arc::clone(&self.stop),
            tell: &|line| tell(format_args!("{line}")),
            failures: AtomicU32::new(0),
        }
    }

    /// Returns the exit status of a worker that has ended without an error.
    fn status(&self) -> i32 {
        match self.stop.load(Relaxed) {
            true => cycle::STOPPED,
            false => SUCCESS,
        }
    }
}

impl Searching {
    /// Runs the worker until the loop ends or a stop is requested; returns its exit status.
    pub fn run(self, searcher: Searcher) -> anyhow::Result<i32> {
        prefer_throughput();
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(all).max(1);
        let (kind, table) = match searcher {
            Searcher::Actor => ("actor", "actors"),
            Searcher::Reanalyser => ("reanalyser", "reanalysers"),
            Searcher::Gate => ("gate", "gate"),
            Searcher::Gauntlet => ("gauntlet", "strength"),
        };
        let place = self.worker.open(kind)?;
        let (config, context) = (&place.config, place.context(threads));
        let none = || CycleConfigError::NoTable(table);
        match searcher {
            Searcher::Actor => {
                let actors = config.actors.as_ref().ok_or_else(none)?;
                Actor { config, actors }.run(&context)?;
            }
            Searcher::Reanalyser => {
                let reanalysers = config.reanalysers.as_ref().ok_or_else(none)?;
                let reanalyser = Reanalyser {
                    config,
                    reanalysers,
                };
                reanalyser.run(&context)?;
            }
            Searcher::Gate => {
                let gate = config.gate.as_ref().ok_or_else(none)?;
                Gate { config, gate }.run(&context)?;
            }
            Searcher::Gauntlet => {
                let strength = config.strength.as_ref().ok_or_else(none)?;
                Gauntlet { config, strength }.run(&context)?;
            }
        }
        Ok(place.status())
    }
}

impl LearnerCommand {
    /// Trains until the loop ends or a stop is requested; returns the exit status.
    pub fn run(self) -> anyhow::Result<i32> {
        prefer_throughput();
        let launch = Launch::from_environment(|name| std::env::var(name).ok())?;
        let (device, threads) = self.device.prepare_with(launch.as_ref())?;
        let place = self.worker.open("learner")?;
        let folder = &place.config.folder;
        // The previous learner may still be writing its last checkpoint. With several processes,
        // only the first one writes, and needs the lock.
        let _lock = match &launch {
            Some(launch) if launch.rank > 0 => None,
            _ => {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
                let lock = lock(&folder.join(LOCK), || !place.stop.load(Relaxed))?;
                let Some(lock) = lock else {
                    return Ok(place.status());
                };
                Some(lock)
            }
        };
        let world = match &launch {
            Some(launch) => World::join(launch, device, self.timeout.0)?,
            None => World::alone(),
        };
        if world.size > 1 && world.is_first() {
            tell(format_args!("{} processes train together", world.size));
        }
        let mut told: Option<Instant> = None;
        let mut observe = |learning: &Learning| {
            let is_late = told.is_none_or(|told| told.elapsed() >= BETWEEN_LINES);
            if let Learning::Trains { .. } = learning
                && !is_late
            {
                return;
            }
            told = Some(Instant::now());
            tell(format_args!("{}", line(learning)));
        };
        let mut learner = Learner {
            config: &place.config,
            device,
            world: Arc::new(world),
            observe: &mut observe,
        };
        learner.run(&place.context(threads))?;
        Ok(place.status())
    }
}

/// Reports a worker's error, if any, and returns the exit status, which is [`cycle::FINAL`] if a
/// restart would not help.
pub fn end(outcome: anyhow::Result<i32>) -> i32 {
    outcome.unwrap_or_else(|error| {
        // Unlike `report`, this never returns success, by which a worker says that it has finished.
        tell(format_args!("error: {}", one_line(error.as_ref())));
        match cycle::is_final(error.as_ref()) {
            true => cycle::FINAL,
            false => FAILURE,
        }
    })
}

/// Creates and locks a file. While another process holds the lock, waits for as long as `waits`
/// returns true, and returns `None` once it returns false.
pub fn lock(path: &std::path::Path, waits: impl Fn() -> bool) -> anyhow::Result<Option<File>> {
    let shown = path.display();
    let file = File::options().create(true).append(true).open(path);
    let file = file.with_context(|| format!("cannot open {shown}"))?;
    let mut is_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if waits() => {
                if !mem::replace(&mut is_told, true) {
                    tell(format_args!(
                        "waiting for another process, which has locked {shown}"
                    ));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Some network file systems do not support locks.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(
                    "cannot lock {shown}: {error}; make sure that no other process uses this folder"
                );
                return Ok(Some(file));
            }
        }
    }
}

/// Formats the learner's state on one line.
fn line(learning: &Learning) -> String {
    match learning {
        Learning::Waits { rows, needs } => format!(
            "waiting for rows: {} of {} so far",
            HumanCount(*rows),
            HumanCount(*needs)
        ),
        Learning::Trains {
            number,
            window,
            progress,
        } => {
            let loss = progress.loss().map(|loss| format!(", {loss}"));
            format!(
                "generation {number}, step {} of {}: window of {} rows, {:.0} samples/s{}",
                progress.step,
                progress.steps,
                HumanCount(*window),
                progress.samples_per_second,
                loss.unwrap_or_default(),
            )
        }
        Learning::Published {
            generation,
            seconds: [trained, waited],
        } => format!(
            "generation {} after {} samples: trained for {trained:.1} s, waited for rows {waited:.1} s",
            generation.number,
            HumanCount(generation.samples),
        ),
    }
}
