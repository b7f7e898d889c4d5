//! Endgame tablebases: the results of perfect play with few pieces on the board.
//!
//! The tables are Syzygy tables (Ronald de Man, 2013). WDL tables contain the result. DTZ tables
//! contain the number of plies until the next capture or pawn move that can be forced. Both take
//! the 50-move rule into account. shakmaty-syzygy reads the files, and `root` finds the moves that
//! preserve the result of a position. `bare_king` needs no files.

pub mod bare_king;
mod root;

pub use root::RootMoves;

use shakmaty::{Chess, Position};
use shakmaty_syzygy::{Syzygy, Tablebase as Tables, Wdl};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, fmt, fs, io};

/// The result of perfect play, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A win.
    Win,
    /// A draw.
    Draw,
    /// A loss.
    Loss,
}

/// The tables in a list of folders. A table is read when it is first needed. Clones share the
/// tables that have been read.
#[derive(Clone)]
pub struct Tablebase {
    /// Whether wins that the 50-move rule prevents count as draws.
    pub fifty_move_rule: bool,
    path: String,
    opened: Arc<OnceLock<Opened>>,
}

/// The tables that were found in the folders.
struct Opened {
    tables: Tables<Chess>,
    inventory: Inventory,
}

/// The contents of the folders.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Number of WDL tables.
    pub wdl: usize,
    /// Number of DTZ tables.
    pub dtz: usize,
    /// Number of pieces in the largest table, including kings. 0 if there are no tables.
    pub pieces: usize,
    /// The folders and files that could not be used.
    pub problems: Vec<TablebaseError>,
}

/// Why tables are missing.
#[derive(Debug, thiserror::Error)]
pub enum TablebaseError {
    /// A folder does not exist or cannot be read.
    #[error("no tablebases from `{}`: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder contains no tables.
    #[error("no tablebases from `{}`: it holds none (files such as KQvK.rtbw)", folder.display())]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
    /// A table cannot be used.
    #[error("the tablebase `{}` is left out: {source}", file.display())]
    File {
        /// The table.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Default for Tablebase {
    fn default() -> Tablebase {
        Tablebase::new("")
    }
}

impl PartialEq for Tablebase {
    /// Returns whether the folders and the treatment of the 50-move rule are equal.
    fn eq(&self, other: &Tablebase) -> bool {
        (&self.path, self.fifty_move_rule) == (&other.path, other.fifty_move_rule)
    }
}

impl fmt::Debug for Tablebase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tablebase")
            .field("path", &self.path)
            .field("fifty_move_rule", &self.fifty_move_rule)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Inventory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inventory {
            wdl, dtz, pieces, ..
        } = self;
        match pieces {
            0 => write!(formatter, "found no tablebases"),
            _ => write!(
                formatter,
                "found {wdl} WDL and {dtz} DTZ tablebases of up to {pieces} pieces"
            ),
        }
    }
}

impl Tablebase {
    /// Uses the tables of the folders in `path`, which are separated by `;` on Windows and by `:`
    /// elsewhere. An empty path means that there are no tables.
    pub fn new(path: &str) -> Tablebase {
        Tablebase {
            fifty_move_rule: true,
            path: path.to_owned(),
            opened: Arc::default(),
        }
    }

    /// Returns the list of folders.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Replaces the list of folders.
    pub fn set_path(&mut self, path: &str) {
        path.clone_into(&mut self.path);
        self.opened = Arc::default();
    }

    /// Returns a summary of the folders' contents. The first call scans the folders.
    pub fn inventory(&self) -> &Inventory {
        &self.opened().inventory
    }

    /// Returns the first problem of the folders and files, if any. The first call scans the folders.
    pub fn problem(&self) -> Option<&TablebaseError> {
        self.inventory().problems.first()
    }

    /// Returns the result of a position immediately after a capture or a pawn move. The results in
    /// WDL tables are valid only for such positions.
    ///
    /// Returns `None` for other positions, for positions with castling rights or too many pieces,
    /// and if a required table is missing or damaged.
    pub fn probe(&self, position: &Chess) -> Option<Verdict> {
        if position.halfmoves() != 0 || !self.covers(position) {
            return None;
        }
        let wdl = self.tables().probe_wdl_after_zeroing(position).ok()?;
        Some(match (wdl, self.fifty_move_rule) {
            (Wdl::Win, _) | (Wdl::CursedWin, false) => Verdict::Win,
            (Wdl::Loss, _) | (Wdl::BlessedLoss, false) => Verdict::Loss,
            (Wdl::Draw | Wdl::CursedWin | Wdl::BlessedLoss, _) => Verdict::Draw,
        })
    }

    /// Returns whether the tables cover the position, which must have few enough pieces and no
    /// castling rights.
    pub fn covers(&self, position: &Chess) -> bool {
        position.board().occupied().count() <= self.inventory().pieces
            && position.castles().is_empty()
    }

    fn tables(&self) -> &Tables<Chess> {
        &self.opened().tables
    }

    fn opened(&self) -> &Opened {
        self.opened.get_or_init(|| Opened::open(&self.path))
    }
}

impl Opened {
    fn open(path: &str) -> Opened {
        let mut opened = Opened {
            tables: Tables::new(),
            inventory: Inventory::default(),
        };
        // A table that is in two folders is counted only once.
        let mut names = HashSet::new();
        for folder in env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()) {
            let problem = match opened.add(&folder, &mut names) {
                Err(source) => TablebaseError::Folder { folder, source },
                Ok(0) => TablebaseError::Empty { folder },
                Ok(_) => continue,
            };
            opened.inventory.problems.push(problem);
        }
        let of_kind = |kind: &str| {
            names
                .iter()
                .filter(|name| has_extension(name, kind))
                .count()
        };
        opened.inventory.wdl = of_kind(Chess::TBW.ext);
        opened.inventory.dtz = of_kind(Chess::TBZ.ext);
        opened.inventory.pieces = opened.tables.max_pieces();
        opened
    }

    /// Adds the tables in a folder, and inserts their names into `names`. Returns the number of
    /// tables added.
    fn add(&mut self, folder: &Path, names: &mut HashSet<PathBuf>) -> io::Result<usize> {
        let mut found = 0;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match self.tables.add_file(entry.path()) {
                Ok(()) => {
                    names.insert(entry.file_name().into());
                }
                // The file does not have the name of a table.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => continue,
                Err(source) => self.inventory.problems.push(TablebaseError::File {
                    file: entry.path(),
                    source,
                }),
            }
            found += 1;
        }
        Ok(found)
    }
}

fn has_extension(name: &Path, extension: &str) -> bool {
    name.extension().is_some_and(|found| found == extension)
}
