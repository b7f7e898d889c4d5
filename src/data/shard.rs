//! The shard format for packed games.
//!
//! A shard is a header, blocks of games and an index:
//!
//! ```text
//! "TESSHARD"  version u32  length u32  crc u32  header (JSON)
//! block …                                             (see `columns`)
//! index (JSON): offset, length, crc, games and samples of each block
//! length u64  crc u32  "TESSEND\n"
//! ```
//!
//! Integers are little-endian, and checksums are CRC-32. Blocks are independent, so a loader can
//! read them in any order and on any thread. The header contains the rules for converting the games
//! to samples. The shard stores the engines' original scores, which are converted to values only
//! when samples are extracted.

mod column;
mod columns;
#[cfg(feature = "cloud")]
mod object;
#[cfg(not(feature = "cloud"))]
#[path = "shard/no_object.rs"]
mod object;
mod reader;
mod storage;
mod writer;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::label::TargetRules;
use super::replay::ReplayError;

pub use column::ColumnError;
pub use reader::Shard;
pub use writer::{Block, SAMPLES_PER_BLOCK, ShardWriter};

/// The first bytes of a shard.
pub const MAGIC: [u8; 8] = *b"TESSHARD";
const END: [u8; 8] = *b"TESSEND\n";
/// The version of the format.
pub const VERSION: u32 = 2;
/// Number of bytes before the header: magic, version, length, checksum.
const PREAMBLE: usize = 8 + 4 + 4 + 4;
/// Number of bytes after the index: length, checksum, end mark.
const TRAILER: usize = 8 + 4 + 8;

/// The header of a shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Names of the files that the games were read from.
    pub sources: Vec<String>,
    /// The rules that define the games' targets.
    #[serde(flatten)]
    pub rules: TargetRules,
}

/// One block's entry in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockEntry {
    /// The block's offset in the file.
    pub offset: u64,
    /// The block's length in bytes.
    pub length: u64,
    /// CRC-32 of the block's bytes.
    pub crc: u32,
    /// Number of games in the block.
    pub games: u64,
    /// Number of samples in the block's games.
    pub samples: u64,
}

/// Why a shard cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The system reported an error.
    #[error("cannot use the shard {}: {source}", path.display())]
    Io {
        /// The shard.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a shard.
    #[error("{} is not a shard; `tessera-train pack` makes one from games", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The shard was written by another version of this program.
    #[error(
        "{} is a shard of version {found}, this program reads version {VERSION}; \
         pack its games again",
        path.display()
    )]
    Version {
        /// The shard.
        path: PathBuf,
        /// The version in the shard's header.
        found: u32,
    },
    /// Bytes are missing or changed.
    #[error("{} is damaged: {part}; pack its games again", path.display())]
    Damaged {
        /// The shard.
        path: PathBuf,
        /// The damaged part and its problem.
        part: String,
    },
    /// A block's columns do not match.
    #[error("{}, block {block}: {source}", path.display())]
    Columns {
        /// The shard.
        path: PathBuf,
        /// The block, from 0.
        block: usize,
        /// The mismatch.
        source: ColumnError,
    },
    /// A game cannot be replayed.
    #[error("{}, block {block}, game {game}: {source}", path.display())]
    Replay {
        /// The shard.
        path: PathBuf,
        /// The block, from 0.
        block: usize,
        /// The index of the game in the block, from 0.
        game: usize,
        /// The game's problem.
        source: ReplayError,
    },
}

impl ShardError {
    /// Returns a function that adds the shard's path to the system's errors.
    fn io(path: &Path) -> impl Fn(std::io::Error) -> ShardError + '_ {
        move |source| ShardError::Io {
            path: path.to_owned(),
            source,
        }
    }
}
