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
            .filter(|folder| !folder.contains('/'))
            .min()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::FileOptions;

    fn zip(names: &[&str], bytes: &[u8]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = FileOptions::default().compression_method(CompressionMethod::Stored);
        for name in names {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn entries_are_checked() {
        let bytes = [7; 1000];
        let mut file = zip(&["net/data.pkl", "net/data/0", "net/data/1"], &bytes);
        let mut archive = Archive::open(&file).unwrap();
        assert_eq!(archive.entry("data/1").unwrap(), bytes);
        let missing = archive.entry("data/2").unwrap_err();
        assert!(matches!(missing, CheckpointError::NoEntry(name) if name == "data/2"));
        file[1500] = 8;
        let mut archive = Archive::open(&file).unwrap();
        let damaged = archive.entry("data/0").unwrap_err();
        assert!(matches!(damaged, CheckpointError::Damaged(name) if name == "data/0"));
        assert!(archive.entry("data/1").is_ok());
    }

    /// Many entries of the same bytes would make much of a small file.
    #[test]
    fn entries_that_overlap_are_refused() {
        let names: Vec<String> = (0..9).map(|key| format!("net/data/{key}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.insert(0, "net/data.pkl");
        let mut file = zip(&names, &[0; 1000]);
        // Of each entry in the directory, where the entry begins.
        let entry = b"PK\x01\x02";
        let places: Vec<usize> = (0..file.len())
            .filter(|&at| file[at..].starts_with(entry))
            .collect();
        assert_eq!(places.len(), names.len());
        for place in places {
            file[place + 42..][..4].fill(0);
        }
        // Only the first entry's bytes are left of them all.
        let directory = file.windows(4).position(|bytes| bytes == entry).unwrap();
        let first = file
            .windows(4)
            .skip(1)
            .position(|bytes| bytes == b"PK\x03\x04");
        let first = first.unwrap() + 1;
        file.drain(first..directory);
        let end = file.len() - 6;
        file[end..][..4].copy_from_slice(&(first as u32).to_le_bytes());
        let mut archive = Archive::open(&file).unwrap();
        let refused = (0..9).find_map(|key| archive.entry(&format!("data/{key}")).err());
        assert!(matches!(refused, Some(CheckpointError::Damaged(_))));
    }

    #[test]
    fn folders_may_have_any_name_but_no_folders() {
        for name in [
            "maia3-5m/data.pkl",
            "archive/data.pkl",
            "\u{fc}/data.pkl",
            "/data.pkl",
        ] {
            assert!(Archive::open(&zip(&[name], b"x")).is_ok(), "{name}");
        }
        for name in ["data.pkl", "a/b/data.pkl", "a/data.pkl/b"] {
            assert!(Archive::open(&zip(&[name], b"x")).is_err(), "{name}");
        }
    }
}
