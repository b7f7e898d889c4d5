//! Which blocks make up each group of an epoch, and the random streams.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest, Sha256};

use crate::data::record::Record;
use crate::data::shard::Shard;

use super::{Sampling, Split};

/// What a random stream decides.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The order of an epoch's blocks.
    Blocks,
    /// Which samples of a block an epoch uses.
    Draw,
    /// The order of a group's samples.
    Samples,
}

/// One block of one of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId {
    pub(super) shard: usize,
    pub(super) block: usize,
}

/// The open shards and how to go through them.
pub(super) struct Plan {
    pub(super) sampling: Sampling,
    pub(super) shards: Vec<Shard>,
    split: Split,
}

impl Plan {
    pub(super) fn new(sampling: Sampling, split: Split, shards: Vec<Shard>) -> Plan {
        Plan {
            sampling,
            shards,
            split,
        }
    }

    pub(super) fn split(&self) -> Split {
        self.split
    }

    /// About how many samples an epoch gives.
    pub(super) fn samples(&self) -> u64 {
        let samples: f64 = self.blocks().map(|block| self.expected(block)).sum();
        samples as u64
    }

    /// An epoch's groups; every block is in one of them. Groups are of about
    /// equal size.
    pub(super) fn groups(&self, epoch: u64) -> Vec<Vec<BlockId>> {
        let mut blocks: Vec<BlockId> = self.blocks().collect();
        if self.split == Split::Train {
            blocks.shuffle(&mut self.random(Purpose::Blocks, [epoch, 0, 0]));
        }
        let total: f64 = blocks.iter().map(|&block| self.expected(block)).sum();
        let count = (total / self.sampling.group as f64).round().max(1.0);
        let mut groups: Vec<Vec<BlockId>> = vec![Vec::new()];
        let mut so_far = 0.0;
        for block in blocks {
            if so_far > total / count * groups.len() as f64 {
                groups.push(Vec::new());
            }
            so_far += self.expected(block);
            groups.last_mut().expect("there is one").push(block);
        }
        groups
    }

    /// Whether a game belongs to the split.
    pub(super) fn admits(&self, record: &Record) -> bool {
        let place = record.hash() as f64 / 2f64.powi(64);
        let is_validation = place < self.sampling.validation;
        is_validation == (self.split == Split::Validation)
    }

    /// The random stream for one purpose at one place.
    pub(super) fn random(&self, purpose: Purpose, place: [u64; 3]) -> Xoshiro256PlusPlus {
        let mut digest = Sha256::new();
        digest.update([purpose as u8]);
        digest.update(self.sampling.seed.to_le_bytes());
        for number in place {
            digest.update(number.to_le_bytes());
        }
        Xoshiro256PlusPlus::from_seed(digest.finalize().into())
    }

    fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.shards.iter().enumerate().flat_map(|(shard, open)| {
            (0..open.blocks().len()).map(move |block| BlockId { shard, block })
        })
    }

    /// The samples that a block gives on average.
    pub(super) fn expected(&self, id: BlockId) -> f64 {
        let samples = self.shards[id.shard].blocks()[id.block].samples as f64;
        let share = match self.split {
            Split::Train => 1.0 - self.sampling.validation,
            Split::Validation => self.sampling.validation,
        };
        samples * share * self.sampling.shards[id.shard].rate
    }
}
