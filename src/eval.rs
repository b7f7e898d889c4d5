//! Measurement: players on puzzles and test suites, the search with its bench, and backend speed.
//!
//! | module | measures |
//! |---|---|
//! | [`puzzles`] | players on Lichess puzzles |
//! | [`epd`] | players on suites in the EPD format |
//! | [`runner`] | runs players on many positions concurrently |
//! | [`mod@bench`] | the search: its signature and its speed |
//! | [`throughput`] | a backend: evaluations per second by batch size |
//! | [`move_match`] | how well networks predict people's moves, by rating |
//! | `futures` | networks' imagined futures, compared with an engine's lines |
//! | [`positions`] | reads the positions of puzzles and suites (measures nothing) |

pub mod bench;
pub mod epd;
#[cfg(feature = "torch")]
pub mod futures;
pub mod move_match;
pub mod positions;
pub mod puzzles;
pub mod runner;
pub mod throughput;

use crate::bounded::LARGEST_TEXT;
use crate::data::pgn::{GameError, GamePlace};
use crate::packed;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A malformed line.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, starting from 1.
        line: u64,
        /// The problem.
        reason: String,
    },
    /// A skipped game.
    #[error("{path}, {game}: {source}")]
    Game {
        /// The file.
        path: PathBuf,
        /// The game.
        game: GamePlace,
        /// The problem.
        source: GameError,
    },
    /// No game has the required data.
    #[error("{path} has nothing to measure: {reason}")]
    Unselected {
        /// The file.
        path: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// The file has no positions.
    #[error("{path} holds no position")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl SuiteError {
    /// Returns a function that adds the file's path to the system's errors.
    fn read(path: &Path) -> impl Fn(std::io::Error) -> SuiteError + '_ {
        move |source| SuiteError::Read {
            path: path.to_owned(),
            source,
        }
    }

    fn line(path: &Path, line: u64, reason: impl ToString) -> SuiteError {
        SuiteError::Line {
            path: path.to_owned(),
            line,
            reason: reason.to_string(),
        }
    }
}

/// Reads the text of a positions file, which may be compressed with gzip or zstd.
///
/// # Errors
/// [`SuiteError::Read`] if the file cannot be read, is a folder or is in UTF-16.
pub fn read_text(path: &Path) -> Result<String, SuiteError> {
    let text = packed::open(path, |file| file).and_then(text_of);
    text.map_err(SuiteError::read(path))
}

/// Reads a whole text, replacing bytes that are not UTF-8. The encoding of old suites is unknown
/// and some end in control characters, but moves and FENs are ASCII, so nothing relevant is lost.
fn text_of(stream: impl Read) -> std::io::Result<String> {
    let bytes = packed::read_all(stream, LARGEST_TEXT)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the items that were parsed and the errors of the rejected ones; fails if no item is
/// usable.
fn usable<T>(
    read: Vec<T>,
    refused: Vec<SuiteError>,
    path: &Path,
) -> Result<(Vec<T>, Vec<SuiteError>), SuiteError> {
    if !read.is_empty() {
        return Ok((read, refused));
    }
    Err(match refused.into_iter().next() {
        Some(first) => first,
        None => SuiteError::Empty {
            path: path.to_owned(),
        },
    })
}

/// Returns the non-empty lines with their numbers, starting from 1.
fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| {
            (
                number,
                line.trim_matches(|c: char| c.is_control() || c == ' '),
            )
        })
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
