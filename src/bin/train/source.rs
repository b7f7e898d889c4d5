//! A network out of a run, a checkpoint or a network file.

use anyhow::{Context, ensure};
use std::path::Path;
use tch::Device;
use tessera::network::{self, About, Architecture, Network};
use tessera::nn::CodeArguments;
use tessera::train::Checkpoint;

/// The network of a network file (.pt), of a checkpoint, or of a run's newest one: of
/// these the average of the weights, or the `last` ones.
///
/// # Errors
/// If it cannot be read, evaluates no positions, or the last weights of a file are wanted.
pub fn open(source: &Path, code: CodeArguments, last: bool) -> anyhow::Result<Network> {
    let network = open_any(source, code, last)?;
    let shown = source.display();
    network
        .into_evaluator()
        .with_context(|| format!("cannot use {shown}"))
}

/// The same of any family.
///
/// # Errors
/// If it cannot be read, or the last weights of a file are wanted.
pub fn open_any(
    source: &Path,
    code: CodeArguments,
    last: bool,
) -> anyhow::Result<Network<dyn Architecture>> {
    if source.extension().is_none_or(|it| it != "pt") {
        return checkpoint(source, last);
    }
    ensure!(
        !last,
        "--last is for runs: a network file has one set of weights"
    );
    let path = source.display();
    let file = std::fs::read(source).with_context(|| format!("cannot read {path}"))?;
    network::open_any(&file, code.policy()).with_context(|| format!("cannot use {path}"))
}

fn checkpoint(source: &Path, last: bool) -> anyhow::Result<Network<dyn Architecture>> {
    let checkpoint = Checkpoint::read(source)?;
    let state = checkpoint.state;
    let sources = &state.config.data;
    let data: Vec<_> = sources
        .shards
        .iter()
        .chain(&sources.chunks)
        .filter_map(|source| source.path.file_stem())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let flat = match last {
        true => checkpoint.parameters,
        false => checkpoint.average,
    };
    let architecture = state.config.architecture()?.build(Device::Cpu)?;
    let has_q = architecture.exported().has_output("q");
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
            "averaged": !last,
            "note": "",
        }),
        name: state.config.name,
    };
    Ok(Network::new(architecture, &flat, about))
}
