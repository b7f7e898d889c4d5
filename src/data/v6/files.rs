//! Finds chunks in files, tars and folders.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use walkdir::{DirEntry, WalkDir};

use super::record::{RECORD_SIZE, V7, VERSION};
use super::unpack::{MAX_UNPACKED, TOO_LARGE, is_gzip};
use super::{Chunk, V6Error, V6Fault};
use crate::packed;

/// Number of chunks sampled to estimate the mean length of a chunk.
const LOOKED_AT: usize = 64;
/// Number of bytes in a tar header.
pub(crate) const TAR_HEADER: usize = 512;

/// The chunks at a path. Only their names are in memory, so there can be millions of chunks.
pub struct Chunks {
    /// The path that was opened: a folder, a tar or a file.
    pub root: PathBuf,
    tars: Vec<Tar>,
    places: Vec<Place>,
    /// Hash of each chunk's file name.
    hashes: Vec<u64>,
}

/// The location of a chunk.
enum Place {
    /// A separate file, given by its path relative to the root; empty for the root itself.
    File(Box<Path>),
    /// A member of a tar.
    Member {
        tar: u32,
        offset: u64,
        length: u64,
        name: Box<Path>,
    },
    /// Bytes in memory, for a chunk that was read from a pipe.
    Read(Box<[u8]>),
}

struct Tar {
    path: PathBuf,
    file: Mutex<File>,
}

impl Chunks {
    /// Finds the chunks at `path`: the file itself, the members of a tar, or all tars and all files
    /// with a chunk's name (`*.gz`, `training.*`, `game_*`) in a folder and its subfolders, in
    /// order of their names. Hidden files are ignored. A pipe is read to its end.
    ///
    /// # Errors
    /// [`V6Error`] if a folder or a tar cannot be read.
    pub fn open(path: &Path) -> Result<Chunks, V6Error> {
        let failed = |error| failed(path, error);
        let kind = path.metadata().map_err(failed)?;
        if !kind.is_dir() && !kind.is_file() {
            let pipe = File::open(path).map_err(failed)?;
            return Chunks::read_from(BufReader::new(pipe), path);
        }
        let mut chunks = Chunks::none_at(path);
        if kind.is_dir() {
            chunks.walk()?;
            return Ok(chunks);
        }
        let mut file = File::open(path).map_err(failed)?;
        let mut header = Vec::new();
        let start = file.by_ref().take(TAR_HEADER as u64);
        { start }.read_to_end(&mut header).map_err(failed)?;
        if is_tar(path) || is_tar_header(&header) {
            file.rewind().map_err(failed)?;
            chunks.add_tar(path.to_owned(), file)?;
        } else {
            chunks.add(Place::File(Path::new("").into()));
        }
        Ok(chunks)
    }

    /// Reads a chunk or a tar of chunks from a stream to its end. A tar is stored in a temporary
    /// file. `path` is only used in messages.
    ///
    /// # Errors
    /// [`V6Error`] if the stream cannot be read or stored.
    pub(crate) fn read_from(stream: impl BufRead, path: &Path) -> Result<Chunks, V6Error> {
        let failed = |error| failed(path, error);
        let mut chunks = Chunks::none_at(path);
        let (start, mut stream) = packed::peek(stream, TAR_HEADER);
        if is_tar_header(&start) {
            let mut keep = || -> io::Result<File> {
                let mut file = tempfile::tempfile()?;
                io::copy(&mut stream, &mut file)?;
                file.rewind()?;
                Ok(file)
            };
            chunks.add_tar(path.to_owned(), keep().map_err(failed)?)?;
        } else {
            let mut packed = Vec::new();
            let stream = stream.take(MAX_UNPACKED as u64 + 1);
            { stream }.read_to_end(&mut packed).map_err(failed)?;
            chunks.add(Place::Read(packed.into()));
        }
        Ok(chunks)
    }

