//! `train export`: writes a run's network as the TorchScript file that the engine
//! loads.

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use tch::{Device, Tensor};
use tessera::model::{self, Chessformer};
use tessera::nn::torch::{self, ExportPrecision};
use tessera::train::Checkpoint;

/// Arguments of `train export`.
#[derive(Args)]
pub struct Export {
    /// A checkpoint, a run's folder for its newest one, or a network file (.pt) of
    /// this engine to rewrite in the current version.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    /// The network to write.
    #[arg(short, long, value_name = "OUT.pt")]
    output: PathBuf,
    /// The network's name; by default the run's.
    #[arg(long)]
    name: Option<String>,
    /// Floating-point format in which parameters are stored.
    #[arg(long, value_enum, default_value_t)]
    precision: ExportPrecision,
    /// Output that ranks moves; by default q, or the network file's.
    #[arg(long, value_parser = ["q", "wdl", "st"])]
    search_value: Option<String>,
    /// Export the last weights, not their average.
    #[arg(long)]
    last: bool,
    /// Note on the training data, for the network's card.
    #[arg(long)]
    note: Option<String>,
    /// Licence of the weights, as an SPDX expression; by default
    /// GPL-3.0-or-later, or the network file's.
    #[arg(long)]
    licence: Option<String>,
}

/// A network to export, with its metadata.
struct Found {
    model: Chessformer,
    /// Its parameters, end to end.
    weights: Tensor,
    name: String,
    search_value: String,
    licence: String,
    training: Value,
}

impl Export {
    /// Writes the network.
    pub fn run(self) -> anyhow::Result<()> {
        let is_network = self.source.extension().is_some_and(|it| it == "pt");
        let mut found = if is_network {
            self.network()?
        } else {
            self.checkpoint()?
        };
        if let Some(note) = self.note {
            found.training["note"] = note.into();
        }
        let how = model::Export {
            name: self.name.unwrap_or(found.name),
            precision: self.precision,
            search_value: self.search_value.unwrap_or(found.search_value),
            training: found.training,
            licence: self.licence.unwrap_or(found.licence),
        };
        let metadata = model::export(&found.model, &found.weights, &how, &self.output)?;
        println!(
            "{}: {}, {} parameters, {} samples seen, sha256 {}",
            self.output.display(),
            metadata.name,
            metadata.parameters,
            metadata.training["samples"],
            metadata.hash,
        );
        Ok(())
    }

    fn checkpoint(&self) -> anyhow::Result<Found> {
        let checkpoint = Checkpoint::read(&self.source)?;
        let state = checkpoint.state;
        let sources = &state.config.data;
        let data: Vec<_> = sources
            .shards
            .iter()
            .chain(&sources.chunks)
            .filter_map(|source| source.path.file_stem())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        Ok(Found {
            model: Chessformer::new(&state.config.architecture()?, Device::Cpu)?,
            weights: if self.last {
                checkpoint.parameters
            } else {
                checkpoint.average
            },
            search_value: "q".to_owned(),
            licence: "GPL-3.0-or-later".to_owned(),
            training: serde_json::json!({
                "steps": state.step,
                "samples": state.earlier_samples + state.samples,
                "seconds": state.seconds.round(),
                "batch": state.config.batch,
                "data": data,
                "optimizer": state.config.optimizer.kind,
                "peak_rate": state.config.schedule.peak,
                "averaged": !self.last,
                "note": "",
            }),
            name: state.config.name,
        })
    }

    fn network(&self) -> anyhow::Result<Found> {
        ensure!(
            !self.last,
            "--last is for runs: a network file has one set of weights"
        );
        let path = self.source.display();
        let file = std::fs::read(&self.source).with_context(|| format!("cannot read {path}"))?;
        let read = || -> anyhow::Result<Found> {
            let (module, metadata) = torch::open(&file)?;
            let (model, weights) = model::restore(&metadata, &module.tensors()?)?;
            let flat: Vec<_> = weights
                .tensors()
                .iter()
                .map(|it| it.reshape([-1]))
                .collect();
            Ok(Found {
                model,
                weights: Tensor::cat(&flat, 0),
                name: metadata.name,
                search_value: metadata.search_value,
                licence: metadata.licence,
                training: metadata.training,
            })
        };
        read().with_context(|| format!("{path} cannot be exported again"))
    }
}
