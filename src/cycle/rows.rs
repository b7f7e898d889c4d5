//! Counts the rows in a store's shards.

use super::error::CycleError;
use crate::data::shard::{Shard, ShardError};
use crate::scoped_threads::side_by_side;
use crate::store::{ShardName, Shards, Store};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Number of shards opened concurrently. Cloud stores respond slowly, but handle many concurrent
/// requests.
const AT_ONCE: usize = 16;

/// The known shards with their numbers of rows. Because a store's listings may lag, a shard remains
/// known even if a later listing lacks it.
#[derive(Debug, Default)]
pub struct Rows {
    found: Shards,
    shards: BTreeMap<ShardName, u64>,
    /// Listed shards that could not be read yet.
    waiting: Vec<ShardName>,
}

impl Rows {
    /// Looks for new shards. Damaged shards are reported and count as empty. Unreachable shards are
    /// reported and tried again in the next call.
    ///
    /// # Errors
    /// [`CycleError::Store`] if the store cannot be reached.
    pub fn look(&mut self, store: &Store) -> Result<(), CycleError> {
        let new = self.found.look(store)?;
        let tried = self.waiting.len();
        self.waiting.extend(new);
        let names = std::mem::take(&mut self.waiting);
        for (place, (name, rows)) in names.iter().zip(open(store, &names)).enumerate() {
            match rows {
                Ok(rows) => {
                    self.shards.insert(name.clone(), rows);
                }
                Err(error @ ShardError::Io { .. }) => {
                    if place >= tried {
                        tracing::warn!("left out for now: {error}");
                    }
                    self.waiting.push(name.clone());
                }
                Err(error) => {
                    tracing::warn!("left out: {error}");
                    self.shards.insert(name.clone(), 0);
                }
            }
        }
        Ok(())
    }

    /// Returns the total number of rows.
    pub fn total(&self) -> u64 {
        self.shards.values().sum()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Returns the newest shards that together contain at least `size` rows, or all shards if there
    /// are fewer rows, from old to new, and their number of rows.
    pub fn newest(&self, size: u64) -> (Vec<&ShardName>, u64) {
        let mut rows = 0;
        let mut newest = Vec::new();
        for (name, own) in self.by_age().into_iter().rev() {
            if rows >= size {
                break;
            }
            newest.push(name);
            rows += own;
        }
        newest.reverse();
        (newest, rows)
    }

    /// Returns the shards that contain rows, from old to new. Many workers write the shards of a
    /// generation concurrently and at different speeds. If a worker wrote `n` shards in a
    /// generation, its `k`-th shard, counted from 0, is assigned the time `(k + ½) / n`. A window
    /// that starts within a generation therefore contains the same share of every worker's shards.
    fn by_age<'a>(&'a self) -> Vec<(&'a ShardName, u64)> {
        let shards = self.shards.iter().filter(|&(_, &rows)| rows > 0);
        let shards: Vec<(&ShardName, u64)> = shards.map(|(name, &rows)| (name, rows)).collect();
        let is_beside = |a: &(&ShardName, u64), b: &(&ShardName, u64)| {
            (a.0.generation, &a.0.worker) == (b.0.generation, &b.0.worker)
        };
        let timed = shards.chunk_by(is_beside).flat_map(|own| {
            let time = |place: usize| (place as f64 + 0.5) / own.len() as f64;
            let own = own.iter().enumerate();
            own.map(move |(place, &shard)| (time(place), shard))
        });
        let mut timed: Vec<(f64, (&ShardName, u64))> = timed.collect();
        // Ties are broken by the random suffix of the worker's name, which mixes actors and
        // reanalysers; the start of the name is the kind of worker.
        let mark = |name: &'a ShardName| name.worker.as_str().bytes().rev();
        timed.sort_by(|(time, (a, _)), (other, (b, _))| {
            let generations = a.generation.cmp(&b.generation);
            let times = generations.then_with(|| time.total_cmp(other));
            times.then_with(|| mark(a).cmp(mark(b)))
        });
        timed.into_iter().map(|(_, shard)| shard).collect()
    }
}