    fn none_at(path: &Path) -> Chunks {
        Chunks {
            root: path.to_owned(),
            tars: Vec::new(),
            places: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns a chunk's path; for a chunk in a tar, the tar's path followed by the member's path.
    ///
    /// # Panics
    /// If the chunk does not exist. The methods below panic in the same case.
    pub fn path(&self, chunk: usize) -> PathBuf {
        match &self.places[chunk] {
            Place::Read(_) => self.root.clone(),
            Place::File(name) if name.as_os_str().is_empty() => self.root.clone(),
            Place::File(name) => self.root.join(name),
            Place::Member { tar, name, .. } => self.tars[*tar as usize].path.join(name),
        }
    }

    /// Returns a hash of the chunk's file name, ignoring its folder.
    pub fn hash(&self, chunk: usize) -> u64 {
        self.hashes[chunk]
    }

    /// Reads a chunk.
    ///
    /// # Errors
    /// [`V6Error`] if the chunk's file cannot be read.
    pub fn read(&self, chunk: usize) -> Result<Chunk, V6Error> {
        let path = self.path(chunk);
        let (tar, offset, length) = match &self.places[chunk] {
            Place::File(_) => return Chunk::open(&path),
            Place::Read(packed) => return Ok(Chunk::new(path, packed)),
            Place::Member {
                tar,
                offset,
                length,
                ..
            } => (tar, offset, length),
        };
        if *length > MAX_UNPACKED as u64 {
            let fault = V6Fault::Unpack(TOO_LARGE.into());
            return Err(V6Error::new(&path, 0, fault));
        }
        let mut packed = vec![0; *length as usize];
        self.tars[*tar as usize]
            .read(*offset, &mut packed)
            .map_err(|error| failed(&path, error))?;
        Ok(Chunk::new(path, &packed))
    }

    /// Returns the approximate mean number of records per chunk, estimated from the decompressed
    /// lengths that some of the files state.
    pub fn mean_records(&self) -> f64 {
        let step = self.places.len().div_ceil(LOOKED_AT).max(1);
        let sampled = (0..self.places.len()).step_by(step);
        let lengths: Vec<u64> = sampled
            .filter_map(|chunk| self.promised_length(chunk).ok())
            .collect();
        let total: u64 = lengths.iter().sum();
        total as f64 / RECORD_SIZE as f64 / lengths.len().max(1) as f64
    }

    /// Returns the decompressed length that a chunk's file states. It is correct if the file is
    /// undamaged and has a single gzip member.
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
            Place::Read(packed) => {
                let mut file = io::Cursor::new(packed);
                file.read_exact(&mut magic)?;
                file.seek(SeekFrom::End(-4))?;
                file.read_exact(&mut promise)?;
                packed.len() as u64
            }
        };
        let promised = match is_gzip(&magic) {
            true => u32::from_le_bytes(promise).into(),
            false => length,
        };
        Ok(promised.min(MAX_UNPACKED as u64))
    }

    /// Adds the chunks in the root and its subfolders, following links, in order of their names.
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
                let file = File::open(path).map_err(|error| failed(path, error))?;
                self.add_tar(entry.into_path(), file)?;
            } else if is_named_as_chunk(path) {
                let place = path.strip_prefix(&root).unwrap_or(path);
                self.add(Place::File(place.into()));
            }
        }
        Ok(())
    }

    fn add_tar(&mut self, path: PathBuf, file: File) -> Result<(), V6Error> {
        let tar = self.tars.len() as u32;
        let list = || {
            let mut members = Vec::new();
            let mut archive = tar::Archive::new(file);
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
            Place::Read(_) => &self.root,
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

fn failed(path: &Path, error: io::Error) -> V6Error {
    V6Error::new(path, 0, error)
}

/// Returns whether a file is named like a chunk or a tar.
pub(crate) fn is_named_as_chunks(path: &Path) -> bool {
    is_tar(path) || is_named_as_chunk(path)
}

/// Returns whether these bytes could be the start of a record.
pub(crate) fn is_record(start: &[u8]) -> bool {
    let mut versions = [VERSION, V7].into_iter();
    versions.any(|version| start.starts_with(&version.to_le_bytes()))
}

/// Returns whether these bytes could be the start of a tar.
pub(crate) fn is_tar_header(start: &[u8]) -> bool {
    const MAGIC: std::ops::Range<usize> = 257..262;
    start.get(MAGIC) == Some(b"ustar")
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
