//! Chunks in files, tars and folders.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use walkdir::{DirEntry, WalkDir};

use super::record::{RECORD_SIZE, V7, VERSION};
use super::unpack::{MAX_UNPACKED, TOO_LARGE, is_gzip};
use super::{Chunk, V6Error, V6Fault};

/// Chunks looked at to estimate how long the others are.
const LOOKED_AT: usize = 64;

/// The chunks at a path, not yet read. Only their names are in memory, so that there
/// can be millions.
pub struct Chunks {
    root: PathBuf,
    tars: Vec<Tar>,
    places: Vec<Place>,
    /// Of each chunk's file name.
    hashes: Vec<u64>,
}

/// The location of a chunk.
enum Place {
    /// In a file of its own, named from the root on; empty is the root itself.
    File(Box<Path>),
    /// In a tar.
    Member {
        tar: u32,
        offset: u64,
        length: u64,
        name: Box<Path>,
    },
}

struct Tar {
    path: PathBuf,
    file: Mutex<File>,
}

impl Chunks {
    /// Finds the chunks at `path`: itself, a tar's members, or everything in a
    /// folder and the folders below that is a tar or named as chunks are
    /// (`*.gz`, `training.*`, `game_*`), in the order of their names. Hidden
    /// files are left alone.
    ///
    /// # Errors
    /// [`V6Error`] if a folder or a tar cannot be read.
    pub fn open(path: &Path) -> Result<Chunks, V6Error> {
        let mut chunks = Chunks {
            root: path.to_owned(),
            tars: Vec::new(),
            places: Vec::new(),
            hashes: Vec::new(),
        };
        if path.is_dir() {
            chunks.walk()?;
        } else if is_tar(path) {
            chunks.add_tar(path.to_owned())?;
        } else {
            File::open(path).map_err(|error| failed(path, error))?;
            chunks.add(Place::File(Path::new("").into()));
        }
        Ok(chunks)
    }

