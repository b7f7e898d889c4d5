//! The rows of a store's shards.

use super::error::CycleError;
use crate::data::shard::Shard;
use crate::store::{ShardName, Store};
use std::collections::BTreeMap;

/// The shards seen so far with their rows. Lists may lag, so a shard that was seen once
/// stays, and one that is missing comes later.
#[derive(Debug, Default)]
pub struct Rows {
    shards: BTreeMap<ShardName, u64>,
}

impl Rows {
    /// Looks for shards that are new. One that cannot be read is told of once and counts
    /// as empty.
    ///
    /// # Errors
    /// [`CycleError::Store`] if the store cannot be asked.
    pub fn look(&mut self, store: &Store) -> Result<(), CycleError> {
        for name in store.shards()? {
            if self.shards.contains_key(&name) {
                continue;
            }
            let rows = match Shard::open(&store.path(&name.name())) {
                Ok(shard) => shard.blocks().iter().map(|block| block.samples).sum(),
                Err(error) => {
                    tracing::warn!("left out: {error}");
                    0
                }
            };
            self.shards.insert(name, rows);
        }
        Ok(())
    }

    /// All rows.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.shards.values().sum()
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The newest shards that together hold `size` rows, or all, in order; and their
    /// rows.
    #[must_use]
    pub fn newest(&self, size: u64) -> (Vec<&ShardName>, u64) {
        let mut rows = 0;
        let mut newest = Vec::new();
        for (name, own) in self.shards.iter().rev() {
            if rows >= size {
                break;
            }
            if *own > 0 {
                newest.push(name);
                rows += own;
            }
        }
        newest.reverse();
        (newest, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_shards_fill_the_window() {
        let shard = |generation, worker: &str| ShardName {
            generation,
            worker: worker.parse().unwrap(),
            serial: 0,
        };
        let rows = Rows {
            shards: [
                (shard(0, "b"), 100),
                (shard(1, "a"), 50),
                (shard(1, "b"), 0),
                (shard(2, "a"), 30),
            ]
            .into(),
        };
        assert_eq!((rows.total(), rows.shards()), (180, 4));
        let names = |size| -> Vec<u64> {
            let (newest, _) = rows.newest(size);
            newest.iter().map(|name| name.generation).collect()
        };
        assert!(names(0).is_empty());
        assert_eq!(names(1), [2]);
        assert_eq!(names(31), [1, 2]);
        assert_eq!(names(1000), [0, 1, 2]);
        assert_eq!(rows.newest(31).1, 80);
    }
}
