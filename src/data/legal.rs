//! The legal moves of a position as a set of policy indices.

use shakmaty::{Color, Move};

use crate::encode::{POLICY_SIZE, policy_index};

/// Number of 64-bit words in a [`Legal`].
pub const LEGAL_WORDS: usize = POLICY_SIZE.div_ceil(64);

/// A set of policy indices, stored as one bit each: index `i` is bit `i % 64` of word `i / 64`.
///
/// Records identify a move by its ordinal among the legal moves in the order of policy indices, so
/// that files do not depend on a move generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Legal([u64; LEGAL_WORDS]);

impl Legal {
    /// Returns the set of `moves`, all of which are moves of `turn`.
    pub fn of(moves: &[Move], turn: Color) -> Legal {
        moves.iter().map(|&mv| policy_index(mv, turn)).collect()
    }

    /// Returns the set with these words; see [`Legal`].
    pub(crate) fn from_words(words: [u64; LEGAL_WORDS]) -> Legal {
        Legal(words)
    }

    /// Returns the lowest index that is in exactly one of the two sets.
    pub(crate) fn difference(&self, other: &Legal) -> Option<u16> {
        let words = self
            .0
            .iter()
            .zip(other.0)
            .map(|(ours, theirs)| ours ^ theirs);
        let (place, word) = (0..).zip(words).find(|&(_, word)| word != 0)?;
        Some(place * 64 + word.trailing_zeros() as u16)
    }

    /// Returns whether `index` is in the set.
    pub fn contains(&self, index: u16) -> bool {
        self.0
            .get(usize::from(index / 64))
            .is_some_and(|word| word >> (index % 64) & 1 != 0)
    }

    /// Returns the number of indices in the set.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the number of indices in the set that are smaller than `index`.
    pub fn ordinal(&self, index: u16) -> usize {
        let (word, bit) = (usize::from(index / 64), index % 64);
        let below: u32 = self.0[..word].iter().map(|word| word.count_ones()).sum();
        let within = self.0[word] & ((1 << bit) - 1);
        (below + within.count_ones()) as usize
    }

    /// Returns the index that exceeds exactly `ordinal` indices of the set.
    pub fn nth(&self, ordinal: usize) -> Option<u16> {
        let mut left = ordinal;
        for (place, &word) in self.0.iter().enumerate() {
            let here = word.count_ones() as usize;
            if left < here {
                let lowest = (0..left).fold(word, |word, _| word & (word - 1));
                return Some((place * 64) as u16 + lowest.trailing_zeros() as u16);
            }
            left -= here;
        }
        None
    }

    /// Returns the indices in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().enumerate().flat_map(|(place, &word)| {
            std::iter::successors((word != 0).then_some(word), |&word| {
                let rest = word & (word - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |word| (place * 64) as u16 + word.trailing_zeros() as u16)
        })
    }
}

impl FromIterator<u16> for Legal {
    /// Ignores indices past the end of the policy.
    fn from_iter<I: IntoIterator<Item = u16>>(indices: I) -> Legal {
        let mut set = Legal::default();
        for index in indices {
            if let Some(word) = set.0.get_mut(usize::from(index / 64)) {
                *word |= 1 << (index % 64);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set(
            indices in proptest::collection::btree_set(0..POLICY_SIZE as u16, 0..200),
        ) {
            let set: Legal = indices.iter().copied().collect();
            prop_assert_eq!(set.count(), indices.len());
            prop_assert!(set.iter().eq(indices.iter().copied()));
            for (ordinal, &index) in indices.iter().enumerate() {
                prop_assert!(set.contains(index));
                prop_assert_eq!(set.ordinal(index), ordinal);
                prop_assert_eq!(set.nth(ordinal), Some(index));
            }
            prop_assert_eq!(set.nth(indices.len()), None);
        }
    }
}
