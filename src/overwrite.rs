//! Commands do not write over what they read, and know that they can write before they
//! begin.

use crate::output::{self, OutputError};
use std::path::{Path, PathBuf};

/// An output cannot be written, or is one of the inputs.
#[derive(Debug, thiserror::Error)]
pub enum OverwriteError {
    /// Nothing can be written there.
    #[error(transparent)]
    Unwritable(#[from] OutputError),
    /// Both have one name.
    #[error("{} is read, so it is not written: name another output", .0.display())]
    Same(PathBuf),
    /// Both lead to one file.
    #[error(
        "the output {} is the file {}, which is read: name another output",
        output.display(), input.display()
    )]
    Linked {
        /// The output.
        output: PathBuf,
        /// The input that it leads to.
        input: PathBuf,
    },
}

/// Refuses an output that cannot be written, or that is one of the inputs, be it by
/// another name or through links of any kind. What is no regular file, such as a pipe or a
/// terminal, may be both.
///
/// # Errors
/// [`OverwriteError`] says which, and names the input.
pub fn refuse<P: AsRef<Path>>(
    output: &Path,
    inputs: impl IntoIterator<Item = P>,
) -> Result<(), OverwriteError> {
    output::check(output)?;
    if output::is_stdout(output) {
        return Ok(());
    }
    // What is not there yet is nobody's input.
    let Some(there) = file_at(output) else {
        return Ok(());
    };
    let mut inputs = inputs.into_iter();
    match inputs.find(|input| file_at(input.as_ref()).as_ref() == Some(&there)) {
        None => Ok(()),
        Some(input) if input.as_ref() == output => Err(OverwriteError::Same(output.to_owned())),
        Some(input) => Err(OverwriteError::Linked {
            output: output.to_owned(),
            input: input.as_ref().to_owned(),
        }),
    }
}

/// What tells the regular file at a path from all others.
#[cfg(unix)]
fn file_at(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((file.dev(), file.ino()))
}

/// What tells the regular file at a path from all others, but for hard links.
#[cfg(not(unix))]
fn file_at(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_is_known_by_all_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&file, "text").unwrap();
        std::fs::write(&other, "text").unwrap();
        let round = folder.path().join("c/../a");
        std::fs::create_dir(folder.path().join("c")).unwrap();
        let missing = folder.path().join("d");
        refuse(&other, [&file]).unwrap();
        refuse(&missing, [&file, &missing]).unwrap();
        let same = refuse(&file, [&other, &file]).unwrap_err().to_string();
        assert!(same.ends_with("a is read, so it is not written: name another output"));
        for output in names_of(&file, folder.path()).chain([round]) {
            let error = refuse(&output, [&other, &file]).unwrap_err().to_string();
            assert!(error.contains("which is read"), "{error}");
            assert!(refuse(&file, [&output]).is_err());
        }
    }

    #[cfg(unix)]
    fn names_of(file: &Path, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let [hard, soft, far] = ["hard", "soft", "far"].map(|name| folder.join(name));
        std::fs::hard_link(file, &hard).unwrap();
        std::os::unix::fs::symlink(file, &soft).unwrap();
        std::os::unix::fs::symlink("soft", &far).unwrap();
        [hard, soft, far].into_iter()
    }

    #[cfg(not(unix))]
    fn names_of(_: &Path, _: &Path) -> impl Iterator<Item = PathBuf> {
        std::iter::empty()
    }

    #[cfg(unix)]
    #[test]
    fn devices_may_be_both() {
        let null = Path::new("/dev/null");
        refuse(null, [null]).unwrap();
    }
}
