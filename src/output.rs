//! The outputs of commands. An output is a file, or a stream such as standard output, which is
//! given as `-`. Commands check their outputs before they start working.

use crate::atomic_file;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Why a path cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The system denies access, or something other than a file exists at the path.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The output.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Binary output to a terminal.
    #[error("{} is a terminal, which cannot show {kind}: name a file, or use a pipe", path.display())]
    Terminal {
        /// The output.
        path: PathBuf,
        /// The kind of output, such as "a network".
        kind: &'static str,
    },
    /// Standard output was given instead of a folder.
    #[error("{} is standard output, but the output is a folder: name one", .0.display())]
    NoFolder(PathBuf),
}

/// Returns whether a path stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    atomic_file::is_stdout(path)
}

/// Writes a file or a stream. A file is replaced once its content is complete.
///
/// # Errors
/// The system's error.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    atomic_file::write(path, content)
}

/// Checks that a file or a stream can be written at `path`.
///
/// # Errors
/// [`OutputError`] if the check fails.
pub fn check(path: &Path) -> Result<(), OutputError> {
    atomic_file::check(path).map_err(unwritable(path))
}

/// Checks that binary output of this kind, such as "a network", can be written at `path`. Terminals
/// are rejected, because they accept only text.
///
/// # Errors
/// [`OutputError`] if the check fails.
pub fn check_bytes(path: &Path, kind: &'static str) -> Result<(), OutputError> {
    check(path)?;
    let is_terminal = match is_stdout(path) {
        true => io::stdout().is_terminal(),
        // Opening a FIFO would wait for its reader.
        false => {
            atomic_file::is_device(path) && File::open(path).is_ok_and(|file| file.is_terminal())
        }
    };
    match is_terminal {
        true => Err(OutputError::Terminal {
            path: path.to_owned(),
            kind,
        }),
        false => Ok(()),
    }
}

/// Checks that files can be written into the folder `path`, which need not exist yet.
///
/// # Errors
/// [`OutputError`] if the check fails.
pub fn check_folder(path: &Path) -> Result<(), OutputError> {
    if is_stdout(path) {
        return Err(OutputError::NoFolder(path.to_owned()));
    }
    let there = path.ancestors().find(|folder| folder.exists());
    let there = there.unwrap_or(Path::new("."));
    atomic_file::check(&there.join("output")).map_err(unwritable(path))
}

/// Prints a line about the output at `path`: on standard output, or on standard error if the
/// content itself went to standard output.
///
/// # Errors
/// The system's error.
pub fn announce(path: &Path, line: impl Display) -> io::Result<()> {
    match is_stdout(path) {
        true => {
            crate::error_report::tell(line);
            Ok(())
        }
        false => writeln!(io::stdout(), "{line}"),
    }
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    let path = path.to_owned();
    |source| OutputError::Unwritable { path, source }
}
