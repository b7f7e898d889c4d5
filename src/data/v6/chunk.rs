//! The records of one chunk.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::{FORMAT, RECORD_SIZE, V6Record, V7, V7_RECORD_SIZE, VERSION};
use super::unpack::{MAX_UNPACKED, Unpacked};
use super::{V6Error, V6Fault};

/// A decompressed chunk in memory.
pub struct Chunk {
    /// The chunk's path.
    pub path: PathBuf,
    unpacked: Unpacked,
    /// The error that ended decompression early, if any.
    fault: Option<Arc<str>>,
}

impl Chunk {
    /// Reads a chunk, either gzipped or plain. Damage is reported only when the records are read.
    ///
    /// # Errors
    /// [`V6Error`] if the file cannot be read.
    pub fn open(path: &Path) -> Result<Chunk, V6Error> {
        let mut packed = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_UNPACKED as u64 + 1).read_to_end(&mut packed))
            .map_err(|error| V6Error::new(path, 0, error))?;
        Ok(Chunk::new(path.to_owned(), &packed))
    }

    /// Reads a chunk from a file's bytes; `path` is only used in messages.
    pub fn new(path: PathBuf, packed: &[u8]) -> Chunk {
        let (unpacked, fault) = Unpacked::new(packed);
        Chunk {
            path,
            unpacked,
            fault,
        }
    }

    /// Returns an iterator over the records. The iterator continues after a record in an unknown
    /// input format, but ends after any other fault.
    pub fn records(&self) -> Records<'_> {
        Records {
            path: &self.path,
            bytes: self.unpacked.bytes(),
            offset: 0,
            fault: self.fault.as_ref(),
        }
    }
}

/// An iterator over the records of a [`Chunk`].
pub struct Records<'a> {
    path: &'a Path,
    /// The bytes that have not been read.
    bytes: &'a [u8],
    /// The offset of the next record in the decompressed bytes.
    pub(super) offset: u64,
    fault: Option<&'a Arc<str>>,
}

impl<'a> Records<'a> {
    fn read(&mut self) -> Result<Option<&'a V6Record>, V6Fault> {
        let bytes = self.bytes;
        let version = bytes.first_chunk().map(|&word| u32::from_le_bytes(word));
        let size = match version {
            Some(VERSION) | None => RECORD_SIZE,
            Some(V7) => V7_RECORD_SIZE,
            Some(other) => return Err(self.end(V6Fault::Version(other))),
        };
        let Some((record, rest)) = bytes.split_at_checked(size) else {
            return match bytes.len() {
                0 if self.fault.is_none() => Ok(None),
                left => Err(self.end(V6Fault::Truncated(left))),
            };
        };
        self.bytes = rest;
        self.offset += size as u64;
        let record: &V6Record = bytemuck::from_bytes(&record[..RECORD_SIZE]);
        match record.input_format {
            FORMAT => Ok(Some(record)),
            format => Err(V6Fault::Format(format)),
        }
    }

    /// Ends reading and returns the reason: the decompression error if decompression ended early,
    /// and otherwise `fault`.
    fn end(&mut self, fault: V6Fault) -> V6Fault {
        self.bytes = &[];
        self.fault
            .take()
            .map_or(fault, |reason| V6Fault::Unpack(reason.clone()))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<&'a V6Record, V6Error>;

    fn next(&mut self) -> Option<Result<&'a V6Record, V6Error>> {
        let offset = self.offset;
        let record = self.read();
        let record = record.map_err(|fault| V6Error::new(self.path, offset, fault));
        record.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sample::Sample;
    use crate::data::v6::record::DELETED;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            head in proptest::collection::vec(any::<u8>(), 0..40),
            fill: u8,
            length in 0..3 * RECORD_SIZE,
            version in 5..9u8,
        ) {
            let mut bytes = vec![fill; length];
            for start in (0..length).step_by(RECORD_SIZE) {
                let record = &mut bytes[start..];
                if version < 8 && record.len() > 8 {
                    record[..8].copy_from_slice(&[version, 0, 0, 0, 1, 0, 0, 0]);
                }
                let planes = record.iter_mut().skip(7440);
                for (byte, &random) in planes.zip(&head) {
                    *byte = random;
                }
            }
            let chunk = Chunk::new("bytes".into(), &bytes);
            let mut faults = 0;
            chunk.samples(|| true, |_: Sample| (), |_| {
                faults += 1;
                Ok::<(), V6Error>(())
            }).unwrap();
            // A complete record that is marked for deletion is skipped silently.
            let is_deleted = fill & DELETED != 0 && length % RECORD_SIZE == 0;
            prop_assert!(faults > 0 || length == 0 || is_deleted);
        }
    }

    #[test]
    fn versions_may_be_mixed() {
        let record = |version: u32, size: usize| {
            let mut bytes = vec![0; size];
            bytes[..4].copy_from_slice(&version.to_le_bytes());
            bytes[4] = FORMAT as u8;
            bytes
        };
        let bytes = [
            record(V7, V7_RECORD_SIZE),
            record(VERSION, RECORD_SIZE),
            record(V7, V7_RECORD_SIZE),
            vec![7],
        ];
        let chunk = Chunk::new("bytes".into(), &bytes.concat());
        let read: Vec<_> = chunk.records().collect();
        assert_eq!(read.len(), 4);
        assert!(read[..3].iter().all(Result::is_ok));
        let error = read[3].as_ref().unwrap_err();
        assert_eq!(error.offset as usize, 2 * V7_RECORD_SIZE + RECORD_SIZE);
        assert!(matches!(error.fault, V6Fault::Truncated(1)));
    }
}
