//! Reviews that can be read by a link: pages in a folder, each under a name of 128 random bits and
//! until it expires.
//!
//! A file's name has the page's name and expiry, so links outlive the server. Other files in the folder
//! are left alone, and a file that is deleted takes its link with it.

use super::config::Sharing;
use crate::atomic_file;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of pages.
const MOST_PAGES: usize = 1000;
/// Maximum size of all pages together in bytes.
const MOST_BYTES: u64 = 256 << 20;
/// Number of hexadecimal digits of a name.
const DIGITS: usize = 32;

/// A page in the folder.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Its expiry, in seconds since 1970.
    expires: u64,
    bytes: u64,
}

/// The pages that can be read by a link.
pub(super) struct SharedPages {
    folder: PathBuf,
    time: Duration,
    pages: Mutex<BTreeMap<String, Page>>,
}

/// The name of a new page and its expiry, in seconds since 1970.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) expires: u64,
}

/// Why a page cannot be shared.
#[derive(Debug)]
pub(super) enum ShareError {
    /// There is no room until a page expires, which takes this time.
    Full(Duration),
    /// The file cannot be written.
    Write(io::Error),
}

impl SharedPages {
    /// Opens the folder, creating it for this user alone if it does not exist, and deletes expired pages.
    pub(super) fn open(sharing: &Sharing) -> io::Result<SharedPages> {
        let folder = sharing.folder.clone();
        create_private(&folder)?;
        atomic_file::remove_unfinished(&folder)?;
        let mut pages = BTreeMap::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some((name, expires)) = name.to_str().and_then(parsed) {
                let bytes = entry.metadata().as_ref().map_or(0, Metadata::len);
                pages.insert(name.to_owned(), Page { expires, bytes });
            }
        }
        let shared = SharedPages {
            folder,
            time: sharing.time,
            pages: Mutex::new(pages),
        };
        shared.delete_expired();
        Ok(shared)
    }

    /// Stores a page under a new name.
    pub(super) fn add(&self, page: &str) -> Result<Link, ShareError> {
        self.delete_expired();
        let name = format!("{:0DIGITS$x}", rand::random::<u128>());
        let now = now();
        let (expires, bytes) = (now + self.time.as_secs().max(1), page.len() as u64);
        {
            let mut pages = self.pages.lock();
            let all: u64 = pages.values().map(|page| page.bytes).sum();
            if pages.len() >= MOST_PAGES || all + bytes > MOST_BYTES {
                let first = pages.values().map(|page| page.expires).min();
                let wait = first.unwrap_or(now).saturating_sub(now);
                return Err(ShareError::Full(Duration::from_secs(wait)));
            }
            pages.insert(name.clone(), Page { expires, bytes });
        }
        atomic_file::write(&self.path(&name, expires), page).map_err(|error| {
            self.pages.lock().remove(&name);
            ShareError::Write(error)
        })?;
        Ok(Link { name, expires })
    }

    /// Returns a page that has not expired.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        let page = *self.pages.lock().get(name)?;
        if page.expires <= now() {
            self.delete_expired();
            return None;
        }
        let text = fs::read_to_string(self.path(name, page.expires));
        text.inspect_err(|error| {
            // Someone has deleted the file.
            tracing::warn!("the shared page {name}: {error}");
            self.pages.lock().remove(name);
        })
        .ok()
    }

    /// Deletes the pages that have expired.
    pub(super) fn delete_expired(&self) {
        let now = now();
        let mut expired = Vec::new();
        self.pages.lock().retain(|name, page| {
            let is_expired = page.expires <= now;
            if is_expired {
                expired.push(self.path(name, page.expires));
            }
            !is_expired
        });
        for path in expired {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!("cannot delete {}: {error}", path.display());
            }
        }
    }

    fn path(&self, name: &str, expires: u64) -> PathBuf {
        self.folder.join(format!("{name}.{expires}.html"))
    }
}

