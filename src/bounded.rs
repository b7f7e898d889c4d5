//! Reads untrusted input with an upper bound on its size and, where required, only from regular
//! files.
//!
//! A FIFO may block, a device may have no end, and a few kilobytes of gzip may decompress to more
//! data than fits in memory.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;

/// Size in bytes of the largest text that is read into memory as a whole: 1 GiB.
pub(crate) const LARGEST_TEXT: u64 = 1 << 30;

/// Returns the contents of a file, or of a stream at `path`, up to `most` bytes.
///
/// # Errors
/// The system's error, or an error if there are more than `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(File::open(path)?, most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file of at most `most` bytes, like [`read`], without blocking on a FIFO.
///
/// # Errors
/// The system's error, or an error if `path` is not a regular file or is larger than `most` bytes.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    regular(&path.metadata()?)?;
    read(path, most)
}

/// Opens a regular file for appending, creating it if missing.
///
/// # Errors
/// The system's error, or an error if `path` is not a regular file.
pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    match path.metadata() {
        Ok(metadata) => _ = regular(&metadata)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    File::options().create(true).append(true).open(path)
}

fn regular(metadata: &Metadata) -> io::Result<&Metadata> {
    match metadata.is_file() {
        true => Ok(metadata),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

fn too_large(what: &str, most: u64) -> io::Error {
    let bound = match most >> 20 {
        0 => format!("{most} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    };
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!("{what} is larger than {bound}"),
    )
}

/// A reader that fails after a number of bytes. It bounds the output of decompressors, which may be
/// large even if their input is small.
pub(crate) struct Limited<R> {
    reader: R,
    left: u64,
    most: u64,
}

impl<R: Read> Limited<R> {
    pub(crate) fn new(reader: R, most: u64) -> Limited<R> {
        Limited {
            reader,
            left: most,
            most,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| too_large("the content", self.most))?;
        Ok(read)
    }
}

/// Appends the next line, including its line ending, to `line`. Returns the number of bytes read.
///
/// # Errors
/// The reader's error, or an error if the line is longer than `most` bytes.
pub(crate) fn read_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    most: u64,
) -> io::Result<usize> {
    let read = reader.by_ref().take(most + 1).read_until(b'\n', line)?;
    if read as u64 > most {
        return Err(too_large("a line", most));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn files_are_read_up_to_their_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [7; 100]).unwrap();
        assert_eq!(read(&path, 100).unwrap(), [7; 100]);
        let error = read(&path, 99).unwrap_err();
        assert_eq!(error.to_string(), "the content is larger than 99 bytes");
        let error = read_regular(folder.path(), 99).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
        let missing = read(&folder.path().join("b"), 99).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn stops_reading_endless_streams() {
        let mut all = Vec::new();
        let mut endless = Limited::new(io::repeat(b'a'), 3 << 20);
        let error = endless.read_to_end(&mut all).unwrap_err();
        assert_eq!(error.to_string(), "the content is larger than 3 MiB");
        assert!(all.len() <= 3 << 20);
        Limited::new(&[1; 50][..], 50)
            .read_to_end(&mut Vec::new())
            .unwrap();
        let mut line = Vec::new();
        let mut endless = io::BufReader::new(io::repeat(b'a'));
        assert!(read_line(&mut endless, &mut line, 1000).is_err());
        assert_eq!(line.len(), 1001);
        line.clear();
        assert_eq!(
            read_line(&mut Cursor::new("ab\ncd"), &mut line, 3).unwrap(),
            3
        );
        assert_eq!(line, b"ab\n");
    }

    #[cfg(unix)]
    #[test]
    fn rejects_non_regular_files() {
        for path in ["/dev/zero", "/dev/null"] {
            let path = Path::new(path);
            assert!(read_regular(path, u64::MAX).is_err() && append_to(path).is_err());
        }
        assert!(read(Path::new("/dev/zero"), 1 << 20).is_err());
    }
}
