//! `tessera export-lc0` and `tessera export-onnx`: export the engine's networks for other programs.

use crate::cli::output::save;
use anyhow::Context;
use std::path::{Path, PathBuf};
use tessera::backend::CodeArguments;
use tessera::command_line::network_file;
use tessera::error_report::tell;
use tessera::interop::lc0::Lc0Encoding;
use tessera::interop::{self, ExchangeError};
use tessera::torch::ExportPrecision;
use tessera::{output, overwrite};

/// Export a network for Lc0, in Lc0's own format or, if that cannot express the network, as ONNX in
/// an Lc0 file
#[derive(clap::Args)]
pub struct Lc0Arguments {
    /// The engine's network to export: a file, or a name such as tessera-s
    #[arg(value_name = "NET", value_parser = network_file)]
    input: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
    /// The weights to write
    #[arg(short, long, value_name = "OUT.pb.gz")]
    output: PathBuf,
    /// Encoding of weights in Lc0's own format
    #[arg(long, value_enum, default_value_t, value_name = "ENCODING")]
    encoding: Lc0Encoding,
    /// Write ONNX even if Lc0's own format can express the network
    #[arg(long)]
    onnx: bool,
    /// The floating-point format of the ONNX model
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    precision: ExportPrecision,
}

/// Export a network as ONNX
#[derive(clap::Args)]
pub struct OnnxArguments {
    /// The engine's network to export: a file, or a name such as tessera-s
    #[arg(value_name = "NET", value_parser = network_file)]
    input: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
    /// The model to write
    #[arg(short, long, value_name = "OUT.onnx")]
    output: PathBuf,
    /// The floating-point format
    #[arg(long, value_enum, default_value_t = ExportPrecision::F32, value_name = "FORMAT")]
    precision: ExportPrecision,
}

impl Lc0Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        output::check_bytes(&self.output, "a network")?;
        overwrite::refuse(&self.output, [&self.input])?;
        let (file, code) = (read(&self.input)?, self.code.policy());
        let native = match self.onnx {
            true => None,
            false => match interop::to_lc0(&file, code, self.encoding) {
                Ok(weights) => Some(weights),
                Err(ExchangeError::Lc0(reason)) => {
                    tell(format_args!(
                        "{reason}: writing ONNX, which Lc0's ONNX backends play"
                    ));
                    None
                }
                Err(error) => return Err(failed(&self.input, error)),
            },
        };
        let (weights, format) = match native {
            Some(weights) => (weights, "Lc0's own format"),
            None => {
                let wrapped = interop::to_onnx_in_lc0(&file, code, self.precision);
                let wrapped = wrapped.map_err(|error| failed(&self.input, error))?;
                (wrapped, "ONNX in Lc0's file")
            }
        };
        write(&self.output, &weights, format)
    }
}

impl OnnxArguments {
    pub fn run(self) -> anyhow::Result<()> {
        output::check_bytes(&self.output, "a network")?;
        overwrite::refuse(&self.output, [&self.input])?;
        let file = read(&self.input)?;
        let model = interop::to_onnx(&file, self.code.policy(), self.precision);
        let model = model.map_err(|error| failed(&self.input, error))?;
        write(&self.output, &model, "ONNX")
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn failed(path: &Path, error: ExchangeError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot export {}", path.display()))
}

fn write(path: &Path, bytes: &[u8], format: &str) -> anyhow::Result<()> {
    let shown = path.display();
    save(path, bytes)?;
    let line = format!("{shown}: {format}, {} bytes", bytes.len());
    Ok(output::announce(path, line)?)
}
