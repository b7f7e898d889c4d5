//! A store in a folder.

use super::{Listing, Name};
use crate::atomic_file;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The folder; names are paths relative to it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn new(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
        }
    }

    /// Stores the bytes unless the name is taken; returns whether they were stored.
    pub fn put(&self, name: &Name, bytes: &[u8]) -> io::Result<bool> {
        let path = self.path.join(name.as_str());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = atomic_file::unfinished(&path)?;
        file.write_all(bytes)?;
        match atomic_file::persist_new(file, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            put => put.map(|()| true),
        }
    }

    pub fn get(&self, name: &Name) -> io::Result<Option<Vec<u8>>> {
        absent(fs::read(self.path.join(name.as_str())))
    }

    pub fn list(&self, folder: &str) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let Some(entries) = absent(fs::read_dir(self.path.join(folder)))? else {
            return Ok(listing);
        };
        for entry in entries {
            let entry = entry?;
            // Our names are ASCII.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match entry.file_type()?.is_dir() {
                true => listing.folders.push(name),
                false => listing.files.push(name),
            }
        }
        Ok(listing)
    }

    pub fn sweep(&self) -> io::Result<()> {
        for entry in walkdir::WalkDir::new(&self.path) {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => {
                    atomic_file::remove_unfinished(entry.path())?;
                }
                Ok(_) => {}
                // The file has vanished, or the folder does not exist yet.
                Err(error) => {
                    let error = io::Error::from(error);
                    if error.kind() != ErrorKind::NotFound {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Turns the error for a missing file into `None`.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
