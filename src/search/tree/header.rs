//! The header of a node: its stage, edges and proven outcome in one word (word 3, see
//! [`super::node`]).

use super::arena::Index;
use crate::tablebase::Verdict;

/// The distance in plies to the end of a won or lost game with no known mate, because the result is
/// from a tablebase or the mate is too far away to count. Any mate is shorter, so the winner
/// prefers it and the loser avoids it.
pub(crate) const OUT_OF_SIGHT: u8 = u8::MAX;

/// A node's stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The node has no moves or priors, and its next visit evaluates it.
    New,
    /// A thread is evaluating the node.
    Pending,
    /// The node's moves have priors.
    Expanded,
    /// The node's memory is free.
    Free,
}

/// A position's proven outcome, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Unknown,
    Win,
    Draw,
    Loss,
}

impl Outcome {
    /// Returns the value for the side that moved here.
    pub(crate) fn value(self) -> f64 {
        match self {
            Outcome::Win => -1.0,
            Outcome::Draw | Outcome::Unknown => 0.0,
            Outcome::Loss => 1.0,
        }
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        match verdict {
            Verdict::Win => Outcome::Win,
            Verdict::Draw => Outcome::Draw,
            Verdict::Loss => Outcome::Loss,
        }
    }
}

/// A packed header: the block (32 bits), then the edges, legal moves, state, and plies to the
/// proven end (8 bits each).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeHeader(pub(super) u64);

const LOCK: u64 = 1 << 52;
const CORRECTED: u64 = 1 << 53;

impl NodeHeader {
    /// Returns the node's block with its evaluation, priors and edge directory, once the node is
    /// expanded (see [`super::block`]).
    pub(crate) fn block(self) -> Index {
        self.0 as Index
    }

    /// Returns the number of edges.
    pub(crate) fn count(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff
    }

    /// Returns the number of legal moves that have priors.
    pub(crate) fn moves(self) -> u8 {
        (self.0 >> 40) as u8
    }

    pub(crate) fn stage(self) -> Stage {
        match (self.0 >> 48) & 3 {
            0 => Stage::New,
            1 => Stage::Pending,
            2 => Stage::Expanded,
            _ => Stage::Free,
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        match (self.0 >> 50) & 3 {
            0 => Outcome::Unknown,
            1 => Outcome::Win,
            2 => Outcome::Draw,
            _ => Outcome::Loss,
        }
    }

    /// Returns the number of plies to the proven end, or [`OUT_OF_SIGHT`] if it is unknown.
    pub(crate) fn plies(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// Returns the number of plies to the mate, if one is proven.
    pub(crate) fn mate(self) -> Option<u8> {
        let decided = matches!(self.outcome(), Outcome::Win | Outcome::Loss);
        (decided && self.plies() < OUT_OF_SIGHT).then_some(self.plies())
    }

    /// Returns whether a thread is adding an edge.
    pub(crate) fn locked(self) -> bool {
        self.0 & LOCK != 0
    }

    pub(crate) fn lock(self) -> NodeHeader {
        NodeHeader(self.0 | LOCK)
    }

    pub(crate) fn unlock(self) -> NodeHeader {
        NodeHeader(self.0 & !LOCK)
    }

    /// Returns whether the priors have been [corrected](super::correct).
    pub(crate) fn is_corrected(self) -> bool {
        self.0 & CORRECTED != 0
    }

    pub(crate) fn with_corrected(self) -> NodeHeader {
        NodeHeader(self.0 | CORRECTED)
    }

    pub(crate) fn without_corrected(self) -> NodeHeader {
        NodeHeader(self.0 & !CORRECTED)
    }

    pub(crate) fn with_block(self, block: Index) -> NodeHeader {
        NodeHeader(self.0 & !0xffff_ffff | u64::from(block))
    }

    pub(crate) fn with_count(self, count: u32) -> NodeHeader {
        NodeHeader(self.0 & !(0xff << 32) | u64::from(count) << 32)
    }

    pub(crate) fn with_moves(self, moves: u8) -> NodeHeader {
        NodeHeader(self.0 & !(0xff << 40) | u64::from(moves) << 40)
    }

    pub(crate) fn with_stage(self, stage: Stage) -> NodeHeader {
        NodeHeader(self.0 & !(3 << 48) | (stage as u64) << 48)
    }

    pub(crate) fn with_outcome(self, outcome: Outcome, plies: u8) -> NodeHeader {
        let kept = self.0 & !(3 << 50 | 0xff << 56);
        NodeHeader(kept | (outcome as u64) << 50 | u64::from(plies) << 56)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_parts_apart() {
        let header = NodeHeader(0)
            .with_block(0xdead_beef)
            .with_count(218)
            .with_moves(219)
            .with_stage(Stage::Free)
            .with_outcome(Outcome::Loss, 200)
            .lock();
        assert_eq!((header.block(), header.count()), (0xdead_beef, 218));
        assert_eq!((header.moves(), header.plies()), (219, 200));
        assert_eq!(header.stage(), Stage::Free);
        assert_eq!(header.outcome(), Outcome::Loss);
        assert!(header.locked() && !header.unlock().locked());
        let other = header
            .with_stage(Stage::Pending)
            .with_outcome(Outcome::Win, 1);
        assert_eq!(
            (other.stage(), other.outcome()),
            (Stage::Pending, Outcome::Win)
        );
        assert_eq!((other.block(), other.moves()), (0xdead_beef, 219));
    }

    #[test]
    fn only_a_mate_in_sight_is_one() {
        let mate = |outcome, plies| NodeHeader::default().with_outcome(outcome, plies).mate();
        assert_eq!(mate(Outcome::Loss, 0), Some(0));
        assert_eq!(mate(Outcome::Win, 3), Some(3));
        assert_eq!(mate(Outcome::Win, OUT_OF_SIGHT), None);
        assert_eq!(mate(Outcome::Loss, OUT_OF_SIGHT), None);
        assert_eq!(mate(Outcome::Draw, 0), None);
    }
}
