//! Files that appear whole or not at all: written under another name beside
//! their place, and then renamed.
//!
//! A place that is a link is where it leads to. What is no file stays what it is:
//! a FIFO is written into once the whole content is there, a device is refused.

use std::fs::File;
use std::io::{Error, ErrorKind, Seek};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What the names of files begin with that are being written.
const UNFINISHED: &str = ".unfinished-";
/// Links that are followed one after another, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// What a path leads to.
enum Place {
    /// A file, or nothing yet, under this name.
    File(PathBuf),
    /// Something that is written into: a FIFO or a socket's end.
    Pipe,
}

/// A file beside `path` that vanishes unless it is persisted there.
///
/// # Errors
/// What the system says where the folder cannot be written to; or that `path` is
/// a folder or a device.
pub(crate) fn unfinished(path: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // Temporary files are their owner's alone; these become files like any
    // other, for which the user's umask decides.
    #[cfg(unix)]
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(mode);
    builder.prefix(UNFINISHED);
    match place_of(path)? {
        Place::File(path) => builder.tempfile_in(folder_of(&path)),
        Place::Pipe => builder.tempfile(),
    }
}

/// Removes what a killed process left half-written in a folder, if there is one.
///
/// # Errors
/// What the system says.
pub(crate) fn remove_unfinished(folder: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Puts a written file at `path` so that neither a kill nor a power cut leaves
/// anything there but the old content or the new: the file is synced before it
/// is renamed, and its folder after.
///
/// # Errors
/// What the system says; `path` is then as it was.
pub(crate) fn persist(mut file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    let path = match place_of(path)? {
        Place::File(path) => path,
        Place::Pipe => {
            file.rewind()?;
            let mut pipe = File::options().write(true).open(path)?;
            std::io::copy(&mut file, &mut pipe)?;
            return Ok(());
        }
    };
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    // Windows keeps no handles of folders; its renames are journalled.
    #[cfg(unix)]
    File::open(folder_of(&path))?.sync_all()?;
    Ok(())
}

/// The same where nothing is at `path` yet: of several who try at once one succeeds.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if something is there, which stays; or what else the
/// system says.
pub(crate) fn persist_new(file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    #[cfg(unix)]
    File::open(folder_of(path))?.sync_all()?;
    Ok(())
}

fn place_of(path: &Path) -> std::io::Result<Place> {
    let kind = match path.metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Place::File(followed(path)?));
        }
        Err(error) => return Err(error),
    };
    let refused = |reason| Err(Error::new(ErrorKind::InvalidInput, reason));
    if kind.is_file() {
        return Ok(Place::File(followed(path)?));
    }
    if kind.is_dir() {
        return refused("it is a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() || kind.is_socket() {
            return Ok(Place::Pipe);
        }
    }
    refused("it is a device, and no file")
}

/// Where links lead, whether or not anything is there.
fn followed(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match path.read_link() {
            Ok(to) => path = folder_of(&path).join(to),
            // It is no link.
            Err(_) => return Ok(path),
        }
    }
    Err(Error::other("it is a circle of links"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::{read_link, read_to_string, write};
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;

    fn write_to(path: &Path) -> std::io::Result<()> {
        let mut file = unfinished(path)?;
        file.write_all(b"new")?;
        persist(file, path)
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let file = elsewhere.path().join("file");
        let [near, far, dangling, circle] =
            ["near", "far", "dangling", "circle"].map(|name| folder.path().join(name));
        write(&file, "old").unwrap();
        symlink(&file, &near).unwrap();
        symlink("near", &far).unwrap();
        write_to(&far).unwrap();
        assert_eq!(read_to_string(&file).unwrap(), "new");
        assert_eq!(read_link(&near).unwrap(), file);
        assert_eq!(read_link(&far).unwrap(), Path::new("near"));
        symlink(elsewhere.path().join("none yet"), &dangling).unwrap();
        write_to(&dangling).unwrap();
        assert!(dangling.is_symlink());
        assert_eq!(read_to_string(&dangling).unwrap(), "new");
        symlink("circle", &circle).unwrap();
        assert!(write_to(&circle).is_err());
        // No half-written file is left anywhere.
        let count = |folder: &Path| folder.read_dir().unwrap().count();
        assert_eq!((count(folder.path()), count(elsewhere.path())), (4, 2));
    }

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(
            Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || read_to_string(fifo).unwrap()
        });
        write_to(&fifo).unwrap();
        assert!(fifo.metadata().unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "new");
        for path in [Path::new("/dev/null"), folder.path()] {
            assert!(write_to(path).is_err(), "{}", path.display());
        }
    }
}
