//! A network out of a run, a checkpoint or a network file.

use anyhow::{Context, ensure};
use std::path::Path;
use tessera::backend::CodeArguments;
use tessera::network::{self, Architecture, Network};
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
