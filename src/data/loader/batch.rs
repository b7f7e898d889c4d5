//! A batch of examples, or one rank's or replica's part of the whole batch.

use super::{Cursor, RankShard};
use crate::data::examples::{Columns, PositionColumns};

/// A batch of B examples.
#[derive(Clone, Debug)]
pub struct Batch<C = PositionColumns> {
    /// The examples.
    pub columns: C,
    /// The cursor of the next batch.
    pub next: Cursor,
    /// Number of samples in the whole batch over all ranks and replicas.
    pub global_batch: usize,
    /// Index of this part's first sample in the whole batch.
    pub first: usize,
}

impl<C: Columns> Batch<C> {
    /// Returns the number of samples in the batch.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether the batch contains no samples.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Splits the batch into at most `count` consecutive parts of nearly equal size. A part is
    /// empty only if the batch is.
    #[must_use]
    pub fn split(self, count: usize) -> Vec<Batch<C>> {
        let world_size = count.min(self.len()).max(1);
        if world_size == 1 {
            return vec![self];
        }
        let parts = (0..world_size).map(|rank| {
            let places = RankShard { rank, world_size }.part(0..self.len());
            Batch {
                first: self.first + places.start,
                columns: self.columns.part(places),
                ..self
            }
        });
        parts.collect()
    }

    /// Gathers examples into columns.
    pub(super) fn gather<'a>(
        examples: impl ExactSizeIterator<Item = &'a C::Example>,
        next: Cursor,
    ) -> Batch<C>
    where
        C::Example: 'a,
    {
        let size = examples.len();
        let mut columns = C::default();
        for example in examples {
            columns.push(example);
        }
        Batch {
            columns,
            next,
            global_batch: size,
            first: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::data::examples::PolicyTargets;
    use crate::data::legal::Legal;
    use crate::data::sample::{Policy, Sample, Wdl};
    use crate::encode::Input;

    /// Returns samples with distinct targets. The third sample has no policy; the policy targets of
    /// the others have one move, two moves and so on.
    fn batch(count: usize) -> Batch {
        let sample = |number: usize| Sample {
            input: Input::encode(&Game::default()),
            legal: Legal::default(),
            policy: match number {
                2 => Policy::Unknown,
                _ => Policy::Distribution(vec![(number as u16, 0.5); number + 1]),
            },
            result: Some(Wdl::Draw),
            q: Some(number as f32),
            short_term: None,
            moves_left: None,
            weight: 1.0,
        };
        let samples: Vec<Sample> = (0..count).map(sample).collect();
        Batch::gather(samples.iter(), Cursor::default())
    }

    #[test]
    fn parts_are_the_batch() {
        for (count, parts, sizes) in [
            (7, 1, vec![7]),
            (7, 3, vec![2, 2, 3]),
            (4, 4, vec![1; 4]),
            (2, 5, vec![1; 2]),
            (0, 2, vec![0]),
        ] {
            let (whole, parts) = (batch(count), batch(count).split(parts));
            let found: Vec<usize> = parts.iter().map(Batch::len).collect();
            assert_eq!(found, sizes);
            let mut policy = PolicyTargets::default();
            let mut q = Vec::new();
            for part in parts {
                assert_eq!((part.first, part.global_batch), (q.len(), count));
                let (first, part) = (part.first, part.columns);
                let rows = part.policy.row.iter();
                policy.row.extend(rows.map(|row| row + first as i64));
                policy.index.extend(part.policy.index);
                policy.probability.extend(part.policy.probability);
                q.extend(part.q);
            }
            assert_eq!((policy, q), (whole.columns.policy, whole.columns.q));
        }
    }
}
