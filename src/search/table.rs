//! The table of positions: where the node of a position is, so that all ways to
//! it lead there.
//!
//! An entry is a word: 32 bits of index, 24 of the key, 8 of the generation. The
//! node itself keeps the whole key; what the table says is a hint to be checked
//! against it. A lost entry costs a second node, nothing more.

use super::arena::Index;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Entries that a key may be in: a cache line of them.
const BUCKET: usize = 8;

pub(crate) struct Table {
    entries: Box<[AtomicU64]>,
    /// Entries of other generations are none; 0 belongs to none.
    generation: u8,
}

impl Table {
    /// A table of so many MiB, less where the system's address space ends.
    pub(crate) fn new(mebibytes: usize) -> Table {
        let mut length = mebibytes.max(1).saturating_mul(1 << 17);
        let entries = loop {
            match bytemuck::allocation::try_zeroed_slice_box(length) {
                Ok(entries) => break entries,
                Err(()) => length /= 2,
            }
        };
        Table {
            entries,
            generation: 1,
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.generation = 1;
            for entry in &mut self.entries {
                *entry.get_mut() = 0;
            }
        }
    }

    /// The node of this key for which `is_it` holds.
    pub(crate) fn find(&self, key: u64, is_it: impl Fn(Index) -> bool) -> Option<Index> {
        let tag = self.tag(key);
        self.bucket(key).iter().find_map(|entry| {
            let entry = entry.load(Relaxed);
            (entry >> 32 == tag && is_it(entry as Index)).then_some(entry as Index)
        })
    }

    /// Remembers the node of a key, in place of another one if need be.
    pub(crate) fn insert(&self, key: u64, node: Index) {
        let bucket = self.bucket(key);
        let current = |entry: &AtomicU64| entry.load(Relaxed) >> 56 == u64::from(self.generation);
        let free = bucket.iter().position(|entry| !current(entry));
        // Bits that neither bucket nor tag are made of choose the one to go.
        let place = free.unwrap_or((key >> 29) as usize % BUCKET);
        bucket[place].store(self.tag(key) << 32 | u64::from(node), Relaxed);
    }

    /// Forgets the node.
    pub(crate) fn remove(&self, key: u64, node: Index) {
        let wanted = self.tag(key) << 32 | u64::from(node);
        for entry in self.bucket(key) {
            if entry.load(Relaxed) == wanted {
                entry.store(0, Relaxed);
            }
        }
    }

    fn tag(&self, key: u64) -> u64 {
        u64::from(self.generation) << 24 | key & 0xff_ffff
    }

    fn bucket(&self, key: u64) -> &[AtomicU64] {
        let buckets = (self.entries.len() / BUCKET) as u64;
        let number = ((key >> 32) * buckets) >> 32;
        let first = number as usize * BUCKET;
        &self.entries[first..first + BUCKET]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_found_until_it_is_forgotten() {
        let mut table = Table::new(1);
        let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for number in 1..10_000 {
            table.insert(key(number), number as Index);
        }
        let find = |table: &Table, number: u64| {
            table
                .find(key(number), |node| node == number as Index)
                .is_some()
        };
        assert!((1..10_000).all(|number| find(&table, number)));
        assert!(table.find(key(5), |_| false).is_none());
        table.remove(key(5), 6);
        assert!(find(&table, 5));
        table.remove(key(5), 5);
        assert!(!find(&table, 5) && find(&table, 6));
        for _ in 0..300 {
            table.clear();
            assert!(!find(&table, 6));
        }
    }

    #[test]
    fn a_full_table_forgets_some() {
        let table = Table::new(1);
        let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let many = 4 << 17;
        (1..many).for_each(|number| table.insert(key(number), number as Index));
        let found = (1..many)
            .filter(|&number| {
                table
                    .find(key(number), |node| node == number as Index)
                    .is_some()
            })
            .count();
        assert!(found > 100_000 && found < many as usize / 3, "{found}");
    }
}
