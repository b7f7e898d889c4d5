//! `tessera import`: converts another program's network to the engine's format.

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;
use tessera::interop;
use tessera::network::lc0::{HeadChoice, PolicyHead, ValueHead};
use tessera::torch::ExportPrecision;
use tessera::{output, overwrite};

/// Import another program's network: Lc0's .pb.gz, a Maia-3 checkpoint or ONNX
#[derive(clap::Args)]
pub struct Arguments {
    /// The network; its format is recognised from its content
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The network to write
    #[arg(short, long, value_name = "OUT.pt")]
    output: PathBuf,
    /// The network's name; by default the file's name
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Floating-point format in which parameters are stored
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    precision: ExportPrecision,
    /// The policy head to use, if an Lc0 network has several
    #[arg(long, value_enum, default_value_t, value_name = "HEAD")]
    policy_head: PolicyHead,
    /// The value head that ranks moves, if there are several
    #[arg(long, value_enum, default_value_t, value_name = "HEAD")]
    value_head: ValueHead,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        output::check_bytes(&self.output, "a network")?;
        overwrite::refuse(&self.output, [&self.input])?;
        let input = self.input.display();
        let file = std::fs::read(&self.input).with_context(|| format!("cannot read {input}"))?;
        let heads = HeadChoice {
            policy: self.policy_head,
            value: self.value_head,
        };
        let name = self.name.unwrap_or_else(|| {
            let name = self.input.file_name().unwrap_or_default().to_string_lossy();
            let endings = [".gz", ".pb", ".pt", ".pth", ".onnx"];
            let name = endings.iter().fold(&*name, |name, ending| {
                name.strip_suffix(ending).unwrap_or(name)
            });
            name.to_owned()
        });
        let import = || -> anyhow::Result<_> {
            let mut network = interop::open_foreign(&file, heads)?;
            network.about.name = name;
            Ok(network.write(self.precision, &self.output)?)
        };
        let metadata = import().with_context(|| format!("cannot import {input}"))?;
        let line = format!(
            "{}: {}, {} parameters, {} multiply-accumulates, outputs {}",
            self.output.display(),
            metadata.name,
            metadata.parameters,
            metadata.macs,
            metadata.outputs().collect::<Vec<_>>().join(", "),
        );
        Ok(output::announce(&self.output, line)?)
    }
}
