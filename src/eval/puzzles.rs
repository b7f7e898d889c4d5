//! Measures players on Lichess puzzles.
//!
//! The protocol is that of Ruoss et al., "Amortized Planning with Large-Scale Transformers: A
//! Case Study on Chess" (2024): a puzzle is solved if the player finds every move of the
//! solution. A different move counts only if it mates immediately, and then the puzzle is solved.
//! The opponent's moves are given.

use super::runner::Task;
use super::{SuiteError, usable};
use crate::bounded::Limited;
use crate::chess::Game;
use crate::packed;
use crate::play::Choice;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use shakmaty::{CastlingMode, Move, Position};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::Path;

/// Width of a rating band.
pub const BAND: u32 = 200;
/// The lower end of the last band, which has no upper end.
pub const LAST_BAND: u32 = 2800;
/// Maximum size of a puzzle file in bytes: 4 GiB, about four times Lichess's whole database.
const LARGEST_FILE: u64 = 4 << 30;
/// Seed of the samples, fixed so that the puzzles are the same every time.
const SAMPLE_SEED: u64 = 1858;

/// One puzzle.
#[derive(Clone, Debug)]
pub struct Puzzle {
    /// The puzzle's Lichess ID.
    pub id: String,
    /// The puzzle's difficulty, on Lichess's scale.
    pub rating: u32,
    /// The puzzle's Lichess themes, separated by spaces; `None` if the file lacks the column.
    pub themes: Option<String>,
    /// The game up to the first position to solve: the position before the opponent's move,
    /// followed by that move.
    pub game: Game,
    /// The moves of the solution, which begins with the solver's move and alternates with the
    /// opponent's.
    pub solution: Vec<Move>,
}

/// The columns required in every file.
const COLUMNS: [&str; 4] = ["PuzzleId", "FEN", "Moves", "Rating"];

/// The columns that are read; Lichess's files have more.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record {
    puzzle_id: String,
    #[serde(rename = "FEN")]
    fen: String,
    moves: String,
    rating: u32,
    themes: Option<String>,
}

impl Puzzle {
    fn from_record(record: Record) -> Result<Puzzle, String> {
        let Record { fen, moves, .. } = &record;
        let mut game =
            Game::from_fen(fen, CastlingMode::Standard).map_err(|error| error.to_string())?;
        let mut line = game.clone();
        let mut solution = Vec::new();
        for text in moves.split_whitespace() {
            let mv = line.parse_move(text).map_err(|error| error.to_string())?;
            line.play(mv);
            solution.push(mv);
        }
        if solution.len() < 2 {
            return Err("a puzzle has the opponent's move and at least one of its own".to_owned());
        }
        game.play(solution.remove(0));
        Ok(Puzzle {
            id: record.puzzle_id,
            rating: record.rating,
            themes: record.themes,
            game,
            solution,
        })
    }

    /// Returns the positions in which the solver moves.
    pub fn positions(&self) -> impl Iterator<Item = Game> {
        let mut game = self.game.clone();
        let mut line = self.solution.chunks(2);
        std::iter::from_fn(move || {
            let moves = line.next()?;
            let asked = game.clone();
            for &mv in moves {
                game.play(mv);
            }
            Some(asked)
        })
    }

    /// Returns the lower end of the puzzle's rating band.
    pub fn band(&self) -> u32 {
        (self.rating / BAND * BAND).min(LAST_BAND)
    }
}

/// One of the two halves of a set of puzzles. Networks and settings are chosen on one and
/// reported on the other, to avoid selection bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Half {
    /// For choosing.
    Select,
    /// For reporting.
    Report,
}

impl Half {
    /// Returns the half that a puzzle belongs to, which is determined by the hash of its ID and is
    /// therefore the same in every file.
    pub fn of(puzzle: &Puzzle) -> Half {
        match Sha256::digest(&puzzle.id)[0] % 2 {
            0 => Half::Select,
            _ => Half::Report,
        }
    }
}

/// Reads puzzles from a CSV file, plain or compressed with gzip or zstd. It must have the columns
/// `PuzzleId`, `FEN`, `Moves` and `Rating`, in any order, and may have others. Also returns the
/// rows that were skipped because one of these columns is empty.
///
/// # Errors
/// [`SuiteError`] with the file and line of the first damaged row, or if there are no puzzles.
pub fn read(path: &Path) -> Result<(Vec<Puzzle>, Vec<SuiteError>), SuiteError> {
    let text = packed::open(path, |file| file).map_err(SuiteError::read(path))?;
    parse(text, path)
}

