//! `tessera-train run`: trains a network, or resumes training it.

use super::console;
use super::device::{self, DeviceArguments};
use anyhow::Context;
use clap::Args;
use indicatif::{HumanCount, ProgressBar};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tch::Device;
use tessera::backend::CodeArguments;
use tessera::command_line::TimeSpan;
use tessera::cycle::STOPPED;
use tessera::error_report::tell;
use tessera::exit::SUCCESS;
use tessera::train::{
    Launch, Override, Progress, RunOptions, Summary, TrainConfig, Trainer, World,
};
use tessera::{interrupt, output, progress};

/// Minimum time between two progress lines if there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// The message printed when a stop is requested, after which a checkpoint is written.
pub const STOPPING: &str =
    "stopping after this step, with a checkpoint; press again to stop at once";

/// Arguments of `tessera-train run`.
#[derive(Args)]
pub struct Run {
    /// The run's configuration.
    #[arg(value_name = "FILE.toml")]
    config: PathBuf,
    /// Set a key of the configuration, such as optimizer.beta1=0.95 or
    /// data.shards.0.rate=0.5; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,
    /// The run's folder; by default runs/NAME. A run in this folder is resumed.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Number of steps, instead of the configuration's.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Folder of the shards, instead of the configuration's folders; shards are matched by name.
    #[arg(long, value_name = "FOLDER")]
    shards: Option<PathBuf>,
    /// Stop after this time, with a checkpoint to resume from.
    #[arg(long, value_name = "TIME")]
    time: Option<TimeSpan>,
    /// Trace steps 11 to 20 and write libtorch's operators and, on a GPU, kernel launches and
    /// kernels to this file, in Chrome's trace format.
    #[arg(long, value_name = "OUT.json")]
    trace: Option<PathBuf>,
    /// On the CPU, compute with the operators of a GPU, so that a trace shows them.
    #[arg(long, hide = true)]
    as_on_a_gpu: bool,
    /// With several processes: how long each waits for the others before it gives
    /// up.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = TimeSpan::positive)]
    timeout: TimeSpan,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    device: DeviceArguments,
}

impl Run {
    /// Trains a network, or resumes training it.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut config = TrainConfig::read_with(&self.config, &self.set)?;
        config.code = self.code.policy();
        if let Some(steps) = self.steps {
            config.steps = steps;
        }
        if let Some(folder) = &self.shards {
            take_shards_from(folder, &mut config)?;
        }
        if self.as_on_a_gpu {
            tessera::torch::compute_as_on_a_gpu();
        }
        let launch = Launch::from_environment(|name| std::env::var(name).ok())?;
        let (device, threads) = self.device.prepare_with(launch.as_ref())?;
        let options = RunOptions {
            folder: self
                .output
                .unwrap_or_else(|| PathBuf::from("runs").join(&config.name)),
            threads,
            time: self.time.map(|time| time.0),
            trace: self.trace,
            stop: stop_when_interrupted(STOPPING)?,
        };
        output::check_folder(&options.folder)?;
        let summary = match launch {
            None => {
                let mut trainer = Trainer::open(&config, &options, device)?;
                train(&config, &mut trainer, &options)?
            }
            Some(launch) => {
                Trainer::check_split(&config, launch.size)?;
                let world = World::join(&launch, device, self.timeout.0)?;
                let trained = train_together(&config, world, &options, device);
                let (rank, size) = (launch.rank, launch.size);
                let summary = trained.with_context(|| format!("process {rank} of {size}"))?;
                if rank > 0 {
                    return Ok(status(&summary, &options));
                }
                summary
            }
        };
        let state = if summary.finished {
            "finished"
        } else {
            "stopped; run again to resume"
        };
        writeln!(
            stdout(),
            "{state} at step {} after {} samples: {}",
            summary.step,
            summary.samples,
            summary.checkpoint.display(),
        )?;
        Ok(status(&summary, &options))
    }
}

/// Returns the exit status: success if the run has reached its last step or its time limit, or else
/// the status of a worker that was told to stop.
fn status(summary: &Summary, options: &RunOptions) -> i32 {
    let is_over = options.time.is_some() && !options.stop.load(Ordering::Relaxed);
    match summary.finished || is_over {
        true => SUCCESS,
        false => STOPPED,
    }
}

