//! Files that appear whole or not at all: written under another name beside
//! their place, and then renamed.

use std::path::Path;
use tempfile::NamedTempFile;

/// A file beside `path` that vanishes unless it is persisted there.
///
/// # Errors
/// What the system says where the folder cannot be written to.
pub(crate) fn unfinished(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // Temporary files are their owner's alone; these become files like any
    // other, for which the user's umask decides.
    #[cfg(unix)]
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(mode);
    builder.prefix(".unfinished-").tempfile_in(folder)
}
