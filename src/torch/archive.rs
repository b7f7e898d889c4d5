//! Reads the zip archive of a network file or a checkpoint without libtorch.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Cursor, ErrorKind, Read};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

/// Maximum number of directory entries. Each storage takes one entry. Archives that claim more
/// entries are rejected, because the `zip` crate allocates memory for as many as are claimed.
const MOST_ENTRIES: u64 = u16::MAX as u64;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// The archive has no directory at its end.
    #[error("not a zip archive")]
    NotZip,
    /// The directory is invalid.
    #[error("its zip directory is damaged ({0})")]
    Directory(String),
    /// The archive claims more entries than any network has.
    #[error("its zip directory has too many entries: {0}")]
    Crowded(u64),
    /// A required entry is missing.
    #[error("it has no entry `{0}`")]
    NoEntry(String),
    /// An entry is compressed although PyTorch never compresses it, or it uses a compression method
    /// that PyTorch never uses.
    #[error("its entry `{0}` is compressed")]
    Compressed(String),
    /// An entry lies outside the file, or its checksum is wrong.
    #[error("its entry `{0}` is damaged")]
    Damaged(String),
    /// An entry is longer than any valid entry of that name.
    #[error("its entry `{0}` is too large")]
    Large(String),
    /// There is not enough memory for an entry.
    #[error("there is not enough memory for it: {0}")]
    OutOfMemory(io::Error),
}

/// An archive whose entries are all in one folder. Clones share the directory, and each can read all
/// entries.
#[derive(Clone)]
pub(crate) struct Archive<'a> {
    file: &'a [u8],
    zip: ZipArchive<Cursor<&'a [u8]>>,
    folder: String,
    /// Maximum total size in bytes of the entries that have not been read, given that entries do
    /// not overlap.
    left: usize,
}

impl<'a> Archive<'a> {
    /// Reads the directory and finds the folder that contains `data.pkl`.
    pub fn open(file: &'a [u8]) -> Result<Archive<'a>, ArchiveError> {
        let claimed = claimed_entries(file).ok_or(ArchiveError::NotZip)?;
        if claimed > MOST_ENTRIES {
            return Err(ArchiveError::Crowded(claimed));
        }
        let directory = |error: ZipError| ArchiveError::Directory(error.to_string());
        let zip = ZipArchive::new(Cursor::new(file)).map_err(directory)?;
        let folder = zip
            .file_names()
            .filter_map(|name| name.strip_suffix("/data.pkl"))
            .filter(|folder| !folder.contains('/'))
            .min()
            .ok_or_else(|| ArchiveError::NoEntry("data.pkl".to_owned()))?
            .to_owned();
        Ok(Archive {
            file,
            zip,
            folder,
            left: file.len(),
        })
    }

    /// Returns whether the folder has an entry of this name.
    pub fn has(&self, name: &str) -> bool {
        let path = self.path(name);
        self.zip.file_names().any(|other| other == path)
    }

    /// Returns whether `torch.save` wrote the archive. Unlike checkpoints, TorchScript archives
    /// contain a constants record.
    pub fn is_checkpoint(&self) -> bool {
        !self.has("constants.pkl")
    }

    /// Returns the names of all entries, without duplicates. Names of entries in the folder do not
    /// include the folder's name.
    pub fn names(&self) -> BTreeSet<&str> {
        let short = |name| str::strip_prefix(name, &self.folder)?.strip_prefix('/');
        let names = self.zip.file_names();
        names.map(|name| short(name).unwrap_or(name)).collect()
    }

    /// Returns the number of entries in the directory.
    pub fn len(&self) -> usize {
        self.zip.len()
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> usize {
        self.file.len()
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// Returns the bytes of an uncompressed entry in the folder, after verifying its checksum. Each
    /// entry can be read only once.
    pub fn entry(&mut self, name: &str) -> Result<&'a [u8], ArchiveError> {
        let damaged = || ArchiveError::Damaged(name.to_owned());
        let path = self.path(name);
        let entry = self.zip.by_name(&path).map_err(|error| match error {
            ZipError::FileNotFound => ArchiveError::NoEntry(name.to_owned()),
            ZipError::UnsupportedArchive(_) => ArchiveError::Compressed(name.to_owned()),
            _ => damaged(),
        })?;
        if entry.compression() != CompressionMethod::Stored {
            return Err(ArchiveError::Compressed(name.to_owned()));
        }
        let start = usize::try_from(entry.data_start()).map_err(|_| damaged())?;
        let size = usize::try_from(entry.size()).map_err(|_| damaged())?;
        let bytes = self.file.get(start..).and_then(|rest| rest.get(..size));
        let bytes = bytes.ok_or_else(damaged)?;
        self.left = self.left.checked_sub(size).ok_or_else(damaged)?;
        // Fuzzed inputs would almost never have the right checksum.
        if !cfg!(fuzzing) && crc32fast::hash(bytes) != entry.crc32() {
            return Err(damaged());
        }
        Ok(bytes)
    }

    /// Returns the bytes of an entry in the folder, which may be compressed. The unpacked entry
    /// must have at most `most` bytes.
    pub fn unpacked(&mut self, name: &str, most: usize) -> Result<Cow<'a, [u8]>, ArchiveError> {
        match self.entry(name) {
            Ok(bytes) if bytes.len() > most => Err(ArchiveError::Large(name.to_owned())),
            Ok(bytes) => Ok(Cow::Borrowed(bytes)),
            Err(ArchiveError::Compressed(_)) => self.inflated(name, most).map(Cow::Owned),
            Err(error) => Err(error),
        }
    }

    fn inflated(&mut self, name: &str, most: usize) -> Result<Vec<u8>, ArchiveError> {
        let path = self.path(name);
        let entry = self.zip.by_name(&path);
        let entry = entry.map_err(|_| ArchiveError::Compressed(name.to_owned()))?;
        let mut bytes = Vec::new();
        // Do not rely on the sizes in the archive, which may be wrong. The `zip` crate verifies the
        // checksum.
        entry
            .take(most as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::OutOfMemory => ArchiveError::OutOfMemory(error),
                _ => ArchiveError::Damaged(name.to_owned()),
            })?;
        match bytes.len() > most {
            true => Err(ArchiveError::Large(name.to_owned())),
            false => Ok(bytes),
        }
    }
}

