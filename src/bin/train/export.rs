//! `train export`: writes a run's network as the TorchScript file that the engine
//! loads.

use anyhow::{Context, ensure};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tch::Device;
use tessera::network::{self, About, Network, Output};
use tessera::nn::CodeArguments;
use tessera::nn::torch::ExportPrecision;
use tessera::overwrite;
use tessera::train::Checkpoint;

/// Arguments of `train export`.
#[derive(Args)]
pub struct Export {
    /// A checkpoint, a run's folder for its newest one, or a network file (.pt) to
    /// rewrite in the current version.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
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

impl Export {
    /// Writes the network.
    pub fn run(self) -> anyhow::Result<()> {
        overwrite::refuse(&self.output, Checkpoint::files(&self.source)?)?;
        let is_network = self.source.extension().is_some_and(|it| it == "pt");
        let mut network = if is_network {
            self.network()?
        } else {
            self.checkpoint()?
        };
        let about = &mut network.about;
        if let Some(note) = self.note {
            about.training["note"] = note.into();
        }
        let set = |field: &mut String, value: Option<String>| {
            if let Some(value) = value {
                *field = value;
            }
        };
        set(&mut about.name, self.name);
        set(&mut about.search_value, self.search_value);
        set(&mut about.licence, self.licence);
        let outputs = network.architecture.interface().outputs;
        let ranks = &network.about.search_value;
        ensure!(
            outputs.iter().any(|output| output.name() == ranks),
            "the network has no output `{ranks}` to rank moves by"
        );
        let metadata = network.write(self.precision, &self.output)?;
        writeln!(
            stdout(),
            "{}: {}, {} parameters, {} samples seen, sha256 {}",
            self.output.display(),
            metadata.name,
            metadata.parameters,
            metadata.training["samples"],
            metadata.hash,
        )?;
        Ok(())
    }

    fn checkpoint(&self) -> anyhow::Result<Network> {
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
        let flat = match self.last {
            true => checkpoint.parameters,
            false => checkpoint.average,
        };
        let architecture = state.config.architecture()?.build(Device::Cpu)?;
        let has_q = architecture.has(Output::Q);
        let about = About {
            search_value: if has_q { "q" } else { "wdl" }.to_owned(),
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
        };
        Ok(Network::new(architecture, &flat, about))
    }

    fn network(&self) -> anyhow::Result<Network> {
        ensure!(
            !self.last,
            "--last is for runs: a network file has one set of weights"
        );
        let path = self.source.display();
        let file = std::fs::read(&self.source).with_context(|| format!("cannot read {path}"))?;
        network::open(&file, self.code.policy())
            .with_context(|| format!("{path} cannot be exported again"))
    }
}
