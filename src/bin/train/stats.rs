//! `train stats`: statistics of training data.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tessera::data::Curve;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::shard::{MAGIC, Shard, is_address};
use tessera::data::statistics::{BARS, Fault, Findings, PIECE_BAR, RATING_BAR, Survey};
use tessera::data::v6::Chunks;

/// Arguments of `train stats`.
#[derive(Args)]
pub struct Stats {
    /// Shards; training chunks of Lc0 (versions 6 and 7, gzip or plain), tars
    /// and folders of them; games in PGN, also gzip or zstd.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// For PGN: what a score after a move refers to, see `train pack`. Every move
    /// counts as a target.
    #[arg(long, value_enum, default_value = "chooser")]
    evals: EvalRefersTo,
    /// For PGN: the curve from the engines' scores to values.
    #[arg(long, value_enum, default_value = "lichess")]
    curve: Curve,
    /// Stop at the first unusable record instead of skipping it.
    #[arg(long)]
    strict: bool,
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
        let rules = TargetRules {
            evals: Some(self.evals),
            played: true,
            noise: false,
            curve: self.curve,
            alternatives: None,
        };
        let count = |samples| progress.inc(samples);
        let bad = |fault: Fault| {
            if self.strict {
                return Err(fault);
            }
            progress.suspend(|| eprintln!("skipped {fault}"));
            Ok(())
        };
        for path in &self.files {
            let named = || path.display().to_string();
            if is_shard(path).with_context(named)? || Chunks::are_at(path).with_context(named)? {
                add_packed(&mut survey, path, count, bad)?;
            } else {
                survey.add_pgn(path, &rules, count, bad)?;
            }
        }
        progress.finish_and_clear();
        let findings = survey.finish();
        if findings.statistics.samples == 0 {
            bail!("these files contain no samples");
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

/// Surveys a shard, or chunks.
pub fn add_packed(
    survey: &mut Survey,
    path: &Path,
    progress: impl Fn(u64) + Sync,
    bad: impl Fn(Fault) -> Result<(), Fault> + Sync,
) -> anyhow::Result<()> {
    if is_shard(path).with_context(|| path.display().to_string())? {
        survey.add_shard(&Shard::open(path)?, progress, bad)?;
    } else {
        survey.add_chunks(&Chunks::open(path)?, progress, bad)?;
    }
    Ok(())
}

fn is_shard(path: &Path) -> std::io::Result<bool> {
    // Only shards are read from object stores.
    if path.is_dir() || is_address(path) {
        return Ok(is_address(path));
    }
    let mut start = Vec::new();
    File::open(path)?
        .take(MAGIC.len() as u64)
        .read_to_end(&mut start)?;
    Ok(start == MAGIC)
}

fn print(findings: &Findings) {
    let counts = &findings.statistics;
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let line = |name: &str, part: u64, whole: u64| {
        println!("{name:<22}{part:>12}  {:>5.1} %", percent(part, whole));
    };
    if !findings.sources.is_empty() {
        println!("packed from {}", findings.sources.join(", "));
    }
    println!("{:<22}{:>12}", "games", counts.games);
    line("  won by White", counts.results.white, counts.games);
    line("  drawn", counts.results.draw, counts.games);
    line("  won by Black", counts.results.black, counts.games);
    line("  without result", counts.results.unknown, counts.games);
    line("  duplicates", findings.duplicate_games, counts.games);
    println!("{:<22}{:>12}", "samples", counts.samples);
    println!("{:<22}{:>12}", "  unusable records", counts.bad_records);
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
    let bar = |bar: usize| format!("{:>4.1} …", 2.0 * bar as f64 / BARS as f64 - 1.0);
    chart((0..BARS).map(|place| (bar(place), counts.q_histogram[place])));
    println!("pieces on the board");
    let bars = counts.piece_histogram.iter();
    chart(bars.map(|(&from, &count)| (format!("{from}–{}", from + PIECE_BAR - 1), count)));
    if !counts.rating_histogram.is_empty() {
        println!("ratings of players");
        let bars = counts.rating_histogram.iter();
        chart(bars.map(|(&from, &count)| (format!("{from}–{}", from + RATING_BAR - 1), count)));
    }
}

/// A bar chart with counts; the longest bar has 50 marks.
fn chart(bars: impl Iterator<Item = (String, u64)> + Clone) {
    let highest = bars.clone().map(|(_, count)| count).max().unwrap_or(0);
    for (name, count) in bars {
        let length = (50.0 * count as f64 / highest.max(1) as f64).round() as usize;
        println!("  {name:<9}{count:>10}  {}", "█".repeat(length));
    }
}