impl fmt::Debug for Archive<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(
            formatter,
            "Archive({}, {} entries)",
            self.folder,
            self.len()
        )
    }
}

/// Returns the number of directory entries that an archive claims to have. The number is in the
/// archive's last record or, if a zip64 locator precedes that record, in the zip64 record to which
/// the locator points. `torch.save` writes nothing after these records.
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
        assert!(matches!(missing, ArchiveError::NoEntry(name) if name == "data/2"));
        file[1500] = 8;
        let mut archive = Archive::open(&file).unwrap();
        let damaged = archive.entry("data/0").unwrap_err();
        assert!(matches!(damaged, ArchiveError::Damaged(name) if name == "data/0"));
        assert!(archive.entry("data/1").is_ok());
    }

    #[test]
    fn unpacks_records_within_bounds() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = FileOptions::default().compression_method(CompressionMethod::Deflated);
        for name in ["net/data.pkl", "net/code"] {
            zip.start_file(name, options).unwrap();
            zip.write_all(&[7; 100_000]).unwrap();
        }
        let mut file = zip.finish().unwrap().into_inner();
        let mut archive = Archive::open(&file).unwrap();
        assert!(matches!(
            archive.entry("code"),
            Err(ArchiveError::Compressed(_))
        ));
        assert_eq!(archive.unpacked("code", 100_000).unwrap().len(), 100_000);
        let large = archive.unpacked("code", 99_999).unwrap_err();
        assert!(matches!(large, ArchiveError::Large(name) if name == "code"));
        let place = file
            .windows(8)
            .rposition(|name| name == b"net/code")
            .unwrap();
        // Damage the checksum in the directory.
        file[place - 30] ^= 1;
        let mut archive = Archive::open(&file).unwrap();
        assert!(matches!(
            archive.unpacked("code", 100_000),
            Err(ArchiveError::Damaged(_))
        ));
    }

    /// If many entries could share the same bytes, a small file would expand to a large one.
    #[test]
    fn entries_that_overlap_are_refused() {
        let names: Vec<String> = (0..9).map(|key| format!("net/data/{key}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.insert(0, "net/data.pkl");
        let mut file = zip(&names, &[0; 1000]);
        // Set the stated offset of every entry to 0, the position of the first entry.
        let entry = b"PK\x01\x02";
        let places: Vec<usize> = (0..file.len())
            .filter(|&at| file[at..].starts_with(entry))
            .collect();
        assert_eq!(places.len(), names.len());
        for place in places {
            file[place + 42..][..4].fill(0);
        }
        // Remove the bytes of all entries except the first.
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
        assert!(matches!(refused, Some(ArchiveError::Damaged(_))));
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
