//! The table of positions, which maps each position to its node so that all paths to the position
//! lead to that node.
//!
//! An entry is one word: 32 bits for the index and 32 bits of the key. An entry is only a hint: the
//! node stores the whole key, which every lookup must compare. Losing an entry costs no more than a
//! duplicate node, so threads need no synchronisation beyond reading and writing entries
//! atomically.
//!
//! The table grows with the tree, bucket by bucket, by linear hashing (Litwin 1980). The table of a
//! small tree stays in the CPU's cache, and no search has to pause while a large table is rebuilt.

use super::arena::Index;
use crate::search::sync::{AtomicU64, AtomicUsize, Mutex, zeroed_words};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Number of entries in which a key may be stored: one cache line.
const BUCKET: usize = 8;
/// Number of buckets of an empty table; a power of two.
const FIRST_BUCKETS: usize = 1 << 9;
/// The table grows when an entry goes into this slot of its bucket or a later one, …
const CROWDED: usize = 5;
/// … by this many buckets.
const GROWTH: usize = 4;

pub(crate) struct Table {
    entries: Box<[AtomicU64]>,
    /// Number of buckets in use; the contents of the memory beyond them are undefined.
    buckets: AtomicUsize,
    growing: Mutex<()>,
}

impl Table {
    /// Creates a table that can grow to this many MiB, or less if the address space is too small.
    pub(crate) fn new(mebibytes: usize) -> Table {
        Table {
            entries: zeroed_words(mebibytes.max(1).saturating_mul(1 << 17)),
            buckets: AtomicUsize::new(FIRST_BUCKETS),
            growing: Mutex::new(()),
        }
    }

    /// Clears the table.
    pub(crate) fn clear(&mut self) {
        self.buckets = AtomicUsize::new(FIRST_BUCKETS);
        for entry in &mut self.entries[..FIRST_BUCKETS * BUCKET] {
            *entry = AtomicU64::new(0);
        }
    }

    /// Returns the node with this key for which `is_it` returns true.
    pub(crate) fn find(&self, key: u64, is_it: impl Fn(Index) -> bool) -> Option<Index> {
        self.bucket_of(key).iter().find_map(|entry| {
            // Acquire: the node is seen in the state it had when [`Table::insert`] stored the
            // entry.
            let entry = entry.load(Acquire);
            (word(key, entry as Index) == entry && entry != 0 && is_it(entry as Index))
                .then_some(entry as Index)
        })
    }

    /// Inserts the node of a key, replacing another node if necessary.
    pub(crate) fn insert(&self, key: u64, node: Index) {
        let bucket = self.bucket_of(key);
        let free = bucket.iter().position(|entry| entry.load(Relaxed) == 0);
        // Key bits that the table does not store select the entry to replace.
        let place = free.unwrap_or((key >> 32) as usize % BUCKET);
        bucket[place].store(word(key, node), Release);
        if self.buckets.load(Relaxed) == self.most_buckets() {
            return;
        }
        // If a bucket overflows, threads wait for the thread that is growing the table, which the
        // system may have interrupted.
        match free {
            Some(..CROWDED) => {}
            Some(_) => {
                if let Some(alone) = self.growing.try_lock() {
                    self.grow(alone);
                }
            }
            None => self.grow(self.growing.lock()),
        }
    }

    /// Removes the node.
    pub(crate) fn remove(&self, key: u64, node: Index) {
        for entry in self.bucket_of(key) {
            if entry.load(Relaxed) == word(key, node) {
                entry.store(0, Relaxed);
            }
        }
    }

    /// Splits some buckets in two. Only one thread may do so at a time.
    fn grow<Guard>(&self, _alone: Guard) {
        let first = self.buckets.load(Relaxed);
        let last = (first + GROWTH).min(self.most_buckets());
        for new in first..last {
            let split_by = level(new);
            let old = self.bucket(new - split_by);
            for (old, new) in old.iter().zip(self.bucket(new)) {
                let entry = old.load(Acquire);
                let goes = (entry >> 32) as usize & split_by != 0;
                new.store(if goes { entry } else { 0 }, Relaxed);
                if goes {
                    old.store(0, Relaxed);
                }
            }
            self.buckets.store(new + 1, Release);
        }
    }

    fn most_buckets(&self) -> usize {
        self.entries.len() / BUCKET
    }

    fn bucket_of(&self, key: u64) -> &[AtomicU64] {
        // Acquire: the entries of a new bucket are visible along with it.
        let buckets = self.buckets.load(Acquire);
        let level = level(buckets);
        let number = key as usize & (2 * level - 1);
        self.bucket(match number < buckets {
            true => number,
            false => number - level,
        })
    }

    fn bucket(&self, number: usize) -> &[AtomicU64] {
        &self.entries[number * BUCKET..(number + 1) * BUCKET]
    }
}

/// Returns the largest power of two that does not exceed this number. In a table with that many
/// buckets, the result is also the key bit that selects one half of a split bucket.
fn level(buckets: usize) -> usize {
    1 << buckets.ilog2()
}

fn word(key: u64, node: Index) -> u64 {
    key << 32 | u64::from(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes()
    }

    fn finds(table: &Table, number: u64) -> bool {
        let found = table.find(key(number), |node| node == number as Index);
        found.is_some()
    }

    #[test]
    fn finds_entries_until_they_are_removed() {
        let mut table = Table::new(2);
        let many = 100_000;
        for number in 1..many {
            table.insert(key(number), number as Index);
        }
        let lost = (1..many).filter(|&number| !finds(&table, number)).count();
        // A bucket may be full long before it is split.
        assert!(lost < many as usize / 200, "{lost}");
        assert!(table.find(key(5), |_| false).is_none());
        table.remove(key(5), 6);
        assert!(finds(&table, 5));
        table.remove(key(5), 5);
        assert!(!finds(&table, 5) && finds(&table, 6));
        for _ in 0..3 {
            table.clear();
            assert!(!(1..many).any(|number| finds(&table, number)));
            (1..many).for_each(|number| table.insert(key(number), number as Index));
        }
    }

    #[test]
    fn it_is_as_large_as_what_it_holds() {
        let table = Table::new(64);
        for number in 1..200_000 {
            table.insert(key(number), number as Index);
        }
        let entries = table.buckets.load(Relaxed) * BUCKET;
        assert!((300_000..800_000).contains(&entries), "{entries}");
    }

    #[test]
    fn a_full_table_forgets_some() {
        let table = Table::new(1);
        let many = 4 << 17;
        (1..many).for_each(|number| table.insert(key(number), number as Index));
        let found = (1..many).filter(|&number| finds(&table, number)).count();
        assert!(found > 100_000 && found < many as usize / 3, "{found}");
    }

    #[test]
    fn threads_lose_next_to_nothing() {
        let table = Table::new(8);
        let (threads, many) = (4, 40_000);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let table = &table;
                scope.spawn(move || {
                    for number in (1..many).map(|number| number * threads + thread) {
                        table.insert(key(number), number as Index);
                    }
                });
            }
        });
        let all = threads..many * threads;
        let lost = all.filter(|&number| !finds(&table, number)).count();
        assert!(lost < (many * threads) as usize / 50, "{lost}");
    }
}
