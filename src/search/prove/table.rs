//! A fixed-size table of the proof and disproof numbers of positions.

use super::ProofNumbers;
use bytemuck::Zeroable;

/// Number of entries per cluster.
const CLUSTER: usize = 4;

/// The entry of one position.
#[derive(Clone, Copy, Zeroable)]
struct Entry {
    /// The whole key, because a proof must not rest on another position's entry.
    key: u64,
    pn: u32,
    dn: u32,
    /// Number of nodes spent below the position; entries with fewer nodes are replaced first.
    work: u32,
    plies: u8,
    provisional: bool,
    /// The search that wrote a provisional entry.
    search: u8,
    /// [`Table::clear`] frees all entries of other generations; 0 marks an empty entry.
    generation: u8,
}

pub(super) struct Table {
    entries: Vec<Entry>,
    generation: u8,
    search: u8,
}

impl Table {
    /// Creates a table of at most this many bytes. The system commits the memory as the table
    /// fills.
    pub(super) fn new(bytes: usize) -> Table {
        let clusters = (bytes / size_of::<[Entry; CLUSTER]>()).max(1);
        Table {
            entries: bytemuck::zeroed_vec(clusters * CLUSTER),
            generation: 1,
            search: 0,
        }
    }

    /// Clears the table.
    pub(super) fn clear(&mut self) {
        self.search = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.entries.fill(Entry::zeroed());
            self.generation = 1;
        }
    }

    /// Begins a search from another root. Provisional entries of the last search, which depend on
    /// its paths, no longer apply.
    pub(super) fn begin_search(&mut self) {
        self.search = self.search.wrapping_add(1);
    }

    fn cluster(&self, key: u64) -> usize {
        let clusters = self.entries.len() / CLUSTER;
        // The high half of the product maps the key evenly onto the clusters.
        ((u128::from(key) * clusters as u128) >> 64) as usize * CLUSTER
    }

    pub(super) fn get(&self, key: u64) -> Option<ProofNumbers> {
        let first = self.cluster(key);
        let entry = self.entries[first..first + CLUSTER]
            .iter()
            .find(|entry| entry.key == key && entry.generation == self.generation)?;
        let believed = !entry.provisional || entry.search == self.search;
        believed.then_some(ProofNumbers {
            pn: entry.pn,
            dn: entry.dn,
            plies: entry.plies,
            provisional: entry.provisional,
        })
    }

    /// Stores the result of `work` nodes searched below a position.
    pub(super) fn set(&mut self, key: u64, numbers: ProofNumbers, work: u64) {
        let first = self.cluster(key);
        let generation = self.generation;
        let cluster = &mut self.entries[first..first + CLUSTER];
        let place = cluster
            .iter()
            .position(|entry| entry.key == key && entry.generation == generation);
        let spent = place.map_or(0, |place| cluster[place].work);
        let place = place.unwrap_or_else(|| {
            let worth = |entry: &Entry| match entry.generation == generation {
                true => u64::from(entry.work) + 1,
                false => 0,
            };
            (0..CLUSTER)
                .min_by_key(|&place| worth(&cluster[place]))
                .unwrap_or(0)
        });
        cluster[place] = Entry {
            key,
            pn: numbers.pn,
            dn: numbers.dn,
            work: spent.saturating_add(work.try_into().unwrap_or(u32::MAX)),
            plies: numbers.plies,
            provisional: numbers.provisional,
            search: self.search,
            generation,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pn: u32) -> ProofNumbers {
        ProofNumbers {
            pn,
            dn: 7,
            plies: 0,
            provisional: false,
        }
    }

    #[test]
    fn the_least_work_is_replaced() {
        let mut table = Table::new(0);
        for (key, work) in [(1, 10), (2, 5), (3, 10), (4, 10), (5, 10)] {
            table.set(key, numbers(key as u32), work);
        }
        let kept: Vec<u64> = (1..=5).filter(|&key| table.get(key).is_some()).collect();
        assert_eq!(kept, [1, 3, 4, 5]);
        assert_eq!(table.get(3), Some(numbers(3)));
    }

    #[test]
    fn a_cleared_table_knows_nothing() {
        let mut table = Table::new(1 << 10);
        for _ in 0..600 {
            assert_eq!(table.get(9), None);
            table.set(9, numbers(1), 1);
            assert_eq!(table.get(9), Some(numbers(1)));
            table.clear();
        }
    }

    #[test]
    fn assumptions_end_with_their_search() {
        let mut table = Table::new(1 << 10);
        let supposed = ProofNumbers {
            provisional: true,
            ..numbers(1)
        };
        table.set(9, supposed, 1);
        table.set(10, numbers(2), 1);
        assert_eq!(table.get(9), Some(supposed));
        table.begin_search();
        assert_eq!((table.get(9), table.get(10)), (None, Some(numbers(2))));
    }
}
