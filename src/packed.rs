//! Reads text from untrusted sources. The first bytes show whether the text is plain or compressed
//! with gzip or zstd. A stream is read only once, from front to back, so it may be a pipe.

use crate::bounded::Limited;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Error, ErrorKind, Read};
use std::path::Path;

/// Size in bytes of the read-ahead buffers of decompressors and line readers.
pub(crate) const BUFFER: usize = 1 << 18;
/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The first bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The bytes that follow the first byte of a skippable zstd frame.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];
/// The byte-order mark of UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A buffered stream of bytes.
pub type Stream = Box<dyn BufRead + Send>;

/// Opens the text of a file or of a stream at `path`. The stream is passed to `wrap` before
/// decompression, so that a progress bar can count the compressed bytes.
///
/// # Errors
/// The system's error, or an error if `path` is a folder or the text is in UTF-16.
pub(crate) fn open<R: Read + Send + 'static>(
    path: &Path,
    wrap: impl FnOnce(File) -> R,
) -> io::Result<Stream> {
    text(unpack(BufReader::with_capacity(
        BUFFER,
        wrap(open_file(path)?),
    ))?)
}

/// Opens a text like [`open`], and converts UTF-16 to UTF-8.
///
/// # Errors
/// The system's error, or an error if `path` is a folder.
pub(crate) fn open_converted(path: &Path) -> io::Result<Stream> {
    let file = BufReader::with_capacity(BUFFER, open_file(path)?);
    unpack(file).map(converted)
}

/// Reads a whole stream of at most `most` bytes.
///
/// # Errors
/// The system's error, or an error if there are more than `most` bytes.
pub(crate) fn read_all(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(stream, most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether a path is `-`, which stands for standard input. A file of this name can be given
/// as `./-`.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

#[cfg(unix)]
fn open_stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn open_stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

/// Opens the file or stream at `path`.
///
/// # Errors
/// The system's error, or an error if `path` is a folder.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    if is_stdin(path) {
        return open_stdin();
    }
    if path.is_dir() {
        return Err(Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    File::open(path)
}

/// Decompresses gzip or zstd, and returns other bytes unchanged.
///
/// # Errors
/// The system's error.
pub(crate) fn unpack(packed: impl BufRead + Send + 'static) -> io::Result<Stream> {
    let (magic, packed) = peek(packed, ZSTD.len());
    let is_zstd = magic == ZSTD || magic.get(1..) == Some(&ZSTD_SKIPPED) && magic[0] >> 4 == 5;
    Ok(if is_zstd {
        let unpacked = zstd::Decoder::with_buffer(packed)?;
        Box::new(BufReader::with_capacity(BUFFER, unpacked))
    } else if magic.starts_with(&GZIP) {
        Box::new(BufReader::with_capacity(
            BUFFER,
            MultiGzDecoder::new(packed),
        ))
    } else {
        Box::new(packed)
    })
}

/// Returns the bytes as text, without a byte-order mark.
///
/// # Errors
/// The system's error, or an error if the text is in UTF-16.
pub(crate) fn text(bytes: Stream) -> io::Result<Stream> {
    let (start, text) = peek(bytes, BYTE_ORDER_MARK.len());
    if utf_16(&start).is_some() {
        let reason = "the text is in UTF-16: save it in UTF-8";
        return Err(Error::new(ErrorKind::InvalidData, reason));
    }
    Ok(match start == BYTE_ORDER_MARK {
        true => text.rest,
        false => Box::new(text),
    })
}

/// Returns the bytes as text in UTF-8 or in an encoding of single bytes, without a byte-order mark.
fn converted(bytes: Stream) -> Stream {
    let (start, text) = peek(bytes, BYTE_ORDER_MARK.len());
    match utf_16(&start) {
        Some(unit_of) => Box::new(BufReader::new(Utf16 {
            bytes: text,
            unit_of,
            kept: None,
            utf8: Cursor::default(),
        })),
        None if start == BYTE_ORDER_MARK => text.rest,
        None => Box::new(text),
    }
}

/// Reads a unit of UTF-16 in a byte order.
type UnitOf = fn([u8; 2]) -> u16;

/// Returns how to read the units of a text that starts with these bytes, if it is in UTF-16.
fn utf_16(start: &[u8]) -> Option<UnitOf> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match *start {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        [0, byte, ..] if is_plain(byte) => Some(u16::from_be_bytes),
        [byte, 0, ..] if is_plain(byte) => Some(u16::from_le_bytes),
        _ => None,
    }
}

/// Converts UTF-16 to UTF-8. Invalid units become replacement characters.
struct Utf16<R> {
    bytes: R,
    unit_of: UnitOf,
    /// The first half of a surrogate pair, whose other half has not been read yet.
    kept: Option<u16>,
    /// Converted text.
    utf8: Cursor<Vec<u8>>,
}

impl<R: Read> Utf16<R> {
    /// Converts the next bytes; returns whether there were any.
    fn convert(&mut self) -> io::Result<bool> {
        let mut bytes = Vec::new();
        let mut part = self.bytes.by_ref().take(BUFFER as u64);
        if part.read_to_end(&mut bytes)? == 0 && self.kept.is_none() {
            return Ok(false);
        }
        let is_last = bytes.is_empty();
        let (pairs, _) = bytes.as_chunks();
        let units = pairs.iter().map(|&pair| (self.unit_of)(pair));
        let mut units: Vec<u16> = self.kept.take().into_iter().chain(units).collect();
        if !is_last && matches!(units.last(), Some(0xd800..0xdc00)) {
            self.kept = units.pop();
        }
        let text = char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER));
        let text: String = text.filter(|&it| it != '\u{feff}').collect();
        self.utf8 = Cursor::new(text.into_bytes());
        Ok(true)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.utf8.read(buffer)?;
            if read > 0 || buffer.is_empty() || !self.convert()? {
                return Ok(read);
            }
        }
    }
}

