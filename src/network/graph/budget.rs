//! How much a network may compute: what a hostile graph could ask for is told
//! before it is done.

/// Numbers that may lie in memory at once, for the two positions on which a
/// network is tried: 1 GiB of them. BT4 needs 10 million.
const MOST_NUMBERS: i64 = 1 << 28;
/// Multiply–accumulates for these: seconds of work. BT4 needs 25 billion.
const MOST_WORK: i64 = 1 << 38;
/// Multiply–accumulates that cost as much as reading and writing a number.
const NUMBER: i64 = 64;

/// What is in use, and what has been done.
#[derive(Debug, Default)]
pub(super) struct Budget {
    is_unlimited: bool,
    numbers: i64,
    work: i64,
    macs: i64,
}

/// A refusal.
#[derive(Debug, thiserror::Error)]
#[error("it needs too much memory or time")]
pub(super) struct Exhausted;

impl Budget {
    /// A budget for graphs that have kept within one.
    pub fn unlimited() -> Budget {
        Budget {
            is_unlimited: true,
            ..Budget::default()
        }
    }

    /// Makes room for a tensor of this shape, or refuses.
    pub fn reserve(&mut self, shape: &[i64]) -> Result<(), Exhausted> {
        let numbers = product(shape).ok_or(Exhausted)?;
        self.numbers = self.numbers.checked_add(numbers).ok_or(Exhausted)?;
        let work = numbers.checked_mul(NUMBER).ok_or(Exhausted)?;
        self.work = self.work.checked_add(work).ok_or(Exhausted)?;
        self.check()
    }

    /// Gives room back.
    pub fn release(&mut self, shape: &[i64]) {
        self.numbers -= product(shape).unwrap_or_default();
    }

    /// Counts the sums of `terms` products that make a tensor of this shape.
    pub fn multiply(&mut self, shape: &[i64], terms: i64) -> Result<(), Exhausted> {
        let numbers = product(shape).ok_or(Exhausted)?;
        let macs = numbers.checked_mul(terms).ok_or(Exhausted)?;
        self.macs = self.macs.checked_add(macs).ok_or(Exhausted)?;
        self.work = self.work.checked_add(macs).ok_or(Exhausted)?;
        self.check()
    }

    /// The multiply–accumulates that were counted.
    pub fn macs(&self) -> i64 {
        self.macs
    }

    fn check(&self) -> Result<(), Exhausted> {
        let is_within = self.numbers <= MOST_NUMBERS && self.work <= MOST_WORK;
        match is_within || self.is_unlimited {
            true => Ok(()),
            false => Err(Exhausted),
        }
    }
}

fn product(shape: &[i64]) -> Option<i64> {
    shape.iter().try_fold(1i64, |product, &size| match size {
        negative if negative < 0 => None,
        size => product.checked_mul(size),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_network_needs_is_refused() {
        let mut budget = Budget::default();
        budget.reserve(&[1 << 20, 100]).unwrap();
        budget.multiply(&[2, 64, 1024], 1024).unwrap();
        assert_eq!(budget.macs(), 2 * 64 * 1024 * 1024);
        assert!(budget.reserve(&[1 << 20, 200]).is_err());
        let mut budget = Budget::default();
        for shape in [&[i64::MAX, 2][..], &[1 << 40], &[-1]] {
            assert!(budget.reserve(shape).is_err(), "{shape:?}");
        }
        assert!(Budget::default().multiply(&[1 << 36], 8).is_err());
    }
}
