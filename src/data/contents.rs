//! Opens the training data at a path.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::pgn::Games;
use super::shard::{self, Shard, ShardError};
use super::v6::{self, Chunks, V6Error};
use crate::packed::{self, Stream};
use crate::store::is_address;

/// Training data, whose kind is identified by its name and its first bytes. Anything that is
/// neither a regular file nor a folder is read only once, from front to back, because it may be a
/// pipe.
pub enum Contents {
    /// Games in PGN.
    Games(Games<Stream>),
    /// Chunks of Lc0.
    Chunks(Chunks),
    /// A shard.
    Shard(Shard),
}

/// Why the training data at a path cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// The data cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A shard cannot be read.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A folder or a tar cannot be read.
    #[error(transparent)]
    Chunks(#[from] V6Error),
    /// A shard comes through a pipe.
    #[error("{} is a shard, which cannot be read from a pipe: name a file", path.display())]
    Pipe {
        /// The path.
        path: PathBuf,
    },
    /// A folder or a tar contains no chunks.
    #[error(
        "{} contains no training chunks (*.gz, training.*, game_*): name files of games \
         individually",
        path.display()
    )]
    Empty {
        /// The path.
        path: PathBuf,
    },
}

impl Contents {
    /// Opens the data at `path`, which for a shard may also be an address. A file of games is
    /// passed to `wrap` before decompression, for example to show a progress bar.
    ///
    /// # Errors
    /// [`ContentsError`] if the data cannot be read, or if `path` is a folder without chunks.
    pub fn open<R: Read + Send + 'static>(
        path: &Path,
        wrap: impl FnOnce(File) -> R,
    ) -> Result<Contents, ContentsError> {
        if is_address(path) {
            return Ok(Contents::Shard(Shard::open(path)?));
        }
        let failed = |source| ContentsError::Read {
            path: path.to_owned(),
            source,
        };
        let is_file = !packed::is_stdin(path) && path.metadata().map_err(failed)?.is_file();
        if path.is_dir() || is_file && v6::is_named_as_chunks(path) {
            return chunks(Chunks::open(path)?, path);
        }
        let file = wrap(packed::open_file(path).map_err(failed)?);
        let file = BufReader::with_capacity(packed::BUFFER, file);
        let (start, stream) = packed::peek(file, v6::TAR_HEADER);
        if start.starts_with(&shard::MAGIC) {
            return match is_file {
                true => Ok(Contents::Shard(Shard::open(path)?)),
                false => Err(ContentsError::Pipe {
                    path: path.to_owned(),
                }),
            };
        }
        if v6::is_tar_header(&start) {
            return match is_file {
                true => chunks(Chunks::open(path)?, path),
                false => chunks(Chunks::read_from(stream, path)?, path),
            };
        }
        let unpacked = packed::unpack(stream).map_err(failed)?;
        let (start, unpacked) = packed::peek(unpacked, size_of::<u32>());
        if v6::is_record(&start) {
            return match is_file {
                true => chunks(Chunks::open(path)?, path),
                false => chunks(Chunks::read_from(unpacked, path)?, path),
            };
        }
        let text = packed::text(Box::new(unpacked)).map_err(failed)?;
        Ok(Contents::Games(Games::new(text)))
    }
}

fn chunks(chunks: Chunks, path: &Path) -> Result<Contents, ContentsError> {
    match chunks.is_empty() {
        false => Ok(Contents::Chunks(chunks)),
        true => Err(ContentsError::Empty {
            path: path.to_owned(),
        }),
    }
}
