//! Groups of samples that are shuffled together.

use std::ops::Range;

use rand::Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::data::examples::Examples;

use super::faults::Faults;
use super::plan::{BlockId, Plan, Purpose};
use super::{Cursor, LoaderError};

/// The decoded samples of one group.
pub(super) struct Group<S> {
    blocks: Vec<Vec<S>>,
    /// The block and the index of every sample, in shuffled order. The samples themselves, of a
    /// kilobyte each, are not moved.
    order: Vec<(u32, u32)>,
    epoch: u64,
    number: u64,
    /// Whether this is the last group of its epoch.
    pub(super) is_last: bool,
}

impl<S: Send> Group<S> {
    /// Decodes `blocks` on the threads of the current pool. The order of the samples does not
    /// depend on thread timing.
    pub(super) fn decode<E: Examples<Example = S>>(
        plan: &Plan<E>,
        faults: &Faults,
        epoch: u64,
        number: u64,
        is_last: bool,
        blocks: &[BlockId],
    ) -> Result<Group<S>, LoaderError> {
        plan.announce(blocks);
        // Threads take the blocks one at a time, in the order in which these were announced.
        let mut decoded = (0..)
            .zip(blocks)
            .par_bridge()
            .map(|(place, &block)| Ok((place, decode_block(plan, faults, epoch, block)?)))
            .collect::<Result<Vec<(usize, _)>, LoaderError>>()?;
        decoded.sort_unstable_by_key(|&(place, _)| place);
        let blocks: Vec<Vec<S>> = decoded.into_iter().map(|(_, samples)| samples).collect();
        let mut order: Vec<(u32, u32)> = (0..)
            .zip(&blocks)
            .flat_map(|(block, samples)| (0..samples.len() as u32).map(move |at| (block, at)))
            .collect();
        order.shuffle(&mut plan.random(Purpose::Samples, [epoch, number, 0, 0]));
        Ok(Group {
            blocks,
            order,
            epoch,
            number,
            is_last,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of samples in each block, in order.
    pub(super) fn found(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().map(Vec::len)
    }

    /// Returns the samples at these places in the shuffled order.
    pub(super) fn samples(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = &S> {
        let order = &self.order[places];
        order
            .iter()
            .map(|&(block, at)| &self.blocks[block as usize][at as usize])
    }

    /// Returns the cursor after the group's first `offset` samples.
    pub(super) fn cursor(&self, offset: usize) -> Cursor {
        Cursor {
            epoch: self.epoch,
            group: self.number,
            offset: offset as u64,
        }
    }

    /// Returns the cursor after the group.
    pub(super) fn end(&self) -> Cursor {
        let (epoch, group) = match self.is_last {
            true => (self.epoch + 1, 0),
            false => (self.epoch, self.number + 1),
        };
        Cursor {
            epoch,
            group,
            offset: 0,
        }
    }
}

/// Returns the samples of a block that belong to the split and to the slice, and that are selected
/// in this epoch.
fn decode_block<E: Examples>(
    plan: &Plan<E>,
    faults: &Faults,
    epoch: u64,
    id: BlockId,
) -> Result<Vec<E::Example>, LoaderError> {
    let share = plan.share(id);
    let place = [id.source, id.block, id.pass].map(u64::from);
    // All slices of a block use the same random stream, so each sample is in exactly one slice.
    let mut random = plan.random(Purpose::Draw, [epoch, place[0], place[1], place[2]]);
    let slices = plan.slices();
    // Reserve slightly more than the average, because reallocation would move megabytes.
    let expected = plan.expected(id) as usize;
    let mut samples = Vec::with_capacity(expected + expected / 16);
    plan.source(id).decode(
        id.block as usize,
        &plan.examples,
        |game| plan.admits(game),
        || {
            let is_drawn = share >= 1.0 || random.random::<f64>() < share;
            let slice = match slices {
                1 => 0,
                _ => random.random_range(0..slices),
            };
            is_drawn && slice == id.slice
        },
        |sample| samples.push(sample),
        |fault| faults.note(fault),
    )?;
    Ok(samples)
}
