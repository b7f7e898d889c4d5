//! `tessera-train imagine`: measures how well a network imagines the future.

use super::device::DeviceArguments;
use super::source;
use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::PathBuf;
use tch::Device;
use tessera::backend::{CodeArguments, Decoding};
use tessera::data::examples::{Columns, HorizonExamples, PositionExamples};
use tessera::data::loader::{BatchOf, Cursor, Loader, RankShard, Split};
use tessera::encode::InputFormat;
use tessera::eval::futures::{FutureAccuracy, share};
use tessera::network::diffusion::LONGEST_HORIZON;
use tessera::network::{Diffusion, Output};
use tessera::torch::ComputeType;
use tessera::train::TrainConfig;

/// Arguments of `tessera-train imagine`.
#[derive(Args)]
pub struct Imagine {
    /// A checkpoint, a run's folder (for its newest checkpoint), or a network file (.pt). For
    /// networks that imagine nothing, only the first move is measured.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    /// The configuration whose validation games are used.
    #[arg(value_name = "FILE.toml")]
    config: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
    /// Evaluations per position: one or more numbers, separated by commas.
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,5,10,20"
    )]
    steps: Vec<usize>,
    /// Maximum number of plies to imagine; 0 means as many as the network can.
    #[arg(long, value_name = "PLIES", default_value_t = 0)]
    horizon: usize,
    /// The weight of candidates' values, for networks that use them: an increase of W − L by 1 adds
    /// this many tenths to a move's logit; 0 ignores values.
    #[arg(long, value_name = "TENTHS", default_value_t = Decoding::default().trust)]
    trust: u16,
    /// Number of positions.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    limit: usize,
    /// Print one JSON object for each number of steps.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Number of positions per batch.
const CPU_BATCH: usize = 32;
const CUDA_BATCH: usize = 512;

impl Imagine {
    /// Measures the network and prints the results.
    pub fn run(self) -> anyhow::Result<()> {
        let device = self.device.prepare()?;
        let network = source::open(&self.source, self.code, false)?;
        let interface = network.architecture.interface();
        let format = InputFormat::from_number(interface.format);
        ensure!(
            format.is_some_and(InputFormat::is_classical),
            "only networks of Lc0's classical input format are measured"
        );
        let policy = interface
            .outputs
            .iter()
            .position(|&it| it == Output::Policy);
        let policy = policy.context("the network has no policy")?;
        let denoiser = network.downcast::<Diffusion>();
        let horizon = denoiser.map_or(0, |it| it.config.horizon as usize);
        let horizon = match self.horizon {
            0 => horizon,
            asked => horizon.min(asked),
        };
        let decoding = Decoding {
            horizon: self.horizon,
            trust: self.trust,
            ..Decoding::default()
        };
        let numbers = ComputeType::from(tch::Kind::Float);
        let played = network.freeze_on(device, numbers, decoding)?;
        let batches = self.positions(device)?;
        let steps = match denoiser {
            Some(_) if horizon > 0 => self.steps.clone(),
            _ => vec![1],
        };
        for steps in steps {
            let mut found = FutureAccuracy::new(horizon);
            for batch in &batches {
                found.add(&played, policy, &batch.columns, steps, device)?;
            }
            let macs = steps as i64 * network.architecture.size().macs_total;
            match self.json {
                true => writeln!(stdout(), "{}", as_json(&found, steps, macs))?,
                false => write!(stdout(), "{}", as_text(&found, steps, macs))?,
            }
        }
        Ok(())
    }

    /// Returns the first positions of the validation games.
    fn positions(&self, device: Device) -> anyhow::Result<Vec<BatchOf<HorizonExamples>>> {
        let config = TrainConfig::read(&self.config)?;
        let examples = HorizonExamples {
            positions: PositionExamples {
                format: InputFormat::Classical,
                variations: config.data.variations(),
            },
            plies: LONGEST_HORIZON as usize,
        };
        let batch = match device {
            Device::Cpu => CPU_BATCH,
            _ => CUDA_BATCH,
        };
        let loader = Loader::for_rank(
            examples,
            &config.data,
            Split::Validation,
            batch.min(self.limit.max(1)),
            Cursor::default(),
            RankShard::WHOLE,
            self.device.threads(),
        )?;
        let (mut batches, mut count) = (Vec::new(), 0);
        for batch in loader {
            let batch = batch?;
            count += batch.columns.len();
            batches.push(batch);
            if count >= self.limit {
                break;
            }
        }
        Ok(batches)
    }
}

fn as_json(found: &FutureAccuracy, steps: usize, macs: i64) -> Value {
    json!({
        "steps": steps,
        "macs": macs,
        "positions": found.positions,
        "first_move": found.share_right(),
        "seconds": found.elapsed.as_secs_f64(),
        "plies": found.plies,
    })
}

fn as_text(found: &FutureAccuracy, steps: usize, macs: i64) -> String {
    let percent = |part: u32, of: u32| match of {
        0 => "–".to_owned(),
        _ => format!("{:.1}", 100.0 * share(part, of)),
    };
    let speed = f64::from(found.positions) / found.elapsed.as_secs_f64().max(1e-9);
    let mut text = format!(
        "{steps} steps: first move {} % of {} positions, {:.0} positions/s, {:.2} billion \
         multiply-accumulates each\n",
        percent(found.right, found.positions),
        found.positions,
        speed,
        macs as f64 / 1e9,
    );
    if found.plies.is_empty() {
        return text;
    }
    let header = [
        "ply", "exact", "squares", "copy", "changed", "move", "legal", "there", "leads",
    ];
    let row = |cells: &[String]| -> String {
        let cells = cells.iter().map(|cell| format!("{cell:>9}"));
        cells.collect::<String>() + "\n"
    };
    text += &row(&header.map(str::to_owned));
    for (ply, it) in (1..).zip(&found.plies) {
        text += &row(&[
            format!("{ply}"),
            percent(it.exact, it.boards),
            percent(it.squares, 64 * it.boards),
            percent(it.copied, 64 * it.boards),
            percent(it.changed_right, it.changed),
            percent(it.moves_right, it.moves),
            percent(it.legal, it.lines),
            percent(it.imagined_legal, it.imagined),
            percent(it.consistent, it.imagined),
        ]);
    }
    text
}
