//! Lc0 training chunks, versions 6 and 7. A chunk is usually a gzip file with the records of one
//! game. A record contains a position, its search result and the game's result.
//!
//! [`Chunks`] finds chunks in files, tars and folders. [`Chunk`] contains the records of one chunk
//! and converts them to samples. [`game_records`] and [`write_chunk`] create chunks from searched
//! games.

mod chunk;
mod files;
mod game;
mod pack;
mod record;
mod samples;
mod unpack;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::replay::ReplayError;
use crate::encode::InputError;

pub use chunk::{Chunk, Records};
pub use files::Chunks;
pub(crate) use files::{TAR_HEADER, is_named_as_chunks, is_record, is_tar_header};
pub use game::{
    ChunkWriteError, Ending, Expectation, Searched, divergence, game_records, write_chunk,
};
pub use record::{
    ADJUDICATED, CUT_OFF, DELETED, FORMAT, PROVEN, RECORD_SIZE, V6Record, V7_RECORD_SIZE, VERSION,
};
pub use unpack::MAX_UNPACKED;

/// Why a record, or the rest of a chunk, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum V6Fault {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The rest of the chunk cannot be decompressed: it is truncated, damaged or larger than
    /// [`MAX_UNPACKED`].
    #[error("the rest cannot be decompressed: {0}")]
    Unpack(Arc<str>),
    /// The file ends within a record.
    #[error("the file ends after {0} bytes of a record")]
    Truncated(usize),
    /// The record has an unsupported version.
    #[error("the record is of version {0}; only versions 6 and 7 are supported")]
    Version(u32),
    /// The planes are in an unsupported input format.
    #[error("the record is in input format {0}; only format {FORMAT} is supported")]
    Format(u32),
    /// A castling right has no matching rook.
    #[error("there is no rook for a castling right")]
    Castling,
    /// The planes do not form a legal position.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The policy contains an illegal move or lacks a legal one.
    #[error("policy and position disagree on whether move {0} of the policy is legal")]
    Legal(u16),
    /// The move played or the best move is illegal.
    #[error("move {0} of the policy was played or found best but is not legal")]
    Move(u16),
    /// The policy is not a distribution.
    #[error("the policy adds up to {0} instead of 1")]
    Sum(f32),
    /// The record was changed by a rescorer in a way that a shard cannot represent.
    #[error(
        "the game was rescored: it can only be trained on as it is, by [[data.chunks]] and a \
         network of input format {FORMAT}"
    )]
    Rescored,
    /// An unknown game of the chunk cannot be replayed.
    #[error(transparent)]
    Game(#[from] ReplayError),
    /// A value is out of range.
    #[error("{name} is {value}")]
    Value {
        /// The record's field.
        name: &'static str,
        /// The field's value.
        value: f32,
    },
}

/// A fault and its location in a chunk.
#[derive(Debug, thiserror::Error)]
#[error("{}, byte {offset} after decompression: {fault}", path.display())]
pub struct V6Error {
    /// The path of the chunk; for a chunk in a tar, the tar's path followed by the member's path.
    pub path: PathBuf,
    /// The record's offset in the unpacked bytes.
    pub offset: u64,
    /// The record's problem.
    pub fault: V6Fault,
}

impl V6Error {
    pub(super) fn new(path: &Path, offset: u64, fault: impl Into<V6Fault>) -> V6Error {
        V6Error {
            path: path.to_owned(),
            offset,
            fault: fault.into(),
        }
    }
}