/// Returns the number of rows in each shard.
fn open(store: &Store, names: &[ShardName]) -> Vec<Result<u64, ShardError>> {
    let count = |name: &ShardName| {
        let shard = Shard::open(&store.path(&name.name()))?;
        Ok(shard.blocks().iter().map(|block| block.samples).sum())
    };
    let count = &count;
    let parts = names.chunks(names.len().div_ceil(AT_ONCE).max(1));
    let counted = side_by_side(
        parts.map(|names| move || Ok::<_, Infallible>(names.iter().map(count).collect::<Vec<_>>())),
    );
    let Ok(counted) = counted;
    counted.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(generation: u64, worker: &str, serial: u64) -> ShardName {
        ShardName {
            generation,
            worker: worker.parse().unwrap(),
            serial,
        }
    }

    fn of(shards: impl IntoIterator<Item = (ShardName, u64)>) -> Rows {
        Rows {
            shards: shards.into_iter().collect(),
            ..Rows::default()
        }
    }

    #[test]
    fn the_newest_shards_fill_the_window() {
        let rows = of([
            (shard(0, "b", 0), 100),
            (shard(1, "a", 0), 50),
            (shard(1, "b", 0), 0),
            (shard(2, "a", 0), 30),
        ]);
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

    #[test]
    fn the_window_cuts_slow_and_fast_workers_alike() {
        let of_worker =
            |worker: &'static str, count| (0..count).map(move |it| (shard(0, worker, it), 10));
        let workers = [("actor-1", 8), ("reanalyser-2", 80), ("actor-3", 16)];
        let rows = of(workers
            .into_iter()
            .flat_map(|(name, count)| of_worker(name, count)));
        let (newest, size) = rows.newest(rows.total() / 4);
        assert_eq!(size, 260);
        for (worker, count) in workers {
            let own = newest.iter().filter(|it| it.worker.as_str() == worker);
            let serials: Vec<u64> = own.map(|it| it.serial).collect();
            let last: Vec<u64> = (3 * count / 4..count).collect();
            assert_eq!(serials, last, "{worker}");
        }
    }

    #[test]
    fn workers_of_one_shard_each_are_cut_by_chance() {
        let marks = [0x81, 0x13, 0x72, 0x24, 0x65, 0x56];
        let names = ["actor", "reanalyser"].map(|kind| {
            let kind: crate::store::WorkerName = kind.parse().unwrap();
            marks.map(|mark| kind.marked(mark + u32::from(kind.as_str() == "actor")))
        });
        let shards = names.into_iter().flatten().map(|worker| {
            let shard = ShardName {
                generation: 1,
                worker,
                serial: 0,
            };
            (shard, 10)
        });
        let rows = of(shards);
        let (newest, _) = rows.newest(60);
        let actors = newest
            .iter()
            .filter(|it| it.worker.as_str().starts_with("actor"));
        assert_eq!(actors.count(), 3);
    }

    /// Writes a shard that contains one game with five positions.
    #[cfg(unix)]
    fn write(path: &std::path::Path) {
        use crate::data::shard::{Block, ShardWriter};
        let record = crate::data::pgn::parse_game(b"1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0").unwrap();
        let header = super::super::config::header("x");
        let mut writer = ShardWriter::create(path, &header).unwrap();
        writer.append(&Block::new(&[record], 5).unwrap()).unwrap();
        writer.finish().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn damaged_shards_are_empty_and_unreachable_ones_wait() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let names = [shard(0, "a", 0), shard(0, "a", 1), shard(0, "b", 0)];
        let [good, damaged, away] = names.each_ref().map(|name| store.path(&name.name()));
        store.put(&names[1].name(), b"no shard").unwrap();
        write(&good);
        // The shard is listed, but opening it fails.
        std::fs::create_dir(folder.path().join("aside")).unwrap();
        let aside = folder.path().join("aside/b.shard");
        std::os::unix::fs::symlink(&aside, &away).unwrap();
        let mut rows = Rows::default();
        for _ in 0..2 {
            rows.look(&store).unwrap();
            assert_eq!((rows.total(), rows.shards()), (5, 2));
        }
        write(&aside);
        std::fs::remove_file(&damaged).unwrap();
        for _ in 0..2 {
            rows.look(&store).unwrap();
            assert_eq!((rows.total(), rows.shards()), (10, 3));
        }
        assert_eq!(rows.newest(10).0, [&names[0], &names[2]]);
    }
}
