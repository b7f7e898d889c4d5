//! Reading a shard.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::data::record::Record;

use super::{
    BlockEntry, END, Header, MAGIC, OLDEST, PREAMBLE, ShardError, TRAILER, VERSION, columns,
};

/// An open shard. Threads may read blocks at the same time.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    file: Mutex<File>,
    version: u32,
    header: Header,
    index: Vec<BlockEntry>,
}

impl Shard {
    /// Opens a shard and reads its header and index.
    ///
    /// # Errors
    /// [`ShardError`] if the file cannot be read, is no shard, of another
    /// version, cut off or damaged.
    pub fn open(path: &Path) -> Result<Shard, ShardError> {
        let io = |source| ShardError::Io {
            path: path.to_owned(),
            source,
        };
        let damaged = |part: &str| ShardError::Damaged {
            path: path.to_owned(),
            part: part.to_owned(),
        };
        let mut file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut preamble = [0; PREAMBLE];
        let read = file.read_exact(&mut preamble);
        if read.is_err() || !preamble.starts_with(&MAGIC) {
            return Err(ShardError::Foreign {
                path: path.to_owned(),
            });
        }
        let field = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| preamble[at + byte]));
        if !(OLDEST..=VERSION).contains(&field(8)) {
            return Err(ShardError::Version {
                path: path.to_owned(),
                found: field(8),
            });
        }
        let (length, crc) = (u64::from(field(12)), field(16));
        let header = section(&mut file, size, PREAMBLE as u64, length, crc)
            .map_err(io)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| damaged("its header is not as it was written"))?;
        let truncated = || damaged("its end is missing");
        let trailer_at = size.checked_sub(TRAILER as u64).ok_or_else(truncated)?;
        let mut trailer = [0; TRAILER];
        file.seek(SeekFrom::Start(trailer_at)).map_err(io)?;
        file.read_exact(&mut trailer).map_err(io)?;
        if !trailer.ends_with(&END) {
            return Err(truncated());
        }
        let length = u64::from_le_bytes(std::array::from_fn(|byte| trailer[byte]));
        let crc = u32::from_le_bytes(std::array::from_fn(|byte| trailer[8 + byte]));
        let index_at = trailer_at.checked_sub(length).ok_or_else(truncated)?;
        let index = section(&mut file, size, index_at, length, crc)
            .map_err(io)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| damaged("its index is not as it was written"))?;
        Ok(Shard {
            path: path.to_owned(),
            file: Mutex::new(file),
            version: field(8),
            header,
            index,
        })
    }

    /// Where the shard lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the shard says of its games.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The blocks.
    #[must_use]
    pub fn blocks(&self) -> &[BlockEntry] {
        &self.index
    }

    /// The games of one block.
    ///
    /// # Errors
    /// [`ShardError`] if the block cannot be read or is not as it was written.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn read(&self, block: usize) -> Result<Vec<Record>, ShardError> {
        let entry = &self.index[block];
        let bytes = {
            let mut file = self.file.lock();
            let size = file.metadata().map_err(|source| self.io(source))?.len();
            section(&mut file, size, entry.offset, entry.length, entry.crc)
        };
        let bytes = bytes.map_err(|source| self.io(source))?;
        let bytes = bytes.ok_or_else(|| ShardError::Damaged {
            path: self.path.clone(),
            part: format!("block {block} is not as it was written"),
        })?;
        columns::decode(&bytes, self.version).map_err(|source| ShardError::Columns {
            path: self.path.clone(),
            block,
            source,
        })
    }

    fn io(&self, source: std::io::Error) -> ShardError {
        ShardError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

/// Reads a part of a file; `None` if the file ends before it or the checksum
/// differs.
fn section(
    file: &mut File,
    size: u64,
    offset: u64,
    length: u64,
    crc: u32,
) -> std::io::Result<Option<Vec<u8>>> {
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Ok(None);
    }
    let mut bytes = vec![0; length as usize];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut bytes)?;
    Ok((crc32fast::hash(&bytes) == crc).then_some(bytes))
}
