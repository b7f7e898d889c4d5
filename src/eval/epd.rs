//! Measures players on test suites in the EPD format (Extended Position Description), in which each
//! line has four fields of a FEN followed by operations such as `bm Qg6; id "WAC.001";`.
//!
//! Published suites deviate from the format; this module reads the variants of Kaufman, Bratko and
//! Kopec, LCT II, Arasan, STS and matetrack.

use super::runner::Task;
use super::{SuiteError, lines, read_text, usable};
use crate::chess::{Game, Notation, epd};
use crate::play::{Choice, Limits, Score};
use serde::Serialize;
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Move};
use std::path::Path;

/// Suffixes that do not affect a move's meaning.
const MARKS: [char; 4] = ['+', '#', '!', '?'];

/// A position and its task.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The number of its line in the file, starting from 1.
    pub line: u64,
    /// The operation `id`, or otherwise the line number.
    pub id: String,
    /// The position.
    pub game: Game,
    /// Best moves (`bm`): if there are any, one of them must be played.
    pub best: Vec<Move>,
    /// Moves to avoid (`am`).
    pub avoid: Vec<Move>,
    /// Points for moves (`c0 "f5=10, Bf2=5"`, as in the Strategic Test Suite).
    pub grades: Vec<(Move, u32)>,
    /// A mate to prove (`bm #3`, or `dm 3` alone), in moves; negative if the side to move gets
    /// mated.
    pub mate: Option<i32>,
}

impl Entry {
    /// Parses one line.
    ///
    /// # Errors
    /// The problem with the line, in words.
    pub fn parse(text: &str, line: u64) -> Result<Entry, String> {
        let (fen, operations) = epd::split(text);
        let game =
            Game::from_fen(&fen, CastlingMode::Standard).map_err(|error| error.to_string())?;
        let mut entry = Entry {
            line,
            id: line.to_string(),
            game,
            best: Vec::new(),
            avoid: Vec::new(),
            grades: Vec::new(),
            mate: None,
        };
        let mut direct_mate = None;
        for operation in &operations {
            let (code, operand) = operation
                .split_once(char::is_whitespace)
                .unwrap_or((operation, ""));
            let operand = operand.trim().trim_matches('"');
            match code {
                "id" => entry.id = operand.to_owned(),
                "bm" if operand.starts_with('#') => {
                    let moves = operand[1..].parse().ok().filter(|&moves| moves != 0);
                    let moves = moves.ok_or_else(|| format!("`{operand}` is not a mate"))?;
                    entry.mate = Some(moves);
                }
                "bm" => entry.best = moves(&entry.game, operand)?,
                "am" => entry.avoid = moves(&entry.game, operand)?,
                "dm" => direct_mate = Some(operand),
                // c0 is a comment; it is only read if it is a list of moves with points.
                "c0" => entry.grades = grades(&entry.game, operand).unwrap_or_default(),
                _ => {}
            }
        }
        let asks = !(entry.best.is_empty() && entry.avoid.is_empty() && entry.grades.is_empty());
        if asks || entry.mate.is_some() {
            return Ok(entry);
        }
        // If moves are given, `dm` is only informative.
        let Some(moves) = direct_mate else {
            let reason = "nothing is asked: no bm, no am, no dm and no moves with points in c0";
            return Err(reason.to_owned());
        };
        let mate = moves.parse().ok().filter(|&moves| moves > 0);
        entry.mate = Some(mate.ok_or_else(|| format!("`dm {moves}` is not a mate"))?);
        Ok(entry)
    }

    /// Returns the score of `choice` in this position.
    pub fn judge(&self, choice: &Choice) -> Verdict {
        let points = |mv: Move| {
            let grade = self.grades.iter().find(|&&(graded, _)| graded == mv);
            grade.map_or(0, |&(_, points)| points)
        };
        let Some(mv) = choice.best else {
            return Verdict::default();
        };
        let points = points(mv);
        let proven = match choice.report.lines.first().map(|line| line.score) {
            Some(Score::Mate(moves)) => Some(moves),
            _ => None,
        };
        let mates = |wanted: i32| {
            proven.is_some_and(|moves| {
                moves.signum() == wanted.signum() && moves.abs() <= wanted.abs()
            })
        };
        let best = if self.best.is_empty() && self.avoid.is_empty() && self.mate.is_none() {
            points == self.most_points()
        } else {
            (self.best.is_empty() || self.best.contains(&mv))
                && !self.avoid.contains(&mv)
                && self.mate.is_none_or(mates)
        };
        Verdict {
            solved: best,
            points,
        }
    }

    /// Returns the maximum points; 0 if moves are not graded.
    pub fn most_points(&self) -> u32 {
        let points = self.grades.iter().map(|&(_, points)| points);
        points.max().unwrap_or(0)
    }

