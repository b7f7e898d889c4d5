//! Suites of positions with known perft counts.

use super::{SuiteError, lines, read_text};
use crate::chess::Game;
use crate::chess::perft::perft;
use shakmaty::CastlingMode;
use std::path::Path;

/// A position and its known perft counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The position in the suite's notation.
    pub fen: String,
    /// The depths, with the count at each.
    pub counts: Vec<(u32, u64)>,
}

/// The result for a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All tested counts were correct; contains the number of leaves counted.
    Right(u64),
    /// A count differs from the suite's.
    Wrong {
        /// The depth at which it differs.
        depth: u32,
        /// The count according to the suite.
        expected: u64,
        /// The actual count.
        counted: u64,
    },
    /// The position is not playable.
    Refused(String),
}

impl Entry {
    /// Parses `FEN ;D1 20 ;D2 400 …`; spaces around the semicolons are ignored.
    ///
    /// # Errors
    /// The problem with the line, in words.
    pub fn parse(line: &str) -> Result<Entry, String> {
        let mut fields = line.split(';').map(str::trim);
        let fen = fields.next().unwrap_or_default().to_owned();
        let counts = fields
            .filter(|field| !field.is_empty())
            .map(|field| {
                let (depth, count) = field.strip_prefix('D')?.split_once(char::is_whitespace)?;
                Some((depth.parse().ok()?, count.trim().parse().ok()?))
                    .filter(|&(depth, _): &(u32, u64)| depth > 0)
            })
            .collect::<Option<Vec<_>>>();
        match counts {
            Some(counts) if !counts.is_empty() => Ok(Entry { fen, counts }),
            _ => Err("counts are written `;D1 20 ;D2 400`".to_owned()),
        }
    }

    /// Counts leaves at every depth in the suite up to `depth`, skipping depths with more than
    /// `leaves` leaves.
    pub fn check(&self, mode: CastlingMode, depth: u32, leaves: u64) -> Outcome {
        let game = match Game::from_fen(&self.fen, mode) {
            Ok(game) => game,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let mut total = 0;
        for &(at, expected) in &self.counts {
            if at > depth || expected > leaves {
                continue;
            }
            let counted = perft(game.position(), at);
            if counted != expected {
                return Outcome::Wrong {
                    depth: at,
                    expected,
                    counted,
                };
            }
            total += counted;
        }
        Outcome::Right(total)
    }
}

/// Reads a suite, which may be compressed with gzip.
///
/// # Errors
/// [`SuiteError`] with the file and line.
pub fn read(path: &Path) -> Result<Vec<Entry>, SuiteError> {
    let text = read_text(path)?;
    let entries = lines(&text)
        .map(|(line, text)| {
            Entry::parse(text).map_err(|reason| SuiteError::line(path, line, reason))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if entries.is_empty() {
        return Err(SuiteError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    #[test]
    fn both_ways_of_writing_counts() {
        let expected = Entry {
            fen: START.to_owned(),
            counts: vec![(1, 20), (2, 400)],
        };
        for counts in [" ;D1 20 ;D2 400", "; D1 20; D2 400; "] {
            assert_eq!(
                Entry::parse(&format!("{START}{counts}")),
                Ok(expected.clone())
            );
        }
        for counts in ["", ";", ";D1", ";D0 1", ";D1 x", ";20"] {
            assert!(
                Entry::parse(&format!("{START}{counts}")).is_err(),
                "{counts}"
            );
        }
    }

    #[test]
    fn outcomes() {
        let check = |fen: &str, counts: &[(u32, u64)], depth, leaves| {
            let entry = Entry {
                fen: fen.to_owned(),
                counts: counts.to_vec(),
            };
            entry.check(CastlingMode::Standard, depth, leaves)
        };
        let known = [(1, 20), (2, 400), (3, 1)];
        assert_eq!(check(START, &known, 2, 1000), Outcome::Right(420));
        assert_eq!(check(START, &known, 2, 100), Outcome::Right(20));
        let wrong = Outcome::Wrong {
            depth: 3,
            expected: 1,
            counted: 8902,
        };
        assert_eq!(check(START, &known, 3, 1000), wrong);
        let kings = "8/8/8/8/8/8/8/8 w - - 0 1";
        assert!(matches!(check(kings, &known, 1, 1000), Outcome::Refused(_)));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(line in "\\PC*", counts in "(;D[0-9]{1,30} [0-9]{1,30} ?){0,4}") {
            let _ = Entry::parse(&line);
            let _ = Entry::parse(&format!("{START} {counts}"));
        }
    }
}
