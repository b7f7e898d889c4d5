//! `tessera-train merge`: averages the weights of several networks into one network.

use super::source;
use anyhow::ensure;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;
use tessera::backend::CodeArguments;
use tessera::network::merge::{Part, merge};
use tessera::torch::ExportPrecision;
use tessera::train::Checkpoint;
use tessera::{output, overwrite};

/// Arguments of `tessera-train merge`.
#[derive(Args)]
pub struct Merge {
    /// Two or more networks of one architecture: checkpoints, runs' folders (for their newest
    /// checkpoints), or network files (.pt).
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
    /// The network to write.
    #[arg(short, long, value_name = "OUT.pt")]
    output: PathBuf,
    /// The relative weight of each network in the mean, in the same order, such as 2,1,1; by
    /// default all are equal.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "WEIGHT",
        allow_negative_numbers = true
    )]
    weights: Option<Vec<f64>>,
    /// The network's name; by default the output file's name.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Floating-point format in which parameters are stored.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    precision: ExportPrecision,
    /// Use the runs' last weights instead of their averages.
    #[arg(long)]
    last: bool,
}

impl Merge {
    /// Writes the network.
    pub fn run(self) -> anyhow::Result<()> {
        let count = self.sources.len();
        let weights = self.weights.unwrap_or_else(|| vec![1.0; count]);
        let given = weights.len();
        ensure!(
            given == count,
            "--weights names {given} for {count} networks"
        );
        output::check_bytes(&self.output, "a network")?;
        for source in &self.sources {
            overwrite::refuse(&self.output, Checkpoint::files(source)?)?;
        }
        let parts = self.sources.iter().zip(weights).map(|(source, weight)| {
            Ok(Part {
                source: source.display().to_string(),
                network: source::open(source, self.code, self.last)?,
                weight,
            })
        });
        let parts = parts.collect::<anyhow::Result<_>>()?;
        let stem = self.output.file_stem().unwrap_or_default();
        let name = self
            .name
            .unwrap_or_else(|| stem.to_string_lossy().into_owned());
        let metadata = merge(name, parts)?.write(self.precision, &self.output)?;
        let line = format!(
            "{}: {}, the mean of {count} networks, {} parameters, sha256 {}",
            self.output.display(),
            metadata.name,
            metadata.parameters,
            metadata.hash,
        );
        Ok(output::announce(&self.output, line)?)
    }
}
