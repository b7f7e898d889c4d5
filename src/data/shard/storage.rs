//! Where a shard's bytes are: in a file, or in an object store.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use parking_lot::Mutex;

use super::object::Object;
use crate::store::address;

/// Bytes that can be read in any order, by several threads at a time.
#[derive(Debug)]
pub(super) enum Storage {
    File { file: Mutex<File>, size: u64 },
    Object(Object),
}

impl Storage {
    /// Opens a path, or what an address such as `s3://bucket/key` names.
    pub fn open(location: &Path) -> io::Result<Storage> {
        if let Some(address) = address(location) {
            return Object::open(address).map(Storage::Object);
        }
        let file = File::open(location)?;
        let size = file.metadata()?.len();
        Ok(Storage::File {
            file: Mutex::new(file),
            size,
        })
    }

    /// How many bytes there are.
    pub fn size(&self) -> u64 {
        match self {
            Storage::File { size, .. } => *size,
            Storage::Object(object) => object.size(),
        }
    }

    /// Reads `length` bytes from `offset` on.
    pub fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        if offset
            .checked_add(length)
            .is_none_or(|end| end > self.size())
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self {
            Storage::File { file, .. } => {
                let mut bytes = vec![0; length as usize];
                let mut file = file.lock();
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut bytes)?;
                Ok(bytes)
            }
            Storage::Object(object) => object.read(offset, length),
        }
    }

    /// Says that these bytes will be read soon.
    pub fn announce(&self, offset: u64, length: u64) {
        // The system reads files ahead.
        if let Storage::Object(object) = self {
            object.announce(offset, length);
        }
    }
}
