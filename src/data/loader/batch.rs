//! Samples side by side, ready to become tensors.

use crate::data::legal::Legal;
use crate::data::sample::{Policy, Sample, Wdl};
use crate::encode::Input;

use super::{Cursor, RankShard};
use std::ops::Range;

/// Policy targets as a sparse matrix [B, 1858] in coordinates: entry `i` is
/// `probability[i]` at (`row[i]`, `index[i]`). Rows ascend; a row without
/// entries has no policy target, one with a single entry is one-hot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyTargets {
    /// The sample in the batch.
    pub row: Vec<i64>,
    /// The policy index.
    pub index: Vec<i64>,
    /// The target probability.
    pub probability: Vec<f32>,
}

/// B samples as columns, everything from the mover's view.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The positions with the players' ratings; as tensor [B, WIDTH] of i64, see
    /// [`Batch::input_words`].
    pub inputs: Vec<Input>,
    /// The legal moves; as tensor [B, 30] of i64, see [`Batch::legal_words`].
    pub legal: Vec<Legal>,
    /// The policy targets.
    pub policy: PolicyTargets,
    /// The game's result: 0 win, 1 draw, 2 loss, −1 where it is no target.
    pub result: Vec<i64>,
    /// Value W − L in −1…1; NaN where it is no target.
    pub q: Vec<f32>,
    /// Short-term value in −1…1; NaN where it is no target.
    pub short_term: Vec<f32>,
    /// Plies to the end of the game; NaN where it is no target.
    pub moves_left: Vec<f32>,
    /// How much each sample counts.
    pub weight: Vec<f32>,
    /// Where the next batch begins.
    pub next: Cursor,
    /// Number of samples in the whole batch over all ranks and replicas.
    pub global_batch: usize,
    /// Index of this part's first sample in the whole batch.
    pub first: usize,
}

impl Batch {
    /// Number of samples in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether it holds no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The inputs' words, row after row.
    #[must_use]
    pub fn input_words(&self) -> &[i64] {
        bytemuck::cast_slice(&self.inputs)
    }

    /// The words of the sets of legal moves, row after row: index `i` is bit
    /// `i % 64`, counted from the lowest, of a row's word `i / 64`.
    #[must_use]
    pub fn legal_words(&self) -> &[i64] {
        bytemuck::cast_slice(&self.legal)
    }

    /// Splits the batch into at most `count` consecutive parts, as even as
    /// possible; no part is empty unless the batch is.
    #[must_use]
    pub fn split(self, count: usize) -> Vec<Batch> {
        let world_size = count.min(self.len()).max(1);
        if world_size == 1 {
            return vec![self];
        }
        let shards = (0..world_size).map(|rank| RankShard { rank, world_size });
        shards
            .map(|shard| self.part(shard.part(0..self.len())))
            .collect()
    }

    /// The samples at `places`.
    fn part(&self, places: Range<usize>) -> Batch {
        let rows = &self.policy.row;
        let entry = |place: usize| rows.partition_point(|&row| row < place as i64);
        let entries = entry(places.start)..entry(places.end);
        let own_row = |row: &i64| row - places.start as i64;
        Batch {
            inputs: self.inputs[places.clone()].to_vec(),
            legal: self.legal[places.clone()].to_vec(),
            policy: PolicyTargets {
                row: rows[entries.clone()].iter().map(own_row).collect(),
                index: self.policy.index[entries.clone()].to_vec(),
                probability: self.policy.probability[entries].to_vec(),
            },
            result: self.result[places.clone()].to_vec(),
            q: self.q[places.clone()].to_vec(),
            short_term: self.short_term[places.clone()].to_vec(),
            moves_left: self.moves_left[places.clone()].to_vec(),
            weight: self.weight[places.clone()].to_vec(),
            next: self.next,
            global_batch: self.global_batch,
            first: self.first + places.start,
        }
    }

    /// Samples as columns.
    pub(super) fn gather<'a>(
        samples: impl ExactSizeIterator<Item = &'a Sample>,
        next: Cursor,
    ) -> Batch {
        let size = samples.len();
        let mut batch = Batch {
            inputs: Vec::with_capacity(size),
            legal: Vec::with_capacity(size),
            policy: PolicyTargets::default(),
            result: Vec::with_capacity(size),
            q: Vec::with_capacity(size),
            short_term: Vec::with_capacity(size),
            moves_left: Vec::with_capacity(size),
            weight: Vec::with_capacity(size),
            next,
            global_batch: size,
            first: 0,
        };
        for sample in samples {
            batch.push(sample);
        }
        batch
    }

    fn push(&mut self, sample: &Sample) {
        let row = self.inputs.len() as i64;
        let mut target = |index: u16, probability| {
            self.policy.row.push(row);
            self.policy.index.push(index.into());
            self.policy.probability.push(probability);
        };
        match &sample.policy {
            Policy::Unknown => {}
            Policy::Move(index) => target(*index, 1.0),
            Policy::Distribution(moves) => {
                for &(index, probability) in moves {
                    target(index, probability);
                }
            }
        }
        self.inputs.push(sample.input);
        self.legal.push(sample.legal);
        self.result.push(match sample.result {
            Some(Wdl::Win) => 0,
            Some(Wdl::Draw) => 1,
            Some(Wdl::Loss) => 2,
            None => -1,
        });
        self.q.push(sample.q.unwrap_or(f32::NAN));
        self.short_term.push(sample.short_term.unwrap_or(f32::NAN));
        self.moves_left.push(sample.moves_left.unwrap_or(f32::NAN));
        self.weight.push(sample.weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;

    /// Samples that are told apart by their targets; the policy of the third is
    /// unknown, that of the others has one move, two moves and so on.
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
                let rows = part.policy.row.iter();
                policy.row.extend(rows.map(|row| row + part.first as i64));
                policy.index.extend(part.policy.index);
                policy.probability.extend(part.policy.probability);
                q.extend(part.q);
            }
            assert_eq!((policy, q), (whole.policy, whole.q));
        }
    }
}
