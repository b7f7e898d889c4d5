//! Determines the blocks in each group of an epoch, and provides the random streams.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest, Sha256};

use crate::data::examples::Examples;
use crate::data::held_out::is_held_out;

use super::source::OpenSource;
use super::{Sampling, Split};

/// The purpose of a random stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The order of an epoch's blocks.
    Blocks,
    /// The selection of a block's samples for an epoch.
    Draw,
    /// The order of a group's samples.
    Samples,
}

/// One visit to a block of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId {
    pub(super) source: u32,
    pub(super) block: u32,
    /// Index of the pass over the source; a source with a rate above 1 has several passes per
    /// epoch.
    pub(super) pass: u32,
    /// Index of the slice of the block's samples, below [`Plan::slices`].
    pub(super) slice: u32,
}

/// The open sources and the order in which an epoch visits them.
pub(super) struct Plan<E> {
    sampling: Sampling,
    pub(super) examples: E,
    sources: Vec<OpenSource>,
    pub(super) split: Split,
}

impl<E: Examples> Plan<E> {
    pub(super) fn new(
        sampling: Sampling,
        split: Split,
        sources: Vec<OpenSource>,
        examples: E,
    ) -> Plan<E> {
        Plan {
            sampling,
            examples,
            sources,
            split,
        }
    }

    /// Returns the approximate number of samples per epoch.
    pub(super) fn samples(&self) -> u64 {
        let samples: f64 = self.blocks().map(|block| self.expected(block)).sum();
        (samples * f64::from(self.slices())).round() as u64
    }

    /// Returns whether the sources contain no samples, for either split.
    pub(super) fn is_empty(&self) -> bool {
        let holds = |source: &OpenSource| {
            let mut blocks = 0..source.blocks();
            blocks.any(|block| source.expected(block, &self.examples) > 0.0)
        };
        !self.sources.iter().any(holds)
    }

    /// Returns the groups of an epoch, which are of about equal size. Every slice of every block is
    /// in exactly one group. The first slices of all blocks come before all second slices, and so
    /// on.
    pub(super) fn groups(&self, epoch: u64) -> Vec<Vec<BlockId>> {
        let mut blocks: Vec<BlockId> = Vec::new();
        for slice in 0..self.slices() {
            let begin = blocks.len();
            blocks.extend(self.blocks().map(|block| BlockId { slice, ..block }));
            let place = [epoch, slice.into(), 0, 0];
            blocks[begin..].shuffle(&mut self.random(Purpose::Blocks, place));
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

    /// Announces that these blocks will soon be decoded, in this order.
    pub(super) fn announce(&self, blocks: &[BlockId]) {
        for &id in blocks {
            self.source(id).announce(id.block as usize);
        }
    }

    /// Returns whether a game belongs to the split, given the hash of its moves.
    pub(super) fn admits(&self, game: u64) -> bool {
        is_held_out(game, self.sampling.validation) == (self.split == Split::Validation)
    }

    /// Returns the random stream for a purpose at a place in the order.
    pub(super) fn random(&self, purpose: Purpose, place: [u64; 4]) -> Xoshiro256PlusPlus {
        let mut digest = Sha256::new();
        digest.update([purpose as u8]);
        digest.update(self.sampling.seed.to_le_bytes());
        for number in place {
            digest.update(number.to_le_bytes());
        }
        Xoshiro256PlusPlus::from_seed(digest.finalize().into())
    }

    pub(super) fn source(&self, id: BlockId) -> &OpenSource {
        &self.sources[id.source as usize]
    }

    /// Returns the share of a block's samples that a pass uses: 1, except in the last pass, for
    /// which the fractional part of the rate remains. Validation never uses a sample twice.
    pub(super) fn share(&self, id: BlockId) -> f64 {
        (self.rate(self.source(id)) - f64::from(id.pass)).min(1.0)
    }

    /// Returns the number of slices of each block's samples.
    pub(super) fn slices(&self) -> u32 {
        match self.split {
            Split::Train => self.sampling.spread,
            Split::Validation => 1,
        }
    }

    fn rate(&self, source: &OpenSource) -> f64 {
        match self.split {
            Split::Train => source.rate,
            Split::Validation => source.rate.min(1.0),
        }
    }

    /// Returns the first slice of every pass over every block that may contain games of the split.
    fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        (0..).zip(&self.sources).flat_map(move |(number, source)| {
            let passes = self.rate(source).ceil() as u32;
            let blocks = (0..source.blocks() as u32).filter(|&block| {
                let game = source.game(block as usize);
                game.is_none_or(|game| self.admits(game))
            });
            blocks.flat_map(move |block| {
                (0..passes).map(move |pass| BlockId {
                    source: number,
                    block,
                    pass,
                    slice: 0,
                })
            })
        })
    }

    /// Returns the average number of samples that a visit to a block gives.
    pub(super) fn expected(&self, id: BlockId) -> f64 {
        let block = id.block as usize;
        let source = self.source(id);
        let of_split = match (source.game(block), self.split) {
            (Some(_), _) => 1.0,
            (None, Split::Train) => 1.0 - self.sampling.validation,
            (None, Split::Validation) => self.sampling.validation,
        };
        let examples = source.expected(block, &self.examples);
        examples * of_split * self.share(id) / f64::from(self.slices())
    }
}
