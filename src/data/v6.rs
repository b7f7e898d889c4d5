//! Training chunks of Lc0, version 6: gzip files of records, one a game as a
//! rule, each record a position with what the search and the game said of it.

mod game;
mod record;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::encode::InputError;

pub use game::{
    ChunkWriteError, Ending, Expectation, Searched, divergence, game_records, write_chunk,
};
pub use record::{ADJUDICATED, CUT_OFF, FORMAT, PROVEN, RECORD_SIZE, V6Record, VERSION};

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum V6Fault {
    /// The system or the decompressor refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file ends within a record.
    #[error("the file ends after {0} of a record's {RECORD_SIZE} bytes")]
    Truncated(usize),
    /// The record is of another version.
    #[error("the record is of version {0}; version {VERSION} is read")]
    Version(u32),
    /// The planes are in another input format.
    #[error("the record is in input format {0}; format {FORMAT} is read")]
    Format(u32),
    /// A castling right without a rook it could belong to.
    #[error("there is no rook for a castling right")]
    Castling,
    /// The planes show no position.
    #[error(transparent)]
    Input(#[from] InputError),
}

/// What is wrong where in a chunk.
#[derive(Debug, thiserror::Error)]
#[error("{}, byte {offset} unpacked: {fault}", path.display())]
pub struct V6Error {
    /// The chunk.
    pub path: PathBuf,
    /// Where the record begins in the unpacked bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub fault: V6Fault,
}

/// The records of a chunk, read one by one.
pub struct Chunk<R> {
    path: PathBuf,
    reader: R,
    offset: u64,
    has_failed: bool,
}

impl Chunk<MultiGzDecoder<BufReader<File>>> {
    /// Opens a chunk.
    ///
    /// # Errors
    /// [`V6Error`] if there is no such file.
    pub fn open(path: &Path) -> Result<Self, V6Error> {
        let file = File::open(path).map_err(|error| V6Error {
            path: path.to_owned(),
            offset: 0,
            fault: error.into(),
        })?;
        let bytes = MultiGzDecoder::new(BufReader::new(file));
        Ok(Chunk::new(path, bytes))
    }
}

impl<R: Read> Chunk<R> {
    /// The records in unpacked bytes; `path` is for messages.
    pub fn new(path: &Path, reader: R) -> Chunk<R> {
        Chunk {
            path: path.to_owned(),
            reader,
            offset: 0,
            has_failed: false,
        }
    }

    fn read(&mut self) -> Result<Option<V6Record>, V6Fault> {
        let mut bytes = Vec::with_capacity(RECORD_SIZE);
        let record = (&mut self.reader).take(RECORD_SIZE as u64);
        let length = { record }.read_to_end(&mut bytes)?;
        match bytes.first_chunk() {
            Some(bytes) => V6Record::from_bytes(bytes).map(Some),
            None if length == 0 => Ok(None),
            None => Err(V6Fault::Truncated(length)),
        }
    }
}

impl<R: Read> Iterator for Chunk<R> {
    type Item = Result<V6Record, V6Error>;

    /// The next record; after an error there is none.
    fn next(&mut self) -> Option<Result<V6Record, V6Error>> {
        if self.has_failed {
            return None;
        }
        match self.read() {
            Ok(record) => {
                self.offset += RECORD_SIZE as u64;
                record.map(Ok)
            }
            Err(fault) => {
                self.has_failed = true;
                Some(Err(V6Error {
                    path: self.path.clone(),
                    offset: self.offset,
                    fault,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            head in proptest::collection::vec(any::<u8>(), 0..40),
            fill: u8,
            length in 0..3 * RECORD_SIZE,
            is_versioned: bool,
        ) {
            let mut bytes = vec![fill; length];
            for start in (0..length).step_by(RECORD_SIZE) {
                let record = &mut bytes[start..];
                if is_versioned && record.len() > 8 {
                    record[..8].copy_from_slice(&[6, 0, 0, 0, 1, 0, 0, 0]);
                }
                let planes = record.iter_mut().skip(7440);
                for (byte, &random) in planes.zip(&head) {
                    *byte = random;
                }
            }
            for record in Chunk::new(Path::new("bytes"), bytes.as_slice()) {
                match record.map(|record| record.sample()) {
                    Ok(sample) => drop(sample),
                    Err(error) => prop_assert_eq!(error.offset % RECORD_SIZE as u64, 0),
                }
            }
        }
    }
}
