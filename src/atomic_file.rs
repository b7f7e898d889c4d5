//! Atomic file writes: the content is written to a temporary file in the same folder, and this file
//! is then renamed.
//!
//! Symbolic links are followed. A stream, such as standard output, a FIFO or a terminal, receives
//! the content once it is complete.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Seek, Stdout, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The prefix of unfinished files.
const UNFINISHED: &str = ".unfinished-";
/// Maximum length of a chain of links, equal to Linux's limit.
const MOST_LINKS: usize = 40;

/// The kind of file at a path.
enum Place {
    /// A file at this path, which may not exist yet.
    File(PathBuf),
    /// A stream.
    Stream,
}

/// A stream at a path.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Standard output.
    Stdout(Stdout),
    /// A FIFO, a device or a pipe.
    File(File),
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Stdout(stdout) => stdout.write(bytes),
            Stream::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Stdout(stdout) => stdout.flush(),
            Stream::File(file) => file.flush(),
        }
    }
}

/// Returns whether a path is `-`, which stands for standard output. A file of this name can be
/// given as `./-`.
pub(crate) fn is_stdout(path: &Path) -> bool {
    [Path::new("-"), Path::new("/dev/stdout")].contains(&path)
}

/// Opens the stream at a path. Returns `None` if the path is a file or does not exist. Opening a
/// FIFO waits for its reader.
///
/// # Errors
/// The system's error, or an error if `path` is a folder or a disk.
pub(crate) fn stream(path: &Path) -> io::Result<Option<Stream>> {
    match place_of(path)? {
        Place::File(_) => Ok(None),
        Place::Stream => open_stream(path).map(Some),
    }
}

/// Returns whether a stream is at a path.
pub(crate) fn is_stream(path: &Path) -> bool {
    matches!(place_of(path), Ok(Place::Stream))
}

fn open_stream(path: &Path) -> io::Result<Stream> {
    match is_stdout(path) {
        true => Ok(Stream::Stdout(io::stdout())),
        false => Ok(Stream::File(File::options().write(true).open(path)?)),
    }
}

/// Fails if [`unfinished`] or [`persist`] would fail for this path. Whether a FIFO can be written
/// is not checked, because its reader would see an end of file when the check closes the FIFO.
///
/// # Errors
/// The system's error, or an error if `path` is a folder or a disk.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match place_of(path)? {
        Place::Stream if is_device(path) => open_stream(path).map(drop),
        Place::Stream => Ok(()),
        Place::File(_) => unfinished(path).map(drop),
    }
}

/// Returns whether `path` is a character device, such as a terminal.
#[cfg(unix)]
pub(crate) fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = path.metadata().map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_char_device())
}

#[cfg(not(unix))]
pub(crate) fn is_device(_: &Path) -> bool {
    false
}

/// Creates a temporary file in the folder of `path`. It is deleted unless it is persisted at
/// `path`.
///
/// # Errors
/// The system's error if the folder cannot be written to, or an error if `path` is a folder or a
/// disk.
pub(crate) fn unfinished(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // Temporary files are private to their owner by default, but the finished file should have the
    // permissions that the user's umask determines.
    #[cfg(unix)]
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(mode);
    builder.prefix(UNFINISHED);
    match place_of(path)? {
        Place::File(path) => {
            let folder = folder_of(&path);
            let file = builder.tempfile_in(folder);
            file.map_err(|error| explained(error, folder))
        }
        Place::Stream => builder.tempfile(),
    }
}

/// Writes the file at `path` atomically.
///
/// # Errors
/// The system's error, or an error if `path` is a folder or a disk.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = unfinished(path)?;
    file.write_all(content.as_ref())?;
    persist(file, path)
}

/// Rewords an error so that it names the folder instead of the temporary file.
fn explained(error: Error, folder: &Path) -> Error {
    let shown = folder.display();
    let reason = match error.kind() {
        ErrorKind::NotFound if !folder.exists() => format!("there is no folder {shown}"),
        ErrorKind::NotADirectory => format!("{shown} is not a folder"),
        // In some system folders, creating a file fails with "not found".
        ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("the folder {shown} does not let you: {}", error.kind())
        }
        _ => return error,
    };
    Error::new(error.kind(), reason)
}

/// Removes the unfinished files that killed processes have left in a folder.
///
/// # Errors
/// The system's error.
pub(crate) fn remove_unfinished(folder: &Path) -> io::Result<()> {
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

/// Renames a finished file to `path`. The file is synced before the rename, and the folder
/// afterwards. Even if the process is killed or the power fails, `path` therefore has either the
/// old content or the new content.
///
/// # Errors
/// The system's error; `path` is then unchanged.
pub(crate) fn persist(mut file: NamedTempFile, path: &Path) -> io::Result<()> {
    let path = match place_of(path)? {
        Place::File(path) => path,
        Place::Stream => {
            file.rewind()?;
            let mut stream = open_stream(path)?;
            io::copy(&mut file, &mut stream)?;
            return stream.flush();
        }
    };
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    // Windows has no folder handles to sync, and its renames are journalled.
    #[cfg(unix)]
    File::open(folder_of(&path))?.sync_all()?;
    Ok(())
}

/// Renames a finished file to `path` like [`persist`], but only if `path` does not exist. Exactly
/// one of several concurrent attempts succeeds.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if `path` exists, in which case it is unchanged, or the system's
/// error.
pub(crate) fn persist_new(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    #[cfg(unix)]
    File::open(folder_of(path))?.sync_all()?;
    Ok(())
}

fn place_of(path: &Path) -> io::Result<Place> {
    if is_stdout(path) {
        return Ok(Place::Stream);
    }
    let kind = match path.metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Place::File(followed(path)?));
        }
        Err(error) => return Err(explained(error, folder_of(path))),
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
        if kind.is_fifo() || kind.is_char_device() {
            return Ok(Place::Stream);
        }
    }
    refused("it is neither a file nor a stream")
}

/// Returns the path at the end of a chain of links, whether or not this path exists.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match path.read_link() {
            Ok(to) => path = folder_of(&path).join(to),
            // `path` is not a link.
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

    fn make_fifo(folder: &Path) -> PathBuf {
        let fifo = folder.join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        fifo
    }

    fn write_to(path: &Path) -> io::Result<()> {
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
    fn writes_to_streams_without_replacing_them() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = make_fifo(folder.path());
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || read_to_string(fifo).unwrap()
        });
        write_to(&fifo).unwrap();
        assert!(fifo.metadata().unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "new");
        assert!(write_to(folder.path()).is_err());
        write_to(Path::new("/dev/null")).unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }

    #[test]
    fn check_rejects_unwritable_paths() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write(&file, "old").unwrap();
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        let fifo = make_fifo(folder.path());
        let null = PathBuf::from("/dev/null");
        let stdout = PathBuf::from("-");
        for path in [&file, &folder.path().join("new"), &fifo, &null, &stdout] {
            check(path).unwrap();
        }
        assert_eq!(read_to_string(&file).unwrap(), "old");
        assert_eq!(folder.path().read_dir().unwrap().count(), 3);
        let error = |path: &Path| check(path).unwrap_err().to_string();
        assert_eq!(error(folder.path()), "it is a folder");
        let missing = folder.path().join("none");
        let said = format!("there is no folder {}", missing.display());
        assert_eq!(error(&missing.join("new")), said);
        let said = format!("{} is not a folder", file.display());
        assert_eq!(error(&file.join("new")), said);
        assert!(check(&circle).is_err());
        #[cfg(target_os = "linux")]
        assert!(error(Path::new("/proc/new")).starts_with("the folder /proc does not let you"));
    }
}
