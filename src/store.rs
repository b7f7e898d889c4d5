//! The store that the workers of the self-play loop share: a folder or an object store.
//!
//! Objects have unique names and never change. If several writers store objects under the same name
//! concurrently, exactly one succeeds, so that storing an object also claims its name. Workers need
//! no other coordination, and a killed worker leaves no incomplete objects.
//!
//! | name | contents |
//! |---|---|
//! | `generations/000012.json` | a [`Generation`]: the manifest of a network of the loop |
//! | `candidates/000012.json` | the same manifest before the gate has judged it |
//! | `networks/000012.pt` | the generation's network |
//! | `checkpoints/000012.safetensors` | the learner's state for that network |
//! | `strengths/000012.json` | the generation's games against earlier ones, see [`Strength`] |
//! | `games/000012/actor-5f3a9c21-000007.shard` | games searched by that network, see [`ShardName`] |
//!
//! The listings of object stores may lag: an existing object may be missing from them for a while.
//! Readers must therefore expect such objects to appear later, and [`Generations`] does not rely on
//! listings, but requests the next generation by its name.

#[cfg(feature = "cloud")]
pub(crate) mod cloud;
#[cfg(not(feature = "cloud"))]
#[path = "store/no_cloud.rs"]
pub(crate) mod cloud;
mod folder;
mod generation;
mod generations;
mod name;
mod shards;
mod strength;

pub use generation::{Generation, ManifestError, Outcome, elo};
pub use generations::Generations;
pub use name::{Name, NameError, ShardName, WorkerName};
pub use shards::Shards;
pub use strength::{Games, Strength};

use cloud::Cloud;
use folder::Folder;
use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Access was denied, or the store cannot be reached.
    #[error("cannot {action} {} in the store: {source}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The path or address that the operation concerned.
        path: PathBuf,
        /// The system's or the store's error.
        source: io::Error,
    },
    /// A manifest is invalid.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The problem.
        source: ManifestError,
    },
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The bytes were stored.
    New,
    /// The same bytes had already been stored under this name, for example because the response to
    /// an earlier request was lost.
    Repeated,
    /// Different bytes had already been stored under this name. They are kept.
    Taken,
}

/// The files directly in a folder, and its subfolders.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub files: Vec<String>,
    pub folders: Vec<String>,
}

/// A store.
///
/// ```
/// use tessera::store::{Name, Put, Store};
///
/// let folder = tempfile::tempdir()?;
/// let store = Store::open(folder.path())?;
/// let name = Name::network(12);
/// assert_eq!(store.put(&name, b"one")?, Put::New);
/// assert_eq!(store.put(&name, b"two")?, Put::Taken);
/// assert_eq!(store.get(&name)?.unwrap(), b"one");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    /// The location of the store.
    pub place: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Folder(Folder),
    Cloud(Cloud),
}

impl Store {
    /// Opens a folder, which need not exist yet, or a part of a bucket, such as `s3://bucket/loop`,
    /// `gs://…` or `az://…`. Credentials and endpoints are read from the environment variables that
    /// the providers' own tools use (`AWS_…`, `GOOGLE_…`, `AZURE_…`).
    ///
    /// # Errors
    /// [`StoreError`] if the address cannot be used.
    pub fn open(place: &Path) -> Result<Store, StoreError> {
        let kind = match address(place) {
            None => Ok(Kind::Folder(Folder::new(place))),
            Some(address) => Cloud::open(address).map(Kind::Cloud),
        };
        Ok(Store {
            kind: kind.map_err(|source| StoreError::Io {
                action: "open",
                path: place.to_owned(),
                source,
            })?,
            place: place.to_owned(),
        })
    }

    /// Stores bytes under a name, unless the name is taken. The operation is atomic, and exactly
    /// one of several concurrent attempts succeeds.
    ///
    /// # Errors
    /// [`StoreError`]. After an error, the bytes may or may not have been stored, and it is safe to
    /// try again.
    pub fn put(&self, name: &Name, bytes: &[u8]) -> Result<Put, StoreError> {
        let put = match &self.kind {
            Kind::Folder(folder) => folder.put(name, bytes),
            Kind::Cloud(cloud) => cloud.put(name, bytes),
        };
        match put.map_err(self.refused("put", name.as_str()))? {
            true => Ok(Put::New),
            false => match self.get(name)? {
                Some(there) if there == bytes => Ok(Put::Repeated),
                _ => Ok(Put::Taken),
            },
        }
    }

