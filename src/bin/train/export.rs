//! `train export`: a run's network as the TorchScript file the engine loads.

use clap::Args;
use std::path::PathBuf;
use tch::Device;
use tessera::model::{self, Chessformer};
use tessera::nn::torch::ExportPrecision;
use tessera::train::Checkpoint;

/// What `train export` is asked to do.
#[derive(Args)]
pub struct Export {
    /// A checkpoint, or a run's folder for its newest one.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    /// The network to write.
    #[arg(short, long, value_name = "OUT.pt")]
    output: PathBuf,
    /// The network's name; by default the run's.
    #[arg(long)]
    name: Option<String>,
    /// In which format parameters are stored.
    #[arg(long, value_enum, default_value_t)]
    precision: ExportPrecision,
    /// Which output ranks moves.
    #[arg(long, default_value = "q", value_parser = ["q", "wdl", "st"])]
    search_value: String,
    /// Export the last weights, not their average.
    #[arg(long)]
    last: bool,
    /// What it was trained on, for the network's card.
    #[arg(long, default_value = "")]
    note: String,
    /// Licence of the weights, as an SPDX expression.
    #[arg(long, default_value = "GPL-3.0-or-later")]
    licence: String,
}

impl Export {
    /// Writes the network.
    pub fn run(self) -> anyhow::Result<()> {
        let checkpoint = Checkpoint::read(&self.source)?;
        let state = &checkpoint.state;
        let samples = state.earlier_samples + state.samples;
        let model = Chessformer::new(&state.config.architecture()?, Device::Cpu)?;
        let sources = &state.config.data;
        let data: Vec<_> = sources
            .shards
            .iter()
            .chain(&sources.chunks)
            .filter_map(|source| source.path.file_stem())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let how = model::Export {
            name: self.name.unwrap_or_else(|| state.config.name.clone()),
            precision: self.precision,
            search_value: self.search_value,
            training: serde_json::json!({
                "steps": state.step,
                "samples": samples,
                "seconds": state.seconds.round(),
                "batch": state.config.batch,
                "data": data,
                "optimizer": state.config.optimizer.kind,
                "peak_rate": state.config.schedule.peak,
                "averaged": !self.last,
                "note": self.note,
            }),
            licence: self.licence,
        };
        let weights = if self.last {
            &checkpoint.parameters
        } else {
            &checkpoint.average
        };
        let metadata = model::export(&model, weights, &how, &self.output)?;
        println!(
            "{}: {}, {} parameters, {} samples seen, sha256 {}",
            self.output.display(),
            metadata.name,
            metadata.parameters,
            samples,
            metadata.hash,
        );
        Ok(())
    }
}
