//! `tessera doctor`: checks the installation.

use crate::cli::output::{print, print_json};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;
use tessera::backend::{BackendKind, Batch, BuiltIn, DeviceChoice, Evaluations, NetworkOptions};
use tessera::chess::Game;
use tessera::command_line::NetworkArguments;
use tessera::error_report::one_line;
use tessera::inference::doctor::{
    Evaluation, Finding, cuda, gpus, human, libtorch, network, processor,
};
use tessera::inference::{Comparison, compare, describe, describe_human, load};
use tessera::review::{Judge, USUAL_JUDGE};
use tessera::torch::{CudaStatus, LIBTORCH_VERSION, environment};

/// Check the installation (libtorch, processor, CUDA, network) and explain how to fix problems
///
/// With `--device cpu` or `--device cuda`, also compare all ways to run the networks on that device
/// with libtorch's results in f32, for reports.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    network: NetworkArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let environment = environment();
        let gpus = gpus();
        let code = self.network.on.place.code.policy();
        let card = describe(self.network.net.as_deref(), code);
        let evaluation = self.evaluate().map_err(|error| one_line(error.as_ref()));
        let findings = [
            libtorch(&environment.libtorch),
            processor(&environment),
            cuda(&environment.cuda, gpus.as_deref()),
            network(self.network.net.as_deref(), &card, &evaluation),
            human(&describe_human()),
            judge(),
        ];
        let wrong = findings.iter().filter(|finding| !finding.ok).count();
        let runs = evaluation.is_ok();
        let comparisons = runs.then(|| self.comparisons()).into_iter().flatten();
        if self.json {
            print_json(&serde_json::json!({
                "ok": wrong == 0,
                "findings": findings,
                "libtorch": { "found": environment.libtorch, "expected": LIBTORCH_VERSION },
                "cpu": {
                    "features": environment.cpu_features,
                    "bf16": environment.cpu_bf16,
                    "int8": environment.cpu_int8,
                    "threads": environment.threads,
                },
                "cuda_devices": match environment.cuda {
                    CudaStatus::Devices(devices) => devices,
                    _ => 0,
                },
                "gpus": gpus,
                "network": card.ok(),
                "format": evaluation.ok().map(|evaluation| evaluation.format),
                "comparisons": comparisons.collect::<Vec<_>>(),
            }))?;
        } else {
            print(&told(&findings)?)?;
            for comparison in comparisons {
                print(&format!("\n{comparison}"))?;
            }
        }
        match wrong {
            0 => Ok(()),
            1 => anyhow::bail!("one problem was found"),
            _ => anyhow::bail!("{wrong} problems were found"),
        }
    }

    /// Compares the ways to run the network, or both built-in networks, on each device that is
    /// named.
    fn comparisons(&self) -> impl Iterator<Item = Comparison> {
        let net = &self.network.net;
        let built_in = match net {
            Some(_) => &[BuiltIn::Main][..],
            None => &[BuiltIn::Main, BuiltIn::Human],
        };
        let devices = self.network.on.place.device.iter();
        let named = devices.filter(|&device| device != DeviceChoice::Auto);
        let pairs = named.flat_map(move |device| built_in.iter().map(move |&it| (device, it)));
        pairs.filter_map(move |(device, built_in)| {
            let options = NetworkOptions {
                devices: device.into(),
                built_in,
                ..self.network.on.network(net.clone())
            };
            let compared = compare(&options);
            let told = compared.inspect_err(|error| tracing::warn!("{}", one_line(error)));
            told.ok()
        })
    }

    /// Evaluates the initial position.
    fn evaluate(&self) -> anyhow::Result<Evaluation> {
        let backend = load(&self.network.options(BackendKind::Torch, 1))?;
        let game = Game::default();
        let mut batch = Batch::default();
        batch.push(&game, &[], &backend.properties().encoder)?;
        let start = Instant::now();
        backend.evaluate(&batch, &mut Evaluations::default())?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        Ok(Evaluation {
            format: backend.properties().format.clone(),
            milliseconds,
        })
    }
}

/// Names the engine that scores reviews. Reviews work without one, so a missing engine is not a
/// fault.
fn judge() -> Finding {
    let found = match Judge::start(Path::new(USUAL_JUDGE), 1, 1) {
        Ok(judge) => format!("{} scores reviews", judge.name),
        Err(error) => {
            let error = one_line(&error);
            format!(
                "none ({error}), so reviews use Tessera's own scores, which are less reliable; \
                 install Stockfish with `apt install stockfish` (Debian, Ubuntu), `dnf install \
                 stockfish` (Fedora), `pacman -S stockfish` (Arch), `brew install stockfish` \
                 (macOS), or from https://stockfishchess.org/download (Windows) in a folder of PATH"
            )
        }
    };
    Finding {
        subject: "judge",
        ok: true,
        found,
        remedy: None,
    }
}

fn told(findings: &[Finding]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for finding in findings {
        let state = if finding.ok { "ok" } else { "wrong" };
        writeln!(text, "{state:5}  {:9}  {}", finding.subject, finding.found)?;
        if let Some(remedy) = &finding.remedy {
            writeln!(text, "{:16}  fix: {remedy}", "")?;
        }
    }
    Ok(text)
}