/// Does the same as [`read`] with text from another source; `path` is used in messages.
///
/// # Errors
/// The same errors as [`read`].
pub fn parse(text: impl Read, path: &Path) -> Result<(Vec<Puzzle>, Vec<SuiteError>), SuiteError> {
    let fault = |line: u64, reason: String| SuiteError::line(path, line, reason);
    let (mut puzzles, mut left_out) = (Vec::new(), Vec::new());
    // An unterminated row is as long as the rest of the file.
    let mut reader = csv::Reader::from_reader(Limited::new(text, LARGEST_FILE));
    let headers = reader
        .headers()
        .map_err(|error| fault(1, error.to_string()))?
        .clone();
    let mut columns = Vec::new();
    for column in COLUMNS {
        match headers.iter().position(|header| header == column) {
            Some(place) => columns.push((column, place)),
            None => return Err(fault(1, format!("the column `{column}` is missing"))),
        }
    }
    for row in reader.records() {
        let row = row.map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            fault(line, error.to_string())
        })?;
        let line = row.position().map_or(1, csv::Position::line);
        let is_empty = |&&(_, place): &&(&str, usize)| row[place].trim().is_empty();
        if let Some((column, _)) = columns.iter().find(is_empty) {
            left_out.push(fault(line, format!("the column `{column}` is empty")));
            continue;
        }
        let record: Record = row
            .deserialize(Some(&headers))
            .map_err(|error| fault(line, error.to_string()))?;
        puzzles.push(Puzzle::from_record(record).map_err(|reason| fault(line, reason))?);
    }
    usable(puzzles, left_out, path)
}

/// Returns at most `limit` of the puzzles. They are sampled from the rating bands alternately, so
/// that every band contributes equally until it runs out. The same puzzles always give the same
/// sample.
pub fn sample(puzzles: Vec<Puzzle>, limit: usize) -> Vec<Puzzle> {
    let mut bands: BTreeMap<u32, Vec<Puzzle>> = BTreeMap::new();
    for puzzle in puzzles {
        bands.entry(puzzle.band()).or_default().push(puzzle);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SAMPLE_SEED);
    let mut bands: VecDeque<Vec<Puzzle>> = bands.into_values().collect();
    for band in &mut bands {
        band.shuffle(&mut random);
    }
    let mut sample = Vec::new();
    while sample.len() < limit {
        let Some(mut band) = bands.pop_front() else {
            break;
        };
        if let Some(puzzle) = band.pop() {
            sample.push(puzzle);
            bands.push_back(band);
        }
    }
    sample
}

/// A player's attempt at a puzzle.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The puzzle.
    pub puzzle: Puzzle,
    game: Game,
    found: usize,
    /// Whether the whole solution has been found.
    pub solved: bool,
}

impl Attempt {
    /// Returns an unanswered attempt.
    pub fn new(puzzle: Puzzle) -> Attempt {
        Attempt {
            game: puzzle.game.clone(),
            puzzle,
            found: 0,
            solved: false,
        }
    }
}

impl Task for Attempt {
    fn game(&self) -> &Game {
        &self.game
    }

    fn game_mut(&mut self) -> &mut Game {
        &mut self.game
    }

    fn answer(&mut self, choice: &Choice) -> bool {
        let Some(mv) = choice.best else {
            return false;
        };
        self.game.play(mv);
        if mv != self.puzzle.solution[self.found] {
            self.solved = self.game.position().is_checkmate();
            return false;
        }
        let mut rest = self.puzzle.solution[self.found + 1..].iter();
        // A solution may end with the opponent's move; the solver then has no move left.
        if let (Some(&reply), Some(_)) = (rest.next(), rest.next()) {
            self.game.play(reply);
            self.found += 2;
            return true;
        }
        self.solved = true;
        false
    }
}

/// The number and share of solved puzzles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SolveRate {
    /// Puzzles solved.
    pub solved: usize,
    /// Puzzles attempted.
    pub total: usize,
    /// The share solved, in 0…1.
    pub accuracy: f64,
}

impl SolveRate {
    fn add(&mut self, solved: bool) {
        self.solved += usize::from(solved);
        self.total += 1;
        self.accuracy = self.solved as f64 / self.total as f64;
    }
}

/// The solution rate among puzzles of similar rating.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BandRate {
    /// The lowest rating in the band.
    pub from: u32,
    /// The highest rating in the band; `None` for the last band.
    pub to: Option<u32>,
    /// The solution rate.
    #[serde(flatten)]
    pub score: SolveRate,
}

/// The result on a set of puzzles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The solution rate over all puzzles.
    #[serde(flatten)]
    pub score: SolveRate,
    /// The solution rates by rating, lowest first; empty bands are omitted.
    pub bands: Vec<BandRate>,
}

/// Sums up the attempts.
pub fn summarise(attempts: &[Attempt]) -> Summary {
    let mut all = SolveRate::default();
    let mut bands: BTreeMap<u32, SolveRate> = BTreeMap::new();
    for attempt in attempts {
        all.add(attempt.solved);
        let band = bands.entry(attempt.puzzle.band()).or_default();
        band.add(attempt.solved);
    }
    Summary {
        score: all,
        bands: bands
            .into_iter()
            .map(|(from, score)| BandRate {
                from,
                to: (from < LAST_BAND).then_some(from + BAND - 1),
                score,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
