//! `tessera-train stats`: prints statistics of training data.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::statistics::{BARS, Fault, Findings, PIECE_BAR, RATING_BAR, Survey};
use tessera::data::{Contents, Curve};
use tessera::error_report::tell;
use tessera::progress;

/// Arguments of `tessera-train stats`.
#[derive(Args)]
pub struct Stats {
    /// Shards; Lc0 training chunks (versions 6 and 7, plain or gzip), and tars and folders of
    /// chunks; games in PGN, plain or compressed with gzip or zstd.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// For PGN: the position that a score after a move refers to (see `tessera-train pack`). Every move
    /// counts as a target.
    #[arg(long, value_enum, default_value = "chooser", value_name = "REFERENCE")]
    evals: EvalRefersTo,
    /// For PGN: the curve that converts the engines' scores to values.
    #[arg(long, value_enum, default_value = "lichess", value_name = "CURVE")]
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
    /// Surveys all files together.
    pub fn run(self) -> anyhow::Result<()> {
        let progress = progress::bar(None, "samples");
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
            progress.suspend(|| tell(format_args!("left out: {fault}")));
            Ok(())
        };
        for path in &self.files {
            add(&mut survey, path, Some(&rules), count, bad)?;
        }
        progress.finish_and_clear();
        let findings = survey.finish();
        if findings.statistics.samples == 0 {
            bail!("these files contain no samples");
        }
        let text = match self.json {
            true => serde_json::to_string(&Report {
                files: &self.files,
                findings,
            })?,
            false => table(&findings).join("\n"),
        };
        writeln!(stdout(), "{text}")?;
        Ok(())
    }
}

/// Surveys the data at a path. Games in PGN are accepted only if `rules` are given.
pub fn add(
    survey: &mut Survey,
    path: &Path,
    rules: Option<&TargetRules>,
    progress: impl Fn(u64) + Sync,
    bad: impl Fn(Fault) -> Result<(), Fault> + Sync,
) -> anyhow::Result<()> {
    match Contents::open(path, |file| file)? {
        Contents::Shard(shard) => survey.add_shard(&shard, progress, bad)?,
        Contents::Chunks(chunks) => survey.add_chunks(&chunks, progress, bad)?,
        Contents::Games(games) => match rules {
            Some(rules) => survey.add_games(games, path, rules, progress, bad)?,
            None => bail!("{} is neither a shard nor chunks", path.display()),
        },
    }
    Ok(())
}

/// Returns the lines of the table.
fn table(findings: &Findings) -> Vec<String> {
    let counts = &findings.statistics;
    let (games, samples) = (counts.games, counts.samples);
    let count = |name: &str, count: u64| format!("{name:<22}{count:>12}");
    let share = |name: &str, part: u64, whole: u64| {
        let percent = 100.0 * part as f64 / whole.max(1) as f64;
        format!("{name:<22}{part:>12}  {percent:>5.1} %")
    };
    let legal = counts.legal_moves as f64 / samples as f64;
    let targets = &counts.targets;
    let mut lines = Vec::new();
    if !findings.sources.is_empty() {
        lines.push(format!("packed from {}", findings.sources.join(", ")));
    }
    lines.extend([
        count("games", games),
        share("  won by White", counts.results.white, games),
        share("  drawn", counts.results.draw, games),
        share("  won by Black", counts.results.black, games),
        share("  without result", counts.results.unknown, games),
        share("  duplicates", findings.duplicate_games, games),
        count("samples", samples),
        count("  unusable records", counts.bad_records),
        share("  of variations", counts.variation_samples, samples),
        share(
            "  duplicate positions",
            findings.duplicate_positions,
            samples,
        ),
        format!("{:<22}{legal:>12.1}", "  legal moves, mean"),
        "targets".to_owned(),
        share("  one move", targets.policy_move, samples),
        share("  distribution", targets.policy_distribution, samples),
        share("  no policy", targets.policy_unknown, samples),
        share("  result", targets.result, samples),
        share("  q", targets.q, samples),
        share("  short term", targets.short_term, samples),
        share("  moves left", targets.moves_left, samples),
        "q of the mover".to_owned(),
    ]);
    let bar = |bar: usize| format!("{:>4.1} …", 2.0 * bar as f64 / BARS as f64 - 1.0);
    lines.extend(chart(
        (0..BARS).map(|place| (bar(place), counts.q_histogram[place])),
    ));
    lines.push("pieces on the board".to_owned());
    let bars = counts.piece_histogram.iter();
    lines.extend(chart(bars.map(|(&from, &count)| {
        (format!("{from}–{}", from + PIECE_BAR - 1), count)
    })));
    if !counts.rating_histogram.is_empty() {
        lines.push("ratings of players".to_owned());
        let bars = counts.rating_histogram.iter();
        lines.extend(chart(bars.map(|(&from, &count)| {
            (format!("{from}–{}", from + RATING_BAR - 1), count)
        })));
    }
    lines
}

/// Returns the lines of a bar chart with counts. The longest bar has 50 marks.
fn chart(bars: impl Iterator<Item = (String, u64)> + Clone) -> impl Iterator<Item = String> {
    let highest = bars.clone().map(|(_, count)| count).max().unwrap_or(0);
    bars.map(move |(name, count)| {
        let length = (50.0 * count as f64 / highest.max(1) as f64).round() as usize;
        format!("  {name:<9}{count:>10}  {}", "█".repeat(length))
    })
}