    /// Returns the task in chess notation.
    pub fn question(&self) -> String {
        let san = |moves: &[Move]| -> String {
            let san = moves.iter().map(|&mv| self.san(mv));
            san.collect::<Vec<_>>().join(" ")
        };
        let mut parts = Vec::new();
        if !self.best.is_empty() {
            parts.push(format!("bm {}", san(&self.best)));
        }
        if !self.avoid.is_empty() {
            parts.push(format!("am {}", san(&self.avoid)));
        }
        if let Some(mate) = self.mate {
            parts.push(format!("bm #{mate}"));
        }
        if parts.is_empty() {
            let graded: Vec<Move> = self.grades.iter().map(|&(mv, _)| mv).collect();
            parts.push(format!("best of {}", san(&graded)));
        }
        parts.join(", ")
    }

    /// Returns a legal move of this position in standard algebraic notation.
    pub fn san(&self, mv: Move) -> String {
        SanPlus::from_move(self.game.position().clone(), mv).to_string()
    }
}

/// The score of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the task is solved.
    pub solved: bool,
    /// The points that the answer earns, if moves are graded.
    pub points: u32,
}

fn moves(game: &Game, operand: &str) -> Result<Vec<Move>, String> {
    let mut moves = Vec::new();
    for word in operand.split(|c: char| c.is_whitespace() || c == ',') {
        let bare = word.trim_end_matches(MARKS);
        if bare.is_empty() {
            continue;
        }
        let meant = read_move(game, bare);
        if meant.is_empty() {
            return Err(format!("`{word}` is not a legal move here"));
        }
        moves.extend(meant);
    }
    Ok(moves)
}

/// Returns the legal moves that a move in any notation may mean: two if it is ambiguous between two
/// pieces.
fn read_move(game: &Game, text: &str) -> Vec<Move> {
    let notation = Notation::parse(text.as_bytes());
    notation.map_or_else(Vec::new, |notation| notation.meant(game.position()))
}

/// Parses `f5=10, Bf2=5`; returns `None` for anything else.
fn grades(game: &Game, operand: &str) -> Option<Vec<(Move, u32)>> {
    let mut grades = Vec::new();
    for item in operand.split(',') {
        let (mv, points) = item.trim().rsplit_once('=')?;
        let points = points.parse().ok()?;
        let meant = read_move(game, mv.trim_end_matches(MARKS));
        grades.extend(meant.into_iter().map(|mv| (mv, points)));
    }
    (!grades.is_empty()).then_some(grades)
}

/// Reads a suite, which may be compressed with gzip or zstd. Also returns the errors of unusable
/// lines, because suites contain illegal positions and moves.
///
/// # Errors
/// [`SuiteError`] if no line can be used.
pub fn read(path: &Path) -> Result<(Vec<Entry>, Vec<SuiteError>), SuiteError> {
    let text = read_text(path)?;
    let mut entries = Vec::new();
    let mut refused = Vec::new();
    for (line, text) in lines(&text) {
        match Entry::parse(text, line) {
            Ok(entry) => entries.push(entry),
            Err(reason) => refused.push(SuiteError::line(path, line, reason)),
        }
    }
    usable(entries, refused, path)
}

/// Returns at most `limit` of the entries, spread evenly over the whole suite.
pub fn sample(entries: Vec<Entry>, limit: usize) -> Vec<Entry> {
    let total = entries.len();
    let is_taken =
        |number: usize| limit >= total || (number + 1) * limit / total > number * limit / total;
    let numbered = entries.into_iter().enumerate();
    let taken = numbered.filter(|&(number, _)| is_taken(number));
    taken.map(|(_, entry)| entry).collect()
}

/// A player's answer to an entry.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The entry to answer.
    pub entry: Entry,
    /// The move played; `None` before the answer, or if there is no legal move.
    pub played: Option<Move>,
    /// The score of the answer.
    pub verdict: Verdict,
}

impl Attempt {
    /// Returns an unanswered attempt.
    pub fn new(entry: Entry) -> Attempt {
        Attempt {
            entry,
            played: None,
            verdict: Verdict::default(),
        }
    }
}

impl Task for Attempt {
    fn game(&self) -> &Game {
        &self.entry.game
    }

    fn game_mut(&mut self) -> &mut Game {
        &mut self.entry.game
    }

    fn adjust(&self, limits: &mut Limits) {
        limits.mate = self.entry.mate.and_then(|mate| u32::try_from(mate).ok());
    }

    fn answer(&mut self, choice: &Choice) -> bool {
        self.played = choice.best;
        self.verdict = self.entry.judge(choice);
        false
    }
}

/// The result on a suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Positions solved.
    pub solved: usize,
    /// Positions attempted.
    pub total: usize,
    /// The share solved, in 0…1.
    pub accuracy: f64,
    /// Points earned, if moves are graded.
    pub points: u32,
    /// The maximum points; 0 if no moves are graded.
    pub most_points: u32,
}

/// Sums up the attempts.
pub fn summarise(attempts: &[Attempt]) -> Summary {
    let solved = attempts.iter().filter(|a| a.verdict.solved).count();
    Summary {
        solved,
        total: attempts.len(),
        accuracy: solved as f64 / attempts.len().max(1) as f64,
        points: attempts.iter().map(|a| a.verdict.points).sum(),
        most_points: attempts.iter().map(|a| a.entry.most_points()).sum(),
    }
}

#[cfg(test)]
mod tests;
