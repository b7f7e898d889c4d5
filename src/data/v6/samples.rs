//! Converts a chunk to samples.

use crate::data::label::short_term;
use crate::data::sample::Sample;
use crate::encode::PLANES_PER_BOARD;

use super::record::{DELETED, VALUE_TOLERANCE};
use super::{Chunk, V6Error, V6Record};

/// Number of piece planes per board, for both sides.
const PIECES: usize = PLANES_PER_BOARD - 1;

impl Chunk {
    /// Converts the records to samples and passes these to `emit`. Records that are marked for
    /// deletion are skipped. `keep` is called once for each remaining record, and returns whether
    /// to convert it. Unusable records are passed to `bad`; if `bad` returns an error, reading
    /// stops.
    ///
    /// If no record of the chunk has a short-term value, the short-term values are computed from
    /// the root values, see [`crate::data::label`].
    ///
    /// # Errors
    /// The error that `bad` returns.
    pub fn samples<E>(
        &self,
        mut keep: impl FnMut() -> bool,
        mut emit: impl FnMut(Sample),
        mut bad: impl FnMut(V6Error) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut records = Vec::new();
        let mut reader = self.records();
        loop {
            let offset = reader.offset;
            match reader.next() {
                Some(Ok(record)) => records.push(Place {
                    offset,
                    record,
                    is_cut_off: false,
                }),
                Some(Err(error)) => {
                    if let Some(last) = records.last_mut() {
                        last.is_cut_off = true;
                    }
                    bad(error)?;
                }
                None => break,
            }
        }
        let short_terms = short_terms(&records);
        for (place, at) in records.into_iter().enumerate() {
            let Place { offset, record, .. } = at;
            if record.invariance_info & DELETED != 0 || !keep() {
                continue;
            }
            match record.sample() {
                Ok(sample) => emit(Sample {
                    short_term: match &short_terms {
                        Some(short_terms) => Some(short_terms[place]).filter(|q| q.is_finite()),
                        None => sample.short_term,
                    },
                    ..sample
                }),
                Err(fault) => bad(V6Error::new(&self.path, offset, fault))?,
            }
        }
        Ok(())
    }
}

/// A record and its place in the chunk.
struct Place<'a> {
    offset: u64,
    record: &'a V6Record,
    /// Whether the next record cannot be read.
    is_cut_off: bool,
}

/// Returns short-term values for a chunk, or `None` if a record already has one. The value after a
/// game's last position is the result of the game. Where the next record's history does not contain
/// the record's board, a new game starts.
fn short_terms(records: &[Place]) -> Option<Vec<f32>> {
    if records.iter().any(|place| place.record.q_st != 0.0) {
        return None;
    }
    // A damaged record must not affect the valid records before it.
    let is_sound = |record: &V6Record| record.root_q.abs() <= 1.0 + VALUE_TOLERANCE;
    let mut values = vec![0.0; records.len()];
    for place in (0..records.len()).rev() {
        let Place {
            record, is_cut_off, ..
        } = records[place];
        let follows = match records.get(place + 1) {
            _ if is_cut_off => None,
            Some(next) if follows(record, next.record) => {
                Some(values[place + 1]).filter(|_| is_sound(next.record))
            }
            _ => record.result().map(|result| -result.q()),
        };
        values[place] = short_term(record.root_q, follows);
    }
    Some(values)
}

/// Returns whether `next` is the position after a move from `record`'s position. This is the case
/// if the previous board in the history of `next` is `record`'s board from the other side's
/// perspective.
pub(super) fn follows(record: &V6Record, next: &V6Record) -> bool {
    let (before, after) = (record.planes, next.planes);
    let board = &before[..PIECES];
    let previous = &after[PLANES_PER_BOARD..][..PIECES];
    let turned = (0..PIECES).map(|plane| board[(plane + PIECES / 2) % PIECES].swap_bytes());
    turned.eq(previous.iter().copied())
}