    /// Returns the object with this name, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    pub fn get(&self, name: &Name) -> Result<Option<Vec<u8>>, StoreError> {
        let got = match &self.kind {
            Kind::Folder(folder) => folder.get(name),
            Kind::Cloud(cloud) => cloud.get(name),
        };
        got.map_err(self.refused("get", name.as_str()))
    }

    /// Returns the names directly in a folder such as `generations`, in order. Entries that are not
    /// a [`Name`] are skipped. The listing may lag.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    pub fn list(&self, folder: &str) -> Result<Vec<Name>, StoreError> {
        let listing = self.listing(folder)?;
        let names = listing.files.iter();
        let names = names.filter_map(|file| format!("{folder}/{file}").parse().ok());
        let mut names: Vec<Name> = names.collect();
        names.sort();
        Ok(names)
    }

    /// Returns the store's shards of games, ordered by generation, worker and serial number. The
    /// listing may lag. To poll repeatedly, use [`Shards`].
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    pub fn shards(&self) -> Result<Vec<ShardName>, StoreError> {
        Shards::default().look(self)
    }

    /// Returns the generations whose networks have searched games, in order.
    fn searched(&self) -> Result<Vec<u64>, StoreError> {
        let folders = self.listing(ShardName::FOLDER)?.folders;
        let numbers = folders.iter().filter_map(|folder| {
            let number = folder.parse().ok()?;
            // Only the canonical spelling is valid.
            (ShardName::folder(number) == format!("{}/{folder}", ShardName::FOLDER))
                .then_some(number)
        });
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the shards of one generation, in order.
    fn shards_of(&self, generation: u64) -> Result<Vec<ShardName>, StoreError> {
        let names = self.list(&ShardName::folder(generation))?;
        let mut shards: Vec<ShardName> = names.iter().filter_map(ShardName::of).collect();
        shards.sort();
        Ok(shards)
    }

    /// Returns the location of an object, which is a path or an address, in the form that
    /// [`Shard::open`](crate::data::shard::Shard::open) accepts.
    pub fn path(&self, name: &Name) -> PathBuf {
        match &self.kind {
            Kind::Folder(_) => self.place.join(name.as_str()),
            Kind::Cloud(_) => {
                let place = self.place.to_string_lossy();
                format!("{}/{name}", place.trim_end_matches('/')).into()
            }
        }
    }

    /// Removes the unfinished files that killed workers have left in a folder. No worker may store
    /// anything at the same time. In an object store, this does nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the folder cannot be read or changed.
    pub fn sweep(&self) -> Result<(), StoreError> {
        match &self.kind {
            Kind::Folder(folder) => folder.sweep().map_err(self.refused("sweep", "")),
            Kind::Cloud(_) => Ok(()),
        }
    }

    fn listing(&self, folder: &str) -> Result<Listing, StoreError> {
        let listing = match &self.kind {
            Kind::Folder(store) => store.list(folder),
            Kind::Cloud(cloud) => cloud.list(folder),
        };
        listing.map_err(self.refused("list", folder))
    }

    fn refused(&self, action: &'static str, name: &str) -> impl FnOnce(io::Error) -> StoreError {
        let path = self.place.join(name);
        move |source| StoreError::Io {
            action,
            path,
            source,
        }
    }
}

/// Returns whether `location` is the address of an object, such as `s3://bucket/key`, rather than
/// the path of a file.
pub fn is_address(location: &Path) -> bool {
    address(location).is_some()
}

/// Returns the address in `location`, if it is one. An address has a scheme, which must not be a
/// Windows drive letter.
pub(crate) fn address(location: &Path) -> Option<&str> {
    let location = location.to_str()?;
    let (scheme, _) = location.split_once("://")?;
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_scheme.then_some(location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn addresses_are_told_from_paths() {
        for path in [
            "a.shard",
            "/data/a.shard",
            "C:\\a.shard",
            "a:b",
            "c://x",
            "./a://b",
        ] {
            assert!(!is_address(Path::new(path)), "{path}");
        }
        for url in ["s3://bucket/a.shard", "https://host/a.shard"] {
            assert!(is_address(Path::new(url)), "{url}");
        }
    }

    #[test]
    fn a_name_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("new/store")).unwrap();
        let name = Name::network(3);
        assert_eq!(store.get(&name).unwrap(), None);
        assert_eq!(store.list("networks").unwrap(), []);
        let start = Barrier::new(8);
        let outcomes: Vec<Put> = std::thread::scope(|scope| {
            let put = |worker: u8| {
                let (store, name, start) = (&store, &name, &start);
                scope.spawn(move || {
                    start.wait();
                    store.put(name, &[worker; 1000]).unwrap()
                })
            };
            let workers: Vec<_> = (0..8).map(put).collect();
            workers.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let winners = outcomes.iter().filter(|&&put| put == Put::New).count();
        let losers = outcomes.iter().filter(|&&put| put == Put::Taken).count();
        assert_eq!((winners, losers), (1, 7));
        let there = store.get(&name).unwrap().unwrap();
        assert!(there.iter().all(|&byte| byte == there[0]));
        assert_eq!(store.put(&name, &there).unwrap(), Put::Repeated);
        assert_eq!(store.list("networks").unwrap(), [name]);
        let files = std::fs::read_dir(store.place.join("networks")).unwrap();
        assert_eq!(files.count(), 1, "nothing half-written is left");
    }

    #[test]
    fn shards_are_listed_in_order_and_strangers_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let worker: WorkerName = "actor".parse().unwrap();
        let shard = |generation, serial| ShardName {
            generation,
            worker: worker.clone(),
            serial,
        };
        let names = [shard(1, 0), shard(1, 2), shard(2, 1), shard(1_000_000, 0)];
        for name in names.iter().rev() {
            store.put(&name.name(), b"x").unwrap();
        }
        let games = folder.path().join("games");
        for stranger in [".unfinished-x", "notes.txt", "actor-1.shard"] {
            std::fs::write(games.join("000001").join(stranger), "").unwrap();
        }
        std::fs::create_dir(games.join("1")).unwrap();
        std::fs::write(games.join("1/actor-000000.shard"), "").unwrap();
        assert_eq!(store.shards().unwrap(), names);
        store.sweep().unwrap();
        assert!(!games.join("000001/.unfinished-x").exists());
        assert!(games.join("000001/notes.txt").exists());
    }
}
