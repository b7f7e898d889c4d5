//! Files that appear whole or not at all: written under another name beside
//! their place, and then renamed.

use std::path::Path;
use tempfile::NamedTempFile;

/// What the names of files begin with that are being written.
const UNFINISHED: &str = ".unfinished-";

/// A file beside `path` that vanishes unless it is persisted there.
///
/// # Errors
/// What the system says where the folder cannot be written to.
pub(crate) fn unfinished(path: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // Temporary files are their owner's alone; these become files like any
    // other, for which the user's umask decides.
    #[cfg(unix)]
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(mode);
    builder.prefix(UNFINISHED).tempfile_in(folder_of(path))
}

/// Removes what a killed process left half-written in a folder, if there is one.
///
/// # Errors
/// What the system says.
#[cfg(feature = "torch")]
pub(crate) fn remove_unfinished(folder: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
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
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // Windows keeps no handles of folders; its renames are journalled.
    #[cfg(unix)]
    std::fs::File::open(folder_of(path))?.sync_all()?;
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