/// Returns the first `count` bytes of a stream, or fewer if the stream ends or fails before that,
/// and a reader of the whole stream.
pub(crate) fn peek<R: BufRead>(mut stream: R, count: usize) -> (Vec<u8>, Peeked<R>) {
    let mut start = Vec::with_capacity(count);
    // A pipe may deliver the bytes one at a time.
    let read = stream.by_ref().take(count as u64).read_to_end(&mut start);
    let peeked = Peeked {
        start: Cursor::new(start.clone()),
        failed: read.err(),
        rest: stream,
    };
    (start, peeked)
}

/// A stream whose first bytes have been inspected.
pub(crate) struct Peeked<R> {
    start: Cursor<Vec<u8>>,
    /// The error that occurred while the first bytes were read; reading fails with it after these
    /// bytes.
    failed: Option<Error>,
    rest: R,
}

impl<R: BufRead> Read for Peeked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Peeked<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start.fill_buf()?.is_empty() {
            return match self.failed.take() {
                Some(error) => Err(error),
                None => self.rest.fill_buf(),
            };
        }
        self.start.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        match self.start.fill_buf() {
            Ok([]) | Err(_) => self.rest.consume(count),
            Ok(_) => self.start.consume(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A reader that delivers its bytes one at a time, as a pipe may.
    struct Slow(Cursor<Vec<u8>>);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let room = buffer.len().min(1);
            self.0.read(&mut buffer[..room])
        }
    }

    fn read_slowly(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        text(unpack(BufReader::new(Slow(Cursor::new(bytes.to_vec()))))?)?.read_to_end(&mut read)?;
        Ok(read)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 1).unwrap()
    }

    #[test]
    fn texts_are_unpacked_whatever_comes_at_once() {
        let skipped = [&[0x50][..], &ZSTD_SKIPPED, &[1, 0, 0, 0, 7]].concat();
        for text in ["", "1", "1. e4", "1. e4 e5 2. Nf3 Nc6 1-0\n\n"] {
            let bytes = text.as_bytes();
            for packed in [
                bytes.to_vec(),
                [&BYTE_ORDER_MARK, bytes].concat(),
                gzip(bytes),
                gzip(&[&BYTE_ORDER_MARK, bytes].concat()),
                [gzip(bytes), gzip(b"")].concat(),
                zstd(bytes),
                [&skipped, &*zstd(bytes)].concat(),
            ] {
                assert_eq!(read_slowly(&packed).unwrap(), bytes, "{packed:?}");
            }
        }
    }

    #[test]
    fn damage_comes_behind_what_is_whole() {
        let long = "1. e4 e5 ".repeat(9000);
        for packed in [gzip(long.as_bytes()), zstd(long.as_bytes())] {
            for length in 4..packed.len() {
                let cut = Cursor::new(packed[..length].to_vec());
                let mut read = Vec::new();
                let whole = text(unpack(cut).unwrap()).unwrap().read_to_end(&mut read);
                assert!(
                    whole.is_err() && long.as_bytes().starts_with(&read),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn utf_16_is_named_or_converted() {
        for (wide, expected) in [
            (&b"\xff\xfe1\0"[..], "1"),
            (b"\xfe\xff\x001", "1"),
            (b"1\0.\0", "1."),
            (b"\0[\0E", "[E"),
            (b"J\0\xf6\0", "J\u{f6}"),
            (b"1\0\x3d\xd8\x00\xde", "1\u{1f600}"),
            (b"1\0\x3d\xd8", "1\u{fffd}"),
            (&gzip(b"\xff\xfe1\0"), "1"),
        ] {
            let error = read_slowly(wide).unwrap_err().to_string();
            assert_eq!(error, "the text is in UTF-16: save it in UTF-8");
            let bytes = unpack(Cursor::new(wide.to_vec())).unwrap();
            let mut text = String::new();
            converted(bytes).read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
        for other in [&b"\0"[..], b"\0\0\0", b"\xef\xbb", b"\xff"] {
            assert_eq!(read_slowly(other).unwrap(), other);
        }
    }

    #[test]
    fn folders_are_named_and_bounds_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(folder.path(), |file| file).err().unwrap();
        assert_eq!(error.to_string(), "it is a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, gzip(&[b'a'; 100])).unwrap();
        let read = |most| read_all(open(&path, |file| file).unwrap(), most);
        assert_eq!(read(100).unwrap(), [b'a'; 100]);
        assert!(read(99).is_err());
    }
}
