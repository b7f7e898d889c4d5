//! `train report`: draws a run's metrics.

use clap::Args;
use std::path::PathBuf;
use tessera::train::plot;

/// What `train report` is asked to do.
#[derive(Args)]
pub struct Report {
    /// The run's metrics.jsonl.
    metrics: PathBuf,
    /// The SVG to write.
    #[arg(short, long, value_name = "OUT.svg")]
    output: PathBuf,
}

impl Report {
    /// Draws.
    pub fn run(self) -> anyhow::Result<()> {
        plot(&self.metrics, &self.output)?;
        Ok(())
    }
}
