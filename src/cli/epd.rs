//! `tessera epd`: solves a test suite.

use super::output::{print, print_json};
use super::players::{Description, PlayerArguments};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;
use tessera::error_report::tell;
use tessera::eval::epd::{Attempt, Summary, read, sample, summarise};
use tessera::eval::runner;
use tessera::progress;

/// Let a player solve a test suite in EPD format
///
/// Supports best moves (bm), moves to avoid (am), moves with points (c0 "f5=10, Bf2=5") and mates
/// to prove (bm #3).
#[derive(clap::Args)]
pub struct Arguments {
    /// The suite
    #[arg(value_name = "FILE.epd")]
    file: PathBuf,
    /// Use only this many positions, spread evenly over the suite
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print a line for each position
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    player: PlayerArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    player: Description,
    #[serde(flatten)]
    summary: Summary,
    refused: usize,
    seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    positions: Vec<Position>,
}

#[derive(Serialize)]
struct Position {
    id: String,
    line: u64,
    question: String,
    played: Option<String>,
    solved: bool,
    points: u32,
}

impl Position {
    fn new(attempt: &Attempt) -> Position {
        let entry = &attempt.entry;
        Position {
            id: entry.id.clone(),
            line: entry.line,
            question: entry.question(),
            played: attempt.played.map(|mv| entry.san(mv)),
            solved: attempt.verdict.solved,
            points: attempt.verdict.points,
        }
    }
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let (entries, refused) = read(&self.file)?;
        for error in &refused {
            tell(format_args!("left out: {error}"));
        }
        let entries = match self.limit {
            Some(limit) => sample(entries, limit),
            None => entries,
        };
        let mut attempts: Vec<Attempt> = entries.into_iter().map(Attempt::new).collect();
        let pool = self.player.pool(&mut attempts)?;
        let bar = progress::bar(Some(attempts.len() as u64), "positions");
        let clock = Instant::now();
        let attempts = runner::run(attempts, pool.players, &|_| bar.inc(1))?;
        bar.finish_and_clear();
        let positions = attempts.iter().filter(|_| self.details);
        let output = Output {
            player: pool.description,
            summary: summarise(&attempts),
            refused: refused.len(),
            seconds: clock.elapsed().as_secs_f64(),
            positions: positions.map(Position::new).collect(),
        };
        if self.json {
            return print_json(&output);
        }
        print(&table(&output)?)
    }
}

fn table(output: &Output) -> anyhow::Result<String> {
    let mut text = String::new();
    for position in &output.positions {
        let mark = if position.solved { "solved" } else { "failed" };
        let played = position.played.as_deref().unwrap_or("nothing");
        let Position { id, question, .. } = position;
        writeln!(text, "{mark}  {id}: {question}; played {played}")?;
    }
    let summary = &output.summary;
    let percent = 100.0 * summary.accuracy;
    let (solved, total) = (summary.solved, summary.total);
    writeln!(text, "{solved} of {total} solved, {percent:.1} %")?;
    if summary.most_points > 0 {
        writeln!(text, "{} of {} points", summary.points, summary.most_points)?;
    }
    writeln!(text, "{}, {:.1} s", output.player.network, output.seconds)?;
    Ok(text)
}
