//! `tessera-train loop`: runs all workers of a loop on this machine.

mod display;
mod process;

use super::run::stop_when_interrupted;
use super::worker::lock;
use anyhow::{Context, bail};
use clap::Args;
use display::Display;
use process::{Process, Work};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tessera::cycle::{CycleConfig, STOPPED, Share};
use tessera::exit::SUCCESS;
use tessera::store::Store;

/// Interval between checks on the workers.
const BLINK: Duration = Duration::from_millis(100);
/// Time for workers to finish by themselves before they are killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Name of the lock file that the loop holds in its folder.
const LOCK: &str = "loop.lock";
/// Folder of the workers' logs.
const LOGS: &str = "logs";

/// Arguments of `tessera-train loop`.
#[derive(Args)]
pub struct Loop {
    /// The loop's configuration. An existing store and folder are resumed.
    #[arg(value_name = "FILE.toml")]
    config: PathBuf,
    /// Threads that the workers share; by default one for each processor.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

impl Loop {
    /// Runs the workers until the loop ends, restarting them after failures that a restart may fix.
    pub fn run(self) -> anyhow::Result<i32> {
        let config = CycleConfig::read(&self.config)?;
        // Report errors in the training configuration here rather than in the learner's log.
        config.training().context("[training]")?;
        let store = Store::open(&config.store)?;
        let logs = config.folder.join(LOGS);
        std::fs::create_dir_all(&logs)
            .with_context(|| format!("cannot make the folder {}", logs.display()))?;
        let Some(_lock) = lock(&config.folder.join(LOCK), || false)? else {
            let folder = config.folder.display();
            bail!("another `tessera-train loop` is running in {folder}");
        };
        let stop = stop_when_interrupted("stopping the workers; press again to stop at once")?;
        store.sweep()?;
        let mut workers = self.workers(&config, &logs);
        let mut display = Display::new(&config, store)?;
        let mut looked: Option<Instant> = None;
        let outcome = loop {
            if stop.load(Relaxed) {
                break Ok(false);
            }
            if let Err(error) = workers.iter_mut().try_for_each(Process::keep) {
                break Err(error);
            }
            // Actors exit by themselves only after the learner and the gate have exited.
            if workers
                .iter()
                .filter(|it| it.is_needed())
                .all(Process::is_done)
            {
                break Ok(true);
            }
            let poll = Duration::from_secs_f64(config.poll);
            if looked.is_none_or(|looked| looked.elapsed() >= poll) {
                display.look();
                looked = Some(Instant::now());
            }
            std::thread::sleep(BLINK);
        };
        for worker in &mut workers {
            worker.let_go();
        }
        let end = Instant::now() + PATIENCE;
        for worker in &mut workers {
            worker.bury(end);
        }
        display.look();
        let is_finished = outcome?;
        display.finish(&config, is_finished, self.json)?;
        Ok(match is_finished {
            true => SUCCESS,
            false => STOPPED,
        })
    }

    fn workers(&self, config: &CycleConfig, logs: &Path) -> Vec<Process> {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let processors = self.threads.unwrap_or_else(all).max(1);
        let actors = config.actors.as_ref().map(|it| it.cores);
        let reanalysers = config.reanalysers.as_ref().map(|it| it.cores);
        let gate = config.gate.as_ref().map(|it| it.cores);
        let gauntlet = config.strength.as_ref().map(|it| it.cores);
        let kinds: [(&'static str, Option<Share>, bool); 5] = [
            ("learner", Some(config.learner.cores), true),
            ("actor", actors, false),
            ("reanalyser", reanalysers, false),
            ("gate", gate, true),
            ("gauntlet", gauntlet, true),
        ];
        let mut workers = Vec::new();
        for (kind, cores, is_needed) in kinds {
            let Some(cores) = cores else { continue };
            for number in 0..cores.processes {
                let name = format!("{kind}{number}");
                workers.push(Process::new(Work {
                    kind,
                    config: self.config.clone(),
                    log: logs.join(format!("{name}.log")),
                    name,
                    threads: config.threads(cores, processors),
                    is_needed,
                }));
            }
        }
        workers
    }
}
