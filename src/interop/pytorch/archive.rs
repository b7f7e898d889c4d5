//! The zip archive that a checkpoint is.

use super::CheckpointError;
use std::io::Cursor;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

/// Entries that a directory may list; there is one for each storage. The `zip`
/// crate makes room for as many as the archive claims to have.
const MOST_ENTRIES: u64 = u16::MAX as u64;

/// How pickles begin, as bare ones do in PyTorch's older format.
const PICKLE: u8 = 0x80;
/// How zip archives begin.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// An archive whose entries lie in it uncompressed, all in one folder.
pub(super) struct Archive<'a> {
    file: &'a [u8],
    zip: ZipArchive<Cursor<&'a [u8]>>,
    folder: String,
    /// Bytes that entries not read yet can have: entries do not overlap.
    left: usize,
}

/// Whether a file looks like one of `torch.save`'s, whole or not: a zip archive
/// that is no TorchScript, or a bare pickle.
#[must_use]
pub fn is_checkpoint(file: &[u8]) -> bool {
    let saved = file.first() == Some(&PICKLE) || file.starts_with(&ZIP);
    saved && !matches!(Archive::open(file), Err(CheckpointError::TorchScript))
}

impl<'a> Archive<'a> {
    pub fn open(file: &'a [u8]) -> Result<Archive<'a>, CheckpointError> {
        if file.first() == Some(&PICKLE) {
            return Err(CheckpointError::Legacy);
        }
        let claimed = claimed_entries(file).ok_or(CheckpointError::NotZip)?;
        if claimed > MOST_ENTRIES {
            return Err(CheckpointError::Crowded(claimed));
        }
        let directory = |error: ZipError| CheckpointError::Directory(error.to_string());
        let zip = ZipArchive::new(Cursor::new(file)).map_err(directory)?;
        let folder = zip
            .file_names()
            .filter_map(|name| name.strip_suffix("/data.pkl"))
            .find(|folder| !folder.contains('/'))
            .ok_or_else(|| CheckpointError::NoEntry("data.pkl".to_owned()))?
            .to_owned();
        let mut archive = Archive {
            file,
            zip,
            folder,
            left: file.len(),
        };
        // What TorchScript has and a checkpoint has not.
        if archive.has("constants.pkl") {
            return Err(CheckpointError::TorchScript);
        }
        // Older versions leave it out.
        if archive.has("byteorder") && archive.entry("byteorder")? != b"little" {
            return Err(CheckpointError::BigEndian);
        }
        Ok(archive)
    }

    fn has(&self, name: &str) -> bool {
        let path = format!("{}/{name}", self.folder);
        self.zip.file_names().any(|other| other == path)
    }

    /// The bytes of an entry of the folder, after their checksum was found
    /// right. Each is to be read once.
    pub fn entry(&mut self, name: &str) -> Result<&'a [u8], CheckpointError> {
        let damaged = || CheckpointError::Damaged(name.to_owned());
        let path = format!("{}/{name}", self.folder);
        let entry = self.zip.by_name(&path).map_err(|error| match error {
            ZipError::FileNotFound => CheckpointError::NoEntry(name.to_owned()),
            ZipError::UnsupportedArchive(_) => CheckpointError::Compressed(name.to_owned()),
            _ => damaged(),
        })?;
        if entry.compression() != CompressionMethod::Stored {
            return Err(CheckpointError::Compressed(name.to_owned()));
        }
        let start = usize::try_from(entry.data_start()).map_err(|_| damaged())?;
        let size = usize::try_from(entry.size()).map_err(|_| damaged())?;
        let bytes = self.file.get(start..).and_then(|rest| rest.get(..size));
        let bytes = bytes.ok_or_else(damaged)?;
        self.left = self.left.checked_sub(size).ok_or_else(damaged)?;
        if crc32fast::hash(bytes) != entry.crc32() {
            return Err(damaged());
        }
        Ok(bytes)
    }
}

/// How many entries an archive says that its directory lists: the last record
/// of the file, or of the larger form to which a locator before it points.
/// Nothing follows them in what `torch.save` writes.
fn claimed_entries(file: &[u8]) -> Option<u64> {
    const END: usize = 22;
    const LOCATOR: usize = 20;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut word = [0; 8];
        let found = file.get(at..at.checked_add(bytes)?)?;
        word[..bytes].copy_from_slice(found);
        Some(u64::from_le_bytes(word))
    };
    let end = file.len().checked_sub(END)?;
    if number(end, 4)? != 0x0605_4b50 {
        return None;
    }
    match end.checked_sub(LOCATOR) {
        Some(locator) if number(locator, 4)? == 0x0706_4b50 => {
            let record = usize::try_from(number(locator + 8, 8)?).ok()?;
            (number(record, 4)? == 0x0606_4b50).then(|| number(record.checked_add(32)?, 8))?
        }
        _ => number(end + 8, 2),
    }
}
