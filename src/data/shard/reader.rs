//! Reads a shard.

use std::io;
use std::path::{Path, PathBuf};

use crate::data::record::Record;

use super::storage::Storage;
use super::{BlockEntry, END, Header, MAGIC, PREAMBLE, ShardError, TRAILER, VERSION, columns};

/// An open shard. Threads may read blocks concurrently.
#[derive(Debug)]
pub struct Shard {
    /// The shard's location.
    pub path: PathBuf,
    storage: Storage,
    /// The shard's header.
    pub header: Header,
    index: Vec<BlockEntry>,
}

impl Shard {
    /// Opens a shard and reads its header and index. `path` may also be an address.
    /// `s3://bucket/key` refers to Amazon S3 or a compatible store, with credentials and endpoint
    /// taken from the usual environment variables (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …), and
    /// `https://host/file` refers to a web server.
    ///
    /// # Errors
    /// [`ShardError`] if the file cannot be read, is not a shard, has another version, or is
    /// truncated or damaged.
    pub fn open(path: &Path) -> Result<Shard, ShardError> {
        let io = ShardError::io(path);
        let damaged = |part: &str| ShardError::Damaged {
            path: path.to_owned(),
            part: part.to_owned(),
        };
        let storage = Storage::open(path).map_err(&io)?;
        let size = storage.size();
        let foreign = || ShardError::Foreign {
            path: path.to_owned(),
        };
        if size < PREAMBLE as u64 {
            return Err(foreign());
        }
        let preamble = storage.read(0, PREAMBLE as u64);
        let preamble = preamble.map_err(|source| match source.kind() {
            io::ErrorKind::IsADirectory => foreign(),
            _ => io(source),
        })?;
        if !preamble.starts_with(&MAGIC) {
            return Err(foreign());
        }
        let field = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| preamble[at + byte]));
        if field(8) != VERSION {
            return Err(ShardError::Version {
                path: path.to_owned(),
                found: field(8),
            });
        }
        let (length, crc) = (u64::from(field(12)), field(16));
        let header = section(&storage, PREAMBLE as u64, length, crc)
            .map_err(&io)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| damaged("its header is not as it was written"))?;
        let truncated = || damaged("its end is missing");
        let trailer_at = size.checked_sub(TRAILER as u64).ok_or_else(truncated)?;
        let trailer = storage.read(trailer_at, TRAILER as u64).map_err(&io)?;
        if !trailer.ends_with(&END) {
            return Err(truncated());
        }
        let length = u64::from_le_bytes(std::array::from_fn(|byte| trailer[byte]));
        let crc = u32::from_le_bytes(std::array::from_fn(|byte| trailer[8 + byte]));
        let index_at = trailer_at.checked_sub(length).ok_or_else(truncated)?;
        let index = section(&storage, index_at, length, crc)
            .map_err(&io)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| damaged("its index is not as it was written"))?;
        Ok(Shard {
            path: path.to_owned(),
            storage,
            header,
            index,
        })
    }

    /// Returns the blocks.
    pub fn blocks(&self) -> &[BlockEntry] {
        &self.index
    }

    /// Returns the games of one block.
    ///
    /// # Errors
    /// [`ShardError`] if the block cannot be read or is damaged.
    ///
    /// # Panics
    /// If the block does not exist.
    pub fn read(&self, block: usize) -> Result<Vec<Record>, ShardError> {
        let entry = &self.index[block];
        let bytes = section(&self.storage, entry.offset, entry.length, entry.crc);
        let bytes = bytes.map_err(ShardError::io(&self.path))?;
        let bytes = bytes.ok_or_else(|| ShardError::Damaged {
            path: self.path.clone(),
            part: format!("block {block} is not as it was written"),
        })?;
        columns::decode(&bytes).map_err(|source| ShardError::Columns {
            path: self.path.clone(),
            block,
            source,
        })
    }

    /// Announces that a block will soon be read. If the shard is in an object store, the block is
    /// then prefetched.
    pub(crate) fn announce(&self, block: usize) {
        let entry = &self.index[block];
        self.storage.announce(entry.offset, entry.length);
    }
}

/// Reads a part of the shard. Returns `None` if the part extends past the end or has a different
/// checksum.
fn section(storage: &Storage, offset: u64, length: u64, crc: u32) -> io::Result<Option<Vec<u8>>> {
    match storage.read(offset, length) {
        // Fuzzing skips the checksum, because hardly any input would pass it.
        Ok(bytes) => Ok((cfg!(fuzzing) || crc32fast::hash(&bytes) == crc).then_some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
