//! The storage of a shard: a file or an object in an object store.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::object::Object;
use crate::store::address;

/// The bytes of a shard, which several threads can read concurrently and in any order.
#[derive(Debug)]
pub(super) enum Storage {
    /// A file, which is opened for every read: a training window of the loop has hundreds of
    /// shards, and systems limit a process to about a thousand open files. Compared with reading a
    /// block, opening the file is cheap.
    File {
        path: PathBuf,
        size: u64,
    },
    Object(Object),
}

impl Storage {
    /// Opens a file by its path, or an object by an address such as `s3://bucket/key`.
    pub fn open(location: &Path) -> io::Result<Storage> {
        if let Some(address) = address(location) {
            return Object::open(address).map(Storage::Object);
        }
        let size = File::open(location)?.metadata()?.len();
        Ok(Storage::File {
            path: location.to_owned(),
            size,
        })
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        match self {
            Storage::File { size, .. } => *size,
            Storage::Object(object) => object.size(),
        }
    }

    /// Reads `length` bytes starting at `offset`.
    pub fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        if offset
            .checked_add(length)
            .is_none_or(|end| end > self.size())
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self {
            Storage::File { path, .. } => {
                let mut bytes = vec![0; length as usize];
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut bytes)?;
                Ok(bytes)
            }
            Storage::Object(object) => object.read(offset, length),
        }
    }

    /// Announces that these bytes will soon be read.
    pub fn announce(&self, offset: u64, length: u64) {
        // For files, the system itself reads ahead.
        if let Storage::Object(object) = self {
            object.announce(offset, length);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn no_file_stays_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("bytes");
        std::fs::write(&path, b"0123456789").unwrap();
        let storage = Storage::open(&path).unwrap();
        assert_eq!(storage.read(3, 4).unwrap(), b"3456");
        assert_eq!(storage.read(0, 2).unwrap(), b"01");
        let end = storage.read(8, 3).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let mut open = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        assert!(!open.any(|file| file == path));
    }
}
