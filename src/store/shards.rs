//! Follows the shards of a store.

use super::{ShardName, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Number of newest generations whose shards are listed at every look.
const RECENT: usize = 4;

/// The known shards of a store, updated by polling.
///
/// New shards belong to the newest generations. A poll therefore lists those, and only one of the
/// older generations in rotation, because listings and workers may lag. Known shards stay known.
#[derive(Debug, Default)]
pub struct Shards {
    /// The known shards of each generation that has been listed.
    known: BTreeMap<u64, BTreeSet<ShardName>>,
    /// Number of looks so far.
    looks: usize,
}

impl Shards {
    /// Looks for new shards and returns them ordered by generation, worker and serial number. The
    /// first look lists every generation. Each later one makes as many requests as there are recent
    /// generations, plus two.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached; the next look then finds all of them.
    pub fn look(&mut self, store: &Store) -> Result<Vec<ShardName>, StoreError> {
        let generations = store.searched()?;
        let (older, recent) = generations.split_at(generations.len().saturating_sub(RECENT));
        let turn = older.get(self.looks % older.len().max(1));
        let is_due = |it: &&u64| turn == Some(*it) || !self.known.contains_key(*it);
        let due = older.iter().filter(is_due);
        let mut listed = Vec::new();
        for &generation in due.chain(recent) {
            listed.push((generation, store.shards_of(generation)?));
        }
        self.looks += 1;
        let mut new = Vec::new();
        for (generation, names) in listed {
            let known = self.known.entry(generation).or_default();
            new.extend(names.into_iter().filter(|name| known.insert(name.clone())));
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_new_once_and_late_ones_are_found_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let put = |generation, serial| {
            let shard = ShardName {
                generation,
                worker: "actor".parse().unwrap(),
                serial,
            };
            store.put(&shard.name(), b"x").unwrap();
            shard
        };
        let mut shards = Shards::default();
        assert_eq!(shards.look(&store).unwrap(), []);
        // Numbers have gaps, because the gate rejected some networks.
        let all: Vec<ShardName> = (0..12).map(|number| put(3 * number, 0)).collect();
        assert_eq!(shards.look(&store).unwrap(), all);
        assert_eq!(shards.look(&store).unwrap(), []);
        let recent: Vec<ShardName> = (8..12).map(|number| put(3 * number, 1)).collect();
        assert_eq!(shards.look(&store).unwrap(), recent);
        let late: Vec<ShardName> = [put(3, 1), put(15, 1)].into();
        let mut found = Vec::new();
        for _ in 0..8 {
            let new = shards.look(&store).unwrap();
            assert!(new.len() <= 1, "one older generation at a time");
            found.extend(new);
        }
        found.sort();
        assert_eq!(found, late);
        // A generation that was never listed before is listed regardless of the rotation.
        let (late, newest) = (put(4, 0), put(36, 0));
        assert_eq!(shards.look(&store).unwrap(), [late, newest]);
    }
}
