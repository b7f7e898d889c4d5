//! `tessera-train export`: writes a run's network as the TorchScript file that the engine
//! loads.

use super::games::make_folder;
use super::source;
use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::{Path, PathBuf};
use tessera::backend::{CodeArguments, EncoderSpec};
use tessera::tactics::correction::Correction;
use tessera::torch::ExportPrecision;
use tessera::train::Checkpoint;
use tessera::{output, overwrite};

/// Arguments of `tessera-train export`.
#[derive(Args)]
pub struct Export {
    /// A checkpoint, a run's folder (for its newest checkpoint), or a network file (.pt) to rewrite
    /// in the current version.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
    /// The network to write.
    #[arg(short, long, value_name = "OUT.pt")]
    output: PathBuf,
    /// The network's name; by default the run's.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Floating-point format in which parameters are stored.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    precision: ExportPrecision,
    /// Output that ranks moves; by default q, or the network file's setting.
    #[arg(long, value_name = "OUTPUT", value_parser = ["q", "wdl", "st"])]
    search_value: Option<String>,
    /// Export the last weights instead of their average.
    #[arg(long)]
    last: bool,
    /// Note on the training data, for the network's card.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    note: Option<String>,
    /// Correction of the policy by the rules, as bench/fit-correction writes
    /// it; by default the network file's.
    #[arg(long, value_name = "FILE.json")]
    correction: Option<PathBuf>,
    /// Licence of the weights, as an SPDX expression; by default GPL-3.0-or-later, or the network
    /// file's licence.
    #[arg(long, value_name = "LICENCE", value_parser = NonEmptyStringValueParser::new())]
    licence: Option<String>,
}

impl Export {
    /// Writes the network.
    pub fn run(self) -> anyhow::Result<()> {
        make_folder(&self.output)?;
        output::check_bytes(&self.output, "a network")?;
        overwrite::refuse(&self.output, Checkpoint::files(&self.source)?)?;
        let mut network = source::open_any(&self.source, self.code, self.last)?;
        let about = &mut network.about;
        if let Some(note) = self.note {
            about.training["note"] = note.into();
        }
        if let Some(path) = &self.correction {
            about.correction = Some(read(path)?);
        }
        let set = |field: &mut String, value: Option<String>| {
            if let Some(value) = value {
                *field = value;
            }
        };
        set(&mut about.name, self.name);
        set(&mut about.licence, self.licence);
        let is_given = self.search_value.is_some();
        set(&mut about.search_value, self.search_value);
        let exported = network.architecture.exported();
        let ranks = &network.about.search_value;
        // Move-token models rank moves by a value only if the user requests it.
        let has_ranks = exported.has_output(ranks);
        let is_over_moves = matches!(exported.encoder, EncoderSpec::Moves { .. });
        ensure!(
            has_ranks || is_over_moves && !is_given,
            "the network has no output `{ranks}` to rank moves by"
        );
        let metadata = network.write(self.precision, &self.output)?;
        let line = format!(
            "{}: {}, {} parameters, {} samples seen, sha256 {}",
            self.output.display(),
            metadata.name,
            metadata.parameters,
            metadata.training["samples"],
            metadata.hash,
        );
        Ok(output::announce(&self.output, line)?)
    }
}

/// Reads a correction.
fn read(path: &Path) -> anyhow::Result<Correction> {
    let failed = || format!("cannot read the correction {}", path.display());
    let text = std::fs::read_to_string(path).with_context(failed)?;
    let correction: Correction = serde_json::from_str(&text).with_context(failed)?;
    correction.check().with_context(failed)?;
    Ok(correction)
}
