//! `train run`: trains a network, or goes on training it.

use super::device::DeviceArguments;
use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::Duration;
use tessera::train::{Progress, RunOptions, TrainConfig, Trainer};

/// What `train run` is asked to do.
#[derive(Args)]
pub struct Run {
    /// The run's configuration.
    #[arg(long, value_name = "FILE.toml")]
    config: PathBuf,
    /// The run's folder; by default runs/NAME. A run that is there is gone on
    /// with.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Train so many steps in place of the configuration's.
    #[arg(long)]
    steps: Option<u64>,
    /// Take the data from these shards in place of the configuration's folders,
    /// matched by their names.
    #[arg(long, value_name = "FOLDER")]
    shards: Option<PathBuf>,
    /// Stop after so many minutes, with a checkpoint to go on from.
    #[arg(long)]
    minutes: Option<f64>,
    #[command(flatten)]
    device: DeviceArguments,
}

impl Run {
    /// Trains.
    pub fn run(self) -> anyhow::Result<()> {
        let mut config = TrainConfig::read(&self.config)?;
        if let Some(steps) = self.steps {
            config.steps = steps;
        }
        if let Some(folder) = &self.shards {
            for source in &mut config.data.shards {
                let name = source.path.file_name().context("a shard without a name")?;
                source.path = folder.join(name);
            }
        }
        let device = self.device.prepare()?;
        let options = RunOptions {
            folder: self
                .output
                .unwrap_or_else(|| PathBuf::from("runs").join(&config.name)),
            threads: self.device.threads(),
            time: self
                .minutes
                .map(|minutes| Duration::try_from_secs_f64(minutes * 60.0))
                .transpose()
                .context("--minutes must be a positive number")?,
        };
        let mut trainer = Trainer::open(&config, &options, device)?;
        let size = trainer.model().size();
        eprintln!(
            "{}: {} parameters, {} multiply-accumulates; {:?}, step {} of {}, into {}",
            config.name,
            size.parameters,
            size.macs,
            device,
            trainer.step(),
            config.steps,
            options.folder.display(),
        );
        let bar = ProgressBar::new(config.steps).with_style(ProgressStyle::with_template(
            "{wide_bar} {pos}/{len} steps, {eta} left, {msg}",
        )?);
        bar.set_position(trainer.step());
        bar.reset_eta();
        let mut accuracy = None;
        let summary = trainer.run(&options, &mut |progress: &Progress| {
            accuracy = progress.validation_accuracy.or(accuracy);
            let validated = accuracy.map_or(String::new(), |accuracy| {
                format!(", validation accuracy {:.2} %", accuracy * 100.0)
            });
            bar.set_position(progress.step);
            let message = format!(
                "{:.0} positions/s, policy loss {:.4}{validated}",
                progress.samples_per_second, progress.policy_loss,
            );
            if bar.is_hidden() && progress.validation_accuracy.is_some() {
                eprintln!("step {}: {message}", progress.step);
            }
            bar.set_message(message);
        })?;
        bar.abandon();
        let state = if summary.finished {
            "finished"
        } else {
            "stopped; run again to go on"
        };
        println!(
            "{state} at step {} after {} samples: {}",
            summary.step,
            summary.samples,
            summary.checkpoint.display(),
        );
        Ok(())
    }
}
