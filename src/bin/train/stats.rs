//! `train stats`: what training data consists of.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tessera::data::shard::{Shard, is_address};
use tessera::data::statistics::{BARS, Findings, Survey};

/// What `train stats` is asked to do.
#[derive(Args)]
pub struct Stats {
    /// Shards, and training chunks of Lc0 (.gz).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    files: &'a [PathBuf],
    #[serde(flatten)]
    findings: Findings,
}

impl Stats {
    /// Surveys the files together.
    pub fn run(self) -> anyhow::Result<()> {
        let style = "{elapsed} {human_pos} samples, {per_sec}";
        let progress = ProgressBar::no_length().with_style(ProgressStyle::with_template(style)?);
        let mut survey = Survey::default();
        for path in &self.files {
            if !is_address(path) && is_gzip(path).with_context(|| path.display().to_string())? {
                survey.add_chunk(path)?;
            } else {
                survey.add_shard(&Shard::open(path)?, |samples| progress.inc(samples))?;
            }
        }
        progress.finish_and_clear();
        let findings = survey.finish();
        if findings.statistics.samples == 0 {
            bail!("there is not a single sample in these files");
        }
        if self.json {
            let files = &self.files;
            println!("{}", serde_json::to_string(&Report { files, findings })?);
        } else {
            print(&findings);
        }
        Ok(())
    }
}

fn is_gzip(path: &Path) -> std::io::Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut magic)?;
    Ok(magic == [0x1f, 0x8b])
}

fn print(findings: &Findings) {
    let counts = &findings.statistics;
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let line = |name: &str, part: u64, whole: u64| {
        println!("{name:<22}{part:>12}  {:>5.1} %", percent(part, whole));
    };
    println!("{:<22}{:>12}", "games", counts.games);
    line("  won by White", counts.results.white, counts.games);
    line("  drawn", counts.results.draw, counts.games);
    line("  won by Black", counts.results.black, counts.games);
    line("  without result", counts.results.unknown, counts.games);
    line("  duplicates", findings.duplicate_games, counts.games);
    println!("{:<22}{:>12}", "samples", counts.samples);
    line("  of variations", counts.variation_samples, counts.samples);
    line(
        "  duplicate positions",
        findings.duplicate_positions,
        counts.samples,
    );
    let legal = counts.legal_moves as f64 / counts.samples as f64;
    println!("{:<22}{legal:>12.1}", "  legal moves, mean");
    let targets = &counts.targets;
    println!("targets");
    line("  one move", targets.policy_move, counts.samples);
    line(
        "  distribution",
        targets.policy_distribution,
        counts.samples,
    );
    line("  no policy", targets.policy_unknown, counts.samples);
    line("  result", targets.result, counts.samples);
    line("  q", targets.q, counts.samples);
    line("  short term", targets.short_term, counts.samples);
    line("  moves left", targets.moves_left, counts.samples);
    println!("q of the mover");
    let highest = counts.q_histogram.iter().max().copied().unwrap_or(0);
    for (bar, &count) in counts.q_histogram.iter().enumerate() {
        let from = 2.0 * bar as f64 / BARS as f64 - 1.0;
        let length = (50.0 * count as f64 / highest.max(1) as f64).round() as usize;
        println!("  {from:>4.1} …{count:>13}  {}", "█".repeat(length));
    }
}