/// Replaces the folder of each of the configuration's shards with `folder`.
pub fn take_shards_from(folder: &std::path::Path, config: &mut TrainConfig) -> anyhow::Result<()> {
    for source in &mut config.data.shards {
        let name = source.path.file_name().context("a shard without a name")?;
        source.path = folder.join(name);
    }
    Ok(())
}

/// Returns a flag that becomes true on Ctrl-C or SIGTERM, so that the program can finish its work.
/// `stopping` is printed at that time. A second signal ends the program, see
/// [`interrupt::stop_at_first`].
pub fn stop_when_interrupted(stopping: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    interrupt::stop_at_first(move || {
        asked.store(true, Ordering::Relaxed);
        tracing::warn!("{stopping}");
    })?;
    Ok(stop)
}

/// Trains in one process of several. Only the first process reads the checkpoint and shows the
/// progress.
fn train_together(
    config: &TrainConfig,
    world: World,
    options: &RunOptions,
    device: Device,
) -> anyhow::Result<Summary> {
    let is_first = world.is_first();
    let size = world.size;
    let trainer = match is_first {
        true => Trainer::open(config, options, device)?,
        false => Trainer::follower(config, device)?,
    };
    let mut trainer = trainer.join(world)?;
    if !is_first {
        return Ok(trainer.run(options, &mut |_| {})?);
    }
    tell(format_args!("{size} processes train together"));
    train(config, &mut trainer, options)
}

/// Trains with a progress bar, or with progress lines if there is no terminal.
pub fn train(
    config: &TrainConfig,
    trainer: &mut Trainer,
    options: &RunOptions,
) -> anyhow::Result<Summary> {
    let size = trainer.model().size();
    tell(format_args!(
        "{}: {} parameters, {} multiply-accumulates; on {}, step {} of {}, into {}",
        config.name,
        size.parameters,
        size.macs,
        device::name(trainer.device),
        trainer.step,
        trainer.steps(),
        options.folder.display(),
    ));
    let changes = trainer
        .resumed()
        .and_then(|then| config.changes_since(then));
    if let Some(changes) = changes {
        tell(format_args!(
            "resuming with a changed configuration: {changes}"
        ));
    }
    let bar = console::bar(Some(trainer.steps()), "steps");
    bar.set_position(trainer.step);
    bar.reset_eta();
    let mut display = Display::new(bar);
    let summary = trainer.run(options, &mut |progress| display.show(progress))?;
    display.bar.abandon();
    Ok(summary)
}

/// Shows a run's progress, as a bar or in lines.
struct Display {
    bar: ProgressBar,
    loss: String,
    accuracy: Option<f64>,
    last_line: Option<Instant>,
}

impl Display {
    fn new(bar: ProgressBar) -> Display {
        Display {
            bar,
            loss: String::new(),
            accuracy: None,
            last_line: None,
        }
    }

    fn show(&mut self, progress: &Progress) {
        let validated = progress.validated.iter().flatten();
        let accuracy = validated
            .copied()
            .find(|(name, _)| name.ends_with("accuracy"));
        self.accuracy = accuracy.and_then(|(_, share)| share).or(self.accuracy);
        let validated = self.accuracy.map_or(String::new(), |accuracy| {
            format!(", validation accuracy {:.2} %", accuracy * 100.0)
        });
        if let Some(loss) = progress.loss() {
            self.loss = format!(", {loss}");
        }
        let message = format!(
            "{:.0} samples/s, {} seen{}{validated}",
            progress.samples_per_second,
            HumanCount(progress.samples),
            self.loss,
        );
        self.bar.set_position(progress.step);
        let is_late = self
            .last_line
            .is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        let is_worth_a_line = is_late || progress.validated.is_some();
        if self.bar.is_hidden() && is_worth_a_line {
            let left = progress.time_left().map_or(String::new(), |left| {
                format!(", {} left", indicatif::HumanDuration(left))
            });
            let (step, steps) = (progress.step, progress.steps);
            tell(format_args!("step {step} of {steps}: {message}{left}"));
            self.last_line = Some(Instant::now());
        }
        progress::say(&self.bar, message);
    }
}
