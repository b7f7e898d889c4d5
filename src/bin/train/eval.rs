//! `train eval`: a run's losses on the games kept for validation.

use super::device::DeviceArguments;
use clap::Args;
use std::path::PathBuf;
use tessera::train::{Checkpoint, TrainConfig, Trainer};

/// What `train eval` is asked to do.
#[derive(Args)]
pub struct Eval {
    /// A checkpoint, or a run's folder for its newest one.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    /// Take data and loss weights from this configuration, not the run's own.
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Look at so many samples.
    #[arg(long)]
    samples: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArguments,
}

impl Eval {
    /// Measures the averaged weights.
    pub fn run(self) -> anyhow::Result<()> {
        let checkpoint = Checkpoint::read(&self.source)?;
        let mut config = match &self.config {
            Some(path) => TrainConfig::read(path)?,
            None => checkpoint.state.config.clone(),
        };
        config.validation_samples = self.samples.unwrap_or(config.validation_samples);
        let device = self.device.prepare()?;
        let trainer = Trainer::resume(&config, &checkpoint, &self.source, device)?;
        let measured = trainer.evaluate(self.device.threads())?;
        if self.json {
            let fields = measured
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), serde_json::json!(value?))));
            let object: serde_json::Map<_, _> = fields.collect();
            println!("{}", serde_json::Value::Object(object));
            return Ok(());
        }
        for (name, value) in measured {
            match value {
                Some(value) => println!("{name:<24} {value:.5}"),
                None => println!("{name:<24} no sample has this target"),
            }
        }
        Ok(())
    }
}
