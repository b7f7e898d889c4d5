//! An append-only file that contains only complete records.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

/// Appends records to a file. If a record cannot be written, for example because the disk is full,
/// the file keeps no part of the record, which is written together with the next one.
#[derive(Debug)]
pub(super) struct Appended {
    file: File,
    /// Number of bytes of complete records.
    whole: u64,
    pending: Vec<u8>,
}

impl Appended {
    /// Opens or creates the file and truncates it to its first `whole` bytes.
    pub fn open(path: &Path, whole: u64) -> std::io::Result<Appended> {
        let mut options = File::options();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.set_len(whole)?;
        Ok(Appended {
            file,
            whole,
            pending: Vec::new(),
        })
    }

    pub fn append(&mut self, piece: &[u8]) -> std::io::Result<()> {
        self.pending.extend_from_slice(piece);
        self.file.seek(SeekFrom::Start(self.whole))?;
        let written = self.file.write_all(&self.pending);
        if written.is_ok() {
            self.whole += self.pending.len() as u64;
            self.pending.clear();
            return written;
        }
        self.file.set_len(self.whole)?;
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_what_was_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one\ntw").unwrap();
        let mut file = Appended::open(&path, 4).unwrap();
        file.append(b"two\n").unwrap();
        file.append(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }
}
