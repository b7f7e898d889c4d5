//! `tessera puzzles`: solves Lichess puzzles.

use super::output::{print, print_json};
use super::players::{Description, PlayerArguments};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tessera::error_report::tell;
use tessera::eval::puzzles::{Attempt, Half, SolveRate, Summary, read, sample, summarise};
use tessera::eval::runner;
use tessera::progress;

/// Let a player solve Lichess puzzles
///
/// A puzzle is solved if every move of the solution is found; a different move counts only if it
/// mates immediately.
#[derive(clap::Args)]
pub struct Arguments {
    /// The puzzles: a CSV file with the columns PuzzleId, FEN, Moves, Rating, plain or
    /// compressed with gzip or zstd
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    /// Use only one half of the puzzles, split by a hash of their IDs: choose networks on one half
    /// and report results on the other
    #[arg(long, value_enum, value_name = "HALF")]
    half: Option<Half>,
    /// Use only this many puzzles, spread evenly over the rating bands; every run uses the same
    /// ones
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
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
    seconds: f64,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let (mut puzzles, left_out) = read(&self.file)?;
        for error in &left_out {
            tell(format_args!("left out: {error}"));
        }
        puzzles.retain(|puzzle| self.half.is_none_or(|half| Half::of(puzzle) == half));
        if let Some(limit) = self.limit {
            puzzles = sample(puzzles, limit);
        }
        let mut attempts: Vec<Attempt> = puzzles.into_iter().map(Attempt::new).collect();
        let pool = self.player.pool(&mut attempts)?;
        let bar = progress::bar(Some(attempts.len() as u64), "puzzles");
        let solved = AtomicUsize::new(0);
        let clock = Instant::now();
        let attempts = runner::run(attempts, pool.players, &|attempt: &Attempt| {
            if attempt.solved {
                let solved = solved.fetch_add(1, Ordering::Relaxed) + 1;
                progress::say(&bar, format_args!("{solved} solved"));
            }
            bar.inc(1);
        })?;
        bar.finish_and_clear();
        let output = Output {
            player: pool.description,
            summary: summarise(&attempts),
            seconds: clock.elapsed().as_secs_f64(),
        };
        if self.json {
            return print_json(&output);
        }
        print(&table(&output)?)
    }
}

fn table(output: &Output) -> anyhow::Result<String> {
    let mut text = "rating     solved  total  accuracy\n".to_owned();
    let mut row = |name: &str, score: &SolveRate| {
        let (solved, total, accuracy) = (score.solved, score.total, 100.0 * score.accuracy);
        writeln!(
            text,
            "{name:<9}  {solved:>6}  {total:>5}  {accuracy:>6.1} %"
        )
    };
    for band in &output.summary.bands {
        let name = match band.to {
            Some(to) => format!("{}–{to}", band.from),
            None => format!("{}–", band.from),
        };
        row(&name, &band.score)?;
    }
    row("all", &output.summary.score)?;
    let (network, seconds) = (&output.player.network, output.seconds);
    writeln!(text, "{network}, {seconds:.1} s")?;
    Ok(text)
}
