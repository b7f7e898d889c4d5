//! Checks to make before a command starts: its outputs must be writable, and must overwrite neither
//! an input nor each other.

use crate::output::{self, OutputError};
use std::path::{Path, PathBuf};

/// Why an output is rejected.
#[derive(Debug, thiserror::Error)]
pub enum OverwriteError {
    /// The path cannot be written.
    #[error(transparent)]
    Unwritable(#[from] OutputError),
    /// The output has the same name as an input.
    #[error("{} is read, so it is not written: name another output", .0.display())]
    Same(PathBuf),
    /// The output is the same file as an input with a different name.
    #[error(
        "the output {} is the file {}, which is read: name another output",
        output.display(), input.display()
    )]
    Linked {
        /// The output.
        output: PathBuf,
        /// The input that is the same file.
        input: PathBuf,
    },
    /// Two outputs are the same file.
    #[error("{} and {} would be one file: name another output", .0.display(), .1.display())]
    Twice(PathBuf, PathBuf),
}

/// Rejects an output that cannot be written or that is one of the inputs. Different names of the
/// same file and links of any kind are recognised. A pipe, a terminal, or anything else that is not
/// a regular file may be both an input and an output.
///
/// # Errors
/// [`OverwriteError`], naming the output and the input.
pub fn refuse<P: AsRef<Path>>(
    output: &Path,
    inputs: impl IntoIterator<Item = P>,
) -> Result<(), OverwriteError> {
    output::check(output)?;
    if output::is_stdout(output) {
        return Ok(());
    }
    // A file that does not exist yet cannot be an input.
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

/// Rejects the outputs if two of them are the same file, whether or not the file exists.
///
/// # Errors
/// [`OverwriteError::Twice`], naming both outputs.
pub fn refuse_twice<P: AsRef<Path>>(
    outputs: impl IntoIterator<Item = P>,
) -> Result<(), OverwriteError> {
    let mut seen: Vec<P> = Vec::new();
    for output in outputs {
        let path = output.as_ref();
        if let Some(other) = seen.iter().find(|it| is_one_file(it.as_ref(), path)) {
            let other = other.as_ref().to_owned();
            return Err(OverwriteError::Twice(other, path.to_owned()));
        }
        seen.push(output);
    }
    Ok(())
}

/// Returns whether two outputs are the same file. A device or a pipe may receive several outputs.
fn is_one_file(one: &Path, other: &Path) -> bool {
    match (file_at(one), file_at(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) if !one.exists() && !other.exists() => {
            one == other || resolved(one).is_some_and(|one| Some(one) == resolved(other))
        }
        _ => false,
    }
}

/// Returns the absolute path of a file that does not exist yet, or `None` if its folder does not
/// exist either.
fn resolved(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let folder = std::path::absolute(path).ok()?;
    Some(folder.parent()?.canonicalize().ok()?.join(name))
}

/// Identifies the regular file at a path.
#[cfg(unix)]
fn file_at(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((file.dev(), file.ino()))
}

/// Returns the canonical path of the regular file at a path. Hard links to a file have different
/// canonical paths.
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

    #[test]
    fn two_outputs_are_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, new, newer] =
            ["a", "b", "new", "newer"].map(|name| folder.path().join(name));
        std::fs::write(&file, "text").unwrap();
        std::fs::write(&other, "text").unwrap();
        std::fs::create_dir(folder.path().join("c")).unwrap();
        refuse_twice([&file, &other, &new, &newer]).unwrap();
        let round = |name: &str| folder.path().join("c/..").join(name);
        let pairs = names_of(&file, folder.path()).map(|name| (file.clone(), name));
        for (one, two) in pairs.chain([
            (file.clone(), file.clone()),
            (file.clone(), round("a")),
            (new.clone(), new.clone()),
            (new.clone(), round("new")),
            ("relative".into(), "./relative".into()),
            ("nowhere/new".into(), "nowhere/new".into()),
        ]) {
            let error = refuse_twice([&other, &one, &two]).unwrap_err().to_string();
            assert!(
                error.ends_with("would be one file: name another output"),
                "{error}"
            );
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
        refuse_twice([null, null]).unwrap();
    }
}