    /// Whether a path looks like chunks rather than like another kind of data:
    /// a folder, a tar, a file named as chunks are or one that begins with a
    /// record.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn are_at(path: &Path) -> std::io::Result<bool> {
        if path.is_dir() || is_tar(path) || is_named_as_chunk(path) {
            return Ok(true);
        }
        let mut start = Vec::new();
        File::open(path)?.take(4).read_to_end(&mut start)?;
        Ok([VERSION, V7]
            .map(u32::to_le_bytes)
            .iter()
            .any(|version| start == version))
    }

    /// Number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no chunks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where a chunk lies; in a tar, the tar's path and the member's.
    ///
    /// # Panics
    /// If there is no such chunk, as the methods below.
    #[must_use]
    pub fn path(&self, chunk: usize) -> PathBuf {
        match &self.places[chunk] {
            Place::File(name) if name.as_os_str().is_empty() => self.root.clone(),
            Place::File(name) => self.root.join(name),
            Place::Member { tar, name, .. } => self.tars[*tar as usize].path.join(name),
        }
    }

    /// A hash of the chunk's file name without its folder.
    #[must_use]
    pub fn hash(&self, chunk: usize) -> u64 {
        self.hashes[chunk]
    }

    /// Reads a chunk.
    ///
    /// # Errors
    /// [`V6Error`] if its file cannot be read.
    pub fn read(&self, chunk: usize) -> Result<Chunk, V6Error> {
        let path = self.path(chunk);
        let Place::Member {
            tar,
            offset,
            length,
            ..
        } = &self.places[chunk]
        else {
            return Chunk::open(&path);
        };
        if *length > MAX_UNPACKED as u64 {
            return Err(V6Error {
                path,
                offset: 0,
                fault: V6Fault::Unpack(TOO_LARGE.into()),
            });
        }
        let mut packed = vec![0; *length as usize];
        self.tars[*tar as usize]
            .read(*offset, &mut packed)
            .map_err(|error| failed(&path, error))?;
        Ok(Chunk::new(path, &packed))
    }

    /// About the mean number of records of a chunk, from the lengths that some of the
    /// files state.
    #[must_use]
    pub fn mean_records(&self) -> f64 {
        let step = self.places.len().div_ceil(LOOKED_AT).max(1);
        let sampled = (0..self.places.len()).step_by(step);
        let lengths: Vec<u64> = sampled
            .filter_map(|chunk| self.promised_length(chunk).ok())
            .collect();
        let total: u64 = lengths.iter().sum();
        total as f64 / RECORD_SIZE as f64 / lengths.len().max(1) as f64
    }

    /// The length of a chunk unpacked, if it is sound and of a single member.
    fn promised_length(&self, chunk: usize) -> std::io::Result<u64> {
        let (mut magic, mut promise) = ([0; 3], [0; 4]);
        let length = match &self.places[chunk] {
            Place::File(_) => {
                let mut file = File::open(self.path(chunk))?;
                let length = file.metadata()?.len();
                file.read_exact(&mut magic)?;
                file.seek(SeekFrom::End(-4))?;
                file.read_exact(&mut promise)?;
                length
            }
            Place::Member {
                tar,
                offset,
                length,
                ..
            } => {
                let tar = &self.tars[*tar as usize];
                tar.read(*offset, &mut magic)?;
                tar.read(offset + length.saturating_sub(4), &mut promise)?;
                *length
            }
        };
        let promised = match is_gzip(&magic) {
            true => u32::from_le_bytes(promise).into(),
            false => length,
        };
        Ok(promised.min(MAX_UNPACKED as u64))
    }

    /// Adds what lies in the root and the folders below, links among them, in the
    /// order of the names.
    fn walk(&mut self) -> Result<(), V6Error> {
        let root = self.root.clone();
        let entries = WalkDir::new(&root).follow_links(true).sort_by_file_name();
        let is_seen = |entry: &DirEntry| {
            entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
        };
        for entry in entries.into_iter().filter_entry(is_seen) {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(&root).to_owned();
                failed(&path, error.into())
            })?;
            let path = entry.path();
            if entry.file_type().is_dir() {
                continue;
            } else if is_tar(path) {
                self.add_tar(entry.into_path())?;
            } else if is_named_as_chunk(path) {
                let place = path.strip_prefix(&root).unwrap_or(path);
                self.add(Place::File(place.into()));
            }
        }
        Ok(())
    }

    fn add_tar(&mut self, path: PathBuf) -> Result<(), V6Error> {
        let tar = self.tars.len() as u32;
        let list = || {
            let mut members = Vec::new();
            let mut archive = tar::Archive::new(File::open(&path)?);
            for entry in archive.entries_with_seek()? {
                let entry = entry?;
                let name = entry.path()?;
                if entry.header().entry_type().is_file() && is_named_as_chunk(&name) {
                    members.push(Place::Member {
                        tar,
                        offset: entry.raw_file_position(),
                        length: entry.size(),
                        name: name.into(),
                    });
                }
            }
            Ok((archive.into_inner(), members))
        };
        let (file, members) = list().map_err(|error| failed(&path, error))?;
        self.tars.push(Tar {
            path,
            file: Mutex::new(file),
        });
        members.into_iter().for_each(|member| self.add(member));
        Ok(())
    }

    fn add(&mut self, place: Place) {
        let name = match &place {
            Place::File(name) if name.as_os_str().is_empty() => &self.root,
            Place::File(name) | Place::Member { name, .. } => name.as_ref(),
        };
        let name = name.file_name().unwrap_or_default();
        let digest = Sha256::digest(name.as_encoded_bytes());
        let hash = u64::from_le_bytes(std::array::from_fn(|byte| digest[byte]));
        self.hashes.push(hash);
        self.places.push(place);
    }
}

impl Tar {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

fn failed(path: &Path, error: std::io::Error) -> V6Error {
    V6Error {
        path: path.to_owned(),
        offset: 0,
        fault: error.into(),
    }
}

fn is_tar(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tar")
}

fn is_named_as_chunk(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let others = [".pgn", ".pgn.gz", ".pgn.zst", ".shard", ".toml", ".log"];
    let is_other = others.iter().any(|ending| name.ends_with(ending));
    let begins = name.starts_with("training.") || name.starts_with("game_");
    (begins || name.ends_with(".gz")) && !name.starts_with('.') && !is_other
}
