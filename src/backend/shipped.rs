//! Finds the networks that ship with the program, by name.

use std::path::{Path, PathBuf};

/// Number of folders above the program to search for `nets`. In release archives, `nets` is next to
/// the program; in a checkout, it is above `target/release` or `target/debug/deps`.
const ABOVE: usize = 4;
const FOLDER: &str = "nets";
const ENDING: &str = "pt";

/// Returns the file that `text` names: a path, or a shipped network with or without its extension.
/// A file of that name in the working folder takes precedence.
#[must_use]
pub fn file(text: impl AsRef<Path>) -> PathBuf {
    let path = text.as_ref();
    let is_plain = path.file_name().is_some_and(|name| name == path);
    if path.exists() || !is_plain {
        return path.to_owned();
    }
    beside(path).unwrap_or_else(|| path.to_owned())
}

/// Returns the file of a shipped network, by name with or without its extension.
pub(crate) fn beside(name: impl AsRef<Path>) -> Option<PathBuf> {
    let named = folder()?.join(name);
    let mut with_ending = named.clone().into_os_string();
    with_ending.push(".");
    with_ending.push(ENDING);
    let mut files = [named, with_ending.into()].into_iter();
    files.find(|file| is_network(file) && file.is_file())
}

/// Returns the names of all shipped networks.
#[must_use]
pub fn names() -> Vec<String> {
    let entries = folder().and_then(|folder| folder.read_dir().ok());
    let paths = entries.into_iter().flatten().flatten().map(|it| it.path());
    let names = paths.filter(|path| is_network(path)).filter_map(|path| {
        let stem = path.file_stem()?;
        Some(stem.to_str()?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn is_network(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING)
}

/// Returns the folder with the shipped networks.
fn folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let mut folders = program.ancestors().skip(1).take(ABOVE);
    folders.find_map(|above| {
        let folder = above.join(FOLDER);
        folder.is_dir().then_some(folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_ship_have_names() {
        let nets = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
        assert_eq!(file("tessera-xs"), nets.join("tessera-xs.pt"));
        assert_eq!(file("tessera-xs.pt"), nets.join("tessera-xs.pt"));
        for other in [
            "tessera-q",
            "README.md",
            "README",
            "./tessera-xs",
            "/tessera-xs",
            "",
        ] {
            assert_eq!(file(other), Path::new(other));
        }
        assert!(
            names().contains(&"tessera-human".to_owned()),
            "{:?}",
            names()
        );
        assert!(!names().contains(&"README".to_owned()));
    }
}
