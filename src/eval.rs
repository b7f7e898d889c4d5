//! Measuring: players on puzzles and test suites, the search by its bench,
//! backends by their speed, move generation by perft.
//!
//! | module | measures |
//! |---|---|
//! | [`puzzles`] | players on Lichess puzzles |
//! | [`epd`] | players on suites in the EPD format |
//! | [`runner`] | puts many positions to players at once |
//! | [`mod@bench`] | the search: its signature and its speed |
//! | [`throughput`] | a backend: evaluations a second by batch size |
//! | [`move_match`] | networks against people's moves, by rating |
//! | [`perft`] | move generation against suites of known counts |

pub mod bench;
pub mod epd;
pub mod move_match;
pub mod perft;
pub mod puzzles;
pub mod runner;
pub mod throughput;

use crate::bounded::{self, LARGEST_TEXT, Limited};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing in the file.
    #[error("{path} holds no position")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A suite's text. Old suites are in no known encoding and end in control
/// characters; moves and FENs are ASCII, so nothing that counts is lost.
/// Files ending in `.gz` are inflated.
fn read_text(path: &Path) -> Result<String, SuiteError> {
    let bytes = bounded::read(path, LARGEST_TEXT).and_then(|bytes| {
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut inflated = Vec::new();
            Limited::new(MultiGzDecoder::new(bytes.as_slice()), LARGEST_TEXT)
                .read_to_end(&mut inflated)?;
            return Ok(inflated);
        }
        Ok(bytes)
    });
    match bytes {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(source) => Err(SuiteError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The lines that say something, with their numbers from 1.
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
