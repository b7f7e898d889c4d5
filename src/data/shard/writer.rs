//! Writes a shard.

use crate::atomic_file;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::data::record::Record;

use super::{BlockEntry, END, Header, MAGIC, ShardError, VERSION, columns};

/// Target number of samples per block, large enough for the columns to compress well, and small
/// enough for a loader to mix many blocks.
pub const SAMPLES_PER_BLOCK: u64 = 1 << 15;

/// Compressed games, ready to be written.
pub struct Block {
    bytes: Vec<u8>,
    games: u64,
    samples: u64,
}

impl Block {
    /// Compresses games that give `samples` samples.
    ///
    /// # Errors
    /// The compressor's error, which only a lack of memory can cause.
    pub fn new(records: &[Record], samples: u64) -> std::io::Result<Block> {
        Ok(Block {
            bytes: columns::encode(records)?,
            games: records.len() as u64,
            samples,
        })
    }
}

/// A shard that is being written. It appears atomically under its name when it is finished.
pub struct ShardWriter {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    offset: u64,
    index: Vec<BlockEntry>,
}

impl ShardWriter {
    /// Starts a shard that will appear at `path`.
    ///
    /// # Errors
    /// [`ShardError::Io`] if the folder cannot be written to.
    pub fn create(path: &Path, header: &Header) -> Result<ShardWriter, ShardError> {
        let io = ShardError::io(path);
        let file = atomic_file::unfinished(path).map_err(&io)?;
        let mut writer = ShardWriter {
            path: path.to_owned(),
            file: BufWriter::new(file),
            offset: 0,
            index: Vec::new(),
        };
        let header = serde_json::to_vec(header).map_err(|error| io(error.into()))?;
        writer.write(&MAGIC)?;
        writer.write(&VERSION.to_le_bytes())?;
        writer.write(&(header.len() as u32).to_le_bytes())?;
        writer.write(&crc32fast::hash(&header).to_le_bytes())?;
        writer.write(&header)?;
        Ok(writer)
    }

    /// Appends a block.
    ///
    /// # Errors
    /// [`ShardError::Io`] if the block cannot be written.
    pub fn append(&mut self, block: &Block) -> Result<(), ShardError> {
        self.index.push(BlockEntry {
            offset: self.offset,
            length: block.bytes.len() as u64,
            crc: crc32fast::hash(&block.bytes),
            games: block.games,
            samples: block.samples,
        });
        self.write(&block.bytes)
    }

    /// Writes the index, syncs the file to disk and renames it to its final name. Returns the size
    /// of the shard in bytes.
    ///
    /// # Errors
    /// [`ShardError::Io`] if a step fails; the unfinished file is then removed.
    pub fn finish(mut self) -> Result<u64, ShardError> {
        let index = serde_json::to_vec(&self.index);
        let index = index.map_err(|error| ShardError::io(&self.path)(error.into()))?;
        self.write(&index)?;
        self.write(&(index.len() as u64).to_le_bytes())?;
        self.write(&crc32fast::hash(&index).to_le_bytes())?;
        self.write(&END)?;
        let ShardWriter {
            path, file, offset, ..
        } = self;
        let persist = || {
            let file = file
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)?;
            atomic_file::persist(file, &path)
        };
        persist().map_err(ShardError::io(&path))?;
        Ok(offset)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ShardError> {
        let written = self.file.write_all(bytes);
        written.map_err(ShardError::io(&self.path))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
