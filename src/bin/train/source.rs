//! Loads a network from a run, a checkpoint or a network file.

use anyhow::{Context, ensure};
use std::path::Path;
use tessera::backend::CodeArguments;
use tessera::network::{self, Architecture, Network};
use tessera::train::Checkpoint;

/// Opens the network in a network file (.pt), in a checkpoint, or in the newest checkpoint of a
/// run. A checkpoint's network has the averaged weights, or the last weights if `last` is set.
///
/// # Errors
/// If the network cannot be read or does not evaluate positions, or if `last` is set for a network
/// file.
pub fn open(source: &Path, code: CodeArguments, last: bool) -> anyhow::Result<Network> {
    let network = open_any(source, code, last)?;
    let shown = source.display();
    network
        .into_evaluator()
        .with_context(|| format!("cannot use {shown}"))
}

/// Opens a network of any family in the same way.
///
/// # Errors
/// If the network cannot be read, or if `last` is set for a network file.
pub fn open_any(
    source: &Path,
    code: CodeArguments,
    last: bool,
) -> anyhow::Result<Network<dyn Architecture>> {
    if source.extension().is_none_or(|it| it != "pt") {
        return Ok(Checkpoint::read(source)?.into_network(last)?);
    }
    ensure!(
        !last,
        "--last is for runs: a network file has one set of weights"
    );
    let path = source.display();
    let file = std::fs::read(source).with_context(|| format!("cannot read {path}"))?;
    network::open_any(&file, code.policy()).with_context(|| format!("cannot use {path}"))
}