/// Creates a folder that only this user can read, unless it exists.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Returns the name and the expiry in a file's name.
fn parsed(file: &str) -> Option<(&str, u64)> {
    let (name, expires) = file.strip_suffix(".html")?.split_once('.')?;
    let is_digit = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    let is_name = name.len() == DIGITS && name.bytes().all(is_digit);
    let seconds = expires.parse().ok().filter(|_| is_name)?;
    // Another spelling of the number would be another file.
    (format!("{seconds}") == expires).then_some((name, seconds))
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tempfile::TempDir;

    fn opened(folder: &TempDir, days: u64) -> SharedPages {
        let sharing = Sharing {
            folder: folder.path().join("shared"),
            time: Duration::from_secs(days * 86_400),
        };
        SharedPages::open(&sharing).unwrap()
    }

    fn files(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path().join("shared")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn pages_are_found_by_their_names_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let shared = opened(&folder, 2);
        let links: Vec<_> = ["one", "two"].map(|it| shared.add(it).unwrap()).into();
        for shared in [shared, opened(&folder, 1)] {
            assert_eq!(shared.read(&links[0].name).as_deref(), Some("one"));
            assert_eq!(shared.read(&links[1].name).as_deref(), Some("two"));
            for other in ["", "..", "../secret", "one", &"0".repeat(DIGITS)] {
                assert_eq!(shared.read(other), None, "{other}");
            }
        }
        let left = links[0].expires - now();
        assert!((2 * 86_400 - 60..=2 * 86_400).contains(&left), "{left}");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_folder_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let shared = opened(&folder, 1);
        assert_eq!(mode(&shared.folder), 0o700);
        // An existing folder keeps its permissions.
        fs::set_permissions(&shared.folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(mode(&opened(&folder, 1).folder), 0o755);
    }

    #[test]
    fn names_do_not_repeat() {
        let folder = tempfile::tempdir().unwrap();
        let shared = opened(&folder, 1);
        let names: BTreeSet<_> = (0..50).map(|_| shared.add("").unwrap().name).collect();
        assert_eq!(names.len(), 50);
        assert!(names.iter().all(|name| name.len() == DIGITS));
    }

    #[test]
    fn expired_pages_are_not_read_and_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let shared = opened(&folder, 1);
        let [early, late] = ["early", "late"].map(|it| shared.add(it).unwrap());
        let past = now() - 1;
        let path = |expires| shared.path(&early.name, expires);
        fs::rename(path(early.expires), path(past)).unwrap();
        shared.pages.lock().get_mut(&early.name).unwrap().expires = past;
        assert_eq!(shared.read(&early.name), None);
        assert_eq!(files(&folder).len(), 1);
        assert_eq!(shared.read(&late.name).as_deref(), Some("late"));
        // A server that starts later deletes what has expired meanwhile.
        let stale = folder
            .path()
            .join("shared")
            .join(format!("{}.{past}.html", early.name));
        fs::write(&stale, "early").unwrap();
        assert_eq!(opened(&folder, 1).read(&early.name), None);
        assert!(!stale.exists());
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let name = "0123456789abcdef0123456789abcdef";
        fs::create_dir(folder.path().join("shared")).unwrap();
        let others = [
            "notes.html".to_owned(),
            format!("{name}.html"),
            format!("{name}.01.html"),
            format!("{name}.+1.html"),
            format!("{}.1.html", name.to_uppercase()),
            format!("{name}0.1.html"),
            format!("{name}.1.htm"),
        ];
        for other in &others {
            fs::write(folder.path().join("shared").join(other), "").unwrap();
        }
        let shared = opened(&folder, 1);
        assert!(shared.pages.lock().is_empty());
        assert_eq!(files(&folder).len(), others.len());
    }

    #[test]
    fn a_deleted_file_takes_its_link_and_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let shared = opened(&folder, 1);
        let link = shared.add("one").unwrap();
        fs::remove_file(shared.path(&link.name, link.expires)).unwrap();
        assert_eq!(shared.read(&link.name), None);
        assert!(shared.pages.lock().is_empty());
    }

    #[test]
    fn the_number_of_pages_and_bytes_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let shared = opened(&folder, 1);
        let expires = now() + 100;
        let all = |count: usize, bytes| {
            let names = (0..count).map(|number| (number.to_string(), Page { expires, bytes }));
            *shared.pages.lock() = names.collect();
        };
        let wait = || match shared.add("one") {
            Err(ShareError::Full(wait)) => Some(wait.as_secs()),
            other => other.map(|_| None).unwrap(),
        };
        all(MOST_PAGES, 0);
        assert!((99..=100).contains(&wait().unwrap()));
        all(MOST_PAGES - 1, 0);
        assert_eq!(wait(), None);
        all(2, MOST_BYTES / 2 - 1);
        assert!(wait().is_some());
        all(2, MOST_BYTES / 2 - 2);
        assert_eq!(wait(), None);
    }
}
