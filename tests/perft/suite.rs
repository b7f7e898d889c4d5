//! Suites of positions with known perft counts.

use shakmaty::CastlingMode;
use std::path::Path;
use tessera::chess::Game;
use tessera::chess::perft::divide;
use tessera::eval::{SuiteError, read_text};

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
            let counted = divide(game.position(), at, &|| false, |_, _| {});
            let counted = counted.expect("nothing stops it");
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
/// # Panics
/// With the file and line, if a line is not an entry.
pub fn read(path: &Path) -> Result<Vec<Entry>, SuiteError> {
    let text = read_text(path)?;
    // Lines of one suite end with a NUL.
    let trimmed = |line: &str| {
        line.trim_matches(|c: char| c.is_control() || c == ' ')
            .to_owned()
    };
    let lines = (1..).zip(text.lines().map(trimmed));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|(number, line)| {
        let place = || format!("{}:{number}", path.display());
        Entry::parse(&line).unwrap_or_else(|reason| panic!("{}: {reason}", place()))
    });
    Ok(entries.collect())
}
