//! Finds the networks that ship with the program, by name.

use std::path::{Path, PathBuf};

/// Number of folders above the program to search for `nets`. In release archives, `nets` is next to
/// the program; in a checkout, it is above `target/release` or `target/debug/deps`.
const ABOVE: usize = 4;
const FOLDER: &str = "nets";
const ENDING: &str = "pt";

/// Returns the file that `text` names: a path, or a shipped network with or without its extension.
/// A file of that name in the working folder takes precedence.
pub fn file(text: impl AsRef<Path>) -> PathBuf {
    file_from(folder(), text.as_ref())
}

fn file_from(folder: Option<PathBuf>, path: &Path) -> PathBuf {
    let is_plain = path.file_name().is_some_and(|name| name == path);
    if path.exists() || !is_plain {
        return path.to_owned();
    }
    let shipped = folder.and_then(|folder| network_in(&folder, path));
    shipped.unwrap_or_else(|| path.to_owned())
}

/// Returns the file of a shipped network, by name with or without its extension.
#[cfg(feature = "torch")]
pub(crate) fn beside(name: impl AsRef<Path>) -> Option<PathBuf> {
    network_in(&folder()?, name.as_ref())
}

fn network_in(folder: &Path, name: &Path) -> Option<PathBuf> {
    let named = folder.join(name);
    let mut with_ending = named.clone().into_os_string();
    with_ending.push(".");
    with_ending.push(ENDING);
    let mut files = [named, with_ending.into()].into_iter();
    files.find(|file| is_network(file) && file.is_file())
}

/// Returns the names of all shipped networks.
pub fn names() -> Vec<String> {
    folder().map_or_else(Vec::new, |folder| names_in(&folder))
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().ok();
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
    folder_above(&std::env::current_exe().ok()?)
}

fn folder_above(program: &Path) -> Option<PathBuf> {
    let mut folders = program.ancestors().skip(1).take(ABOVE);
    folders.find_map(|above| {
        let folder = above.join(FOLDER);
        folder.is_dir().then_some(folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds may be anywhere, so these tests do not look for the networks above their own program.
    #[test]
    fn networks_that_ship_are_found_above_the_program() {
        let root = tempfile::tempdir().unwrap();
        let nets = root.path().join(FOLDER);
        std::fs::create_dir(&nets).unwrap();
        for program in ["tessera", "target/release/tessera", "target/debug/deps/x"] {
            let found = folder_above(&root.path().join(program));
            assert_eq!(found.as_ref(), Some(&nets), "{program}");
        }
        let far = root.path().join("a/b/c/d/tessera");
        assert_ne!(folder_above(&far), Some(nets));
    }

    #[test]
    fn networks_that_ship_have_names() {
        let nets = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
        let file = |text: &str| file_from(Some(nets.clone()), Path::new(text));
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
        let names = names_in(&nets);
        assert!(names.contains(&"tessera-human".to_owned()), "{names:?}");
        assert!(!names.contains(&"README".to_owned()), "{names:?}");
    }
}
