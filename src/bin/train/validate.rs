//! `tessera-train validate`: measures a network's losses on the validation games.

use super::device::DeviceArguments;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tch::Device;
use tessera::backend::CodeArguments;
use tessera::network;
use tessera::train::{Checkpoint, TrainConfig, Trainer};

/// Arguments of `tessera-train validate`.
#[derive(Args)]
pub struct Validate {
    /// A checkpoint, a run's folder (for its newest checkpoint), or a network file (.pt), whether
    /// trained here or imported.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    /// Take data and loss weights from this configuration instead of the run's. Required for a
    /// network file.
    #[arg(value_name = "FILE.toml")]
    config: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
    /// Number of samples.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArguments,
}

impl Validate {
    /// Evaluates the network; a run's network has the averaged weights.
    pub fn run(self) -> anyhow::Result<()> {
        let device = self.device.prepare()?;
        let trainer = if self.source.extension().is_some_and(|it| it == "pt") {
            self.of_network(device)?
        } else {
            self.of_run(device)?
        };
        let measured = trainer.evaluate(self.device.threads())?;
        if self.json {
            let terms = measured.terms.into_iter();
            let fields = terms
                .filter_map(|(name, value)| Some((name.to_owned(), serde_json::json!(value?))));
            let object: serde_json::Map<_, _> = fields.chain(measured.diagnostics).collect();
            writeln!(stdout(), "{}", Value::Object(object))?;
            return Ok(());
        }
        for (name, value) in measured.terms {
            match value {
                Some(value) => writeln!(stdout(), "{name:<36} {value:.5}")?,
                None => writeln!(stdout(), "{name:<36} no sample has this target")?,
            }
        }
        let mut diagnostics = measured.diagnostics;
        let calibration = diagnostics.remove("calibration");
        let mut lines = String::new();
        list(&mut lines, "", &Value::Object(diagnostics));
        write!(stdout(), "{lines}")?;
        if let Some(Value::Object(calibration)) = calibration {
            writeln!(stdout(), "\n{CALIBRATION}")?;
            for (name, bins) in calibration {
                let error = miscalibration(&bins);
                writeln!(stdout(), "{:<36} {error:.5}", format!("calibration.{name}"))?;
            }
        }
        Ok(())
    }

    fn of_run(&self, device: Device) -> anyhow::Result<Trainer> {
        let checkpoint = Checkpoint::read(&self.source)?;
        let mut config = match &self.config {
            Some(path) => TrainConfig::read(path)?,
            None => checkpoint.state.config.clone(),
        };
        config.validation_samples = self.limit.unwrap_or(config.validation_samples);
        config.code = self.code.policy();
        Ok(Trainer::resume(&config, &checkpoint, &self.source, device)?)
    }

    fn of_network(&self, device: Device) -> anyhow::Result<Trainer> {
        let Some(path) = &self.config else {
            bail!("a network file names no validation games: give a configuration after it");
        };
        let shown = self.source.display();
        let file = std::fs::read(&self.source).with_context(|| format!("cannot read {shown}"))?;
        let network = network::open_any(&file, self.code.policy())
            .with_context(|| format!("cannot measure {shown}"))?;
        let config = TrainConfig::read(path)?;
        let mut config = config.with_architecture(network.architecture.config());
        config.validation_samples = self.limit.unwrap_or(config.validation_samples);
        config.init = Some(self.source.clone());
        config.code = self.code.policy();
        Ok(Trainer::new(&config, device)?)
    }
}

/// Explains the lines about calibration.
const CALIBRATION: &str = "\
Calibration: the mean distance between the predicted probability of a result, or the predicted q, and
what came true, over ten bins of predictions (0 is perfect). --json prints the bins.";

/// Returns the mean distance between prediction and truth. Each bin is null or contains a weight,
/// the mean prediction and the mean truth.
fn miscalibration(bins: &Value) -> f64 {
    let bins = bins.as_array().into_iter().flatten();
    let filled = bins.filter_map(|bin| {
        let number = |place: usize| bin.get(place)?.as_f64();
        Some((number(0)?, number(1)?, number(2)?))
    });
    let (mut weight, mut sum) = (0.0, 0.0);
    for (own, predicted, truth) in filled {
        weight += own;
        sum += own * (predicted - truth).abs();
    }
    sum / weight
}

/// Adds a line for each value, prefixed with its path.
fn list(lines: &mut String, path: &str, value: &Value) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                list(lines, &below(name), value);
            }
        }
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                list(lines, &below(&place.to_string()), value);
            }
        }
        Value::Null => {}
        value => {
            let number = value.as_f64().unwrap_or_default();
            *lines += &format!("{path:<36} {number:.5}\n");
        }
    }
}
