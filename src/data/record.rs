//! The stored form of a game: its first position, its result, and its tree of moves with the
//! engines' scores.

use crate::chess::Ratings;
use sha2::{Digest, Sha256};
use shakmaty::Color;

use super::legal::Legal;
use super::sample::{Policy, Wdl};

/// An engine's score, from White's perspective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Eval {
    /// Hundredths of a pawn.
    Centipawns(i16),
    /// Mate in this number of moves; negative if Black gives mate.
    Mate(i16),
}

impl Eval {
    /// Returns the same score from the other side's view.
    #[must_use]
    pub fn reversed(self) -> Eval {
        match self {
            Eval::Centipawns(centipawns) => Eval::Centipawns(centipawns.saturating_neg()),
            Eval::Mate(moves) => Eval::Mate(moves.saturating_neg()),
        }
    }
}

/// One move in a game's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The move's index among the legal moves in the order of policy indices, starting at 0.
    pub ordinal: u8,
    /// Nesting depth of the variation; 0 on the main line.
    pub depth: u8,
    /// Whether the move starts a variation. If so, it is an alternative to the latest move at the
    /// depth above; otherwise, it continues the latest line at its own depth.
    pub starts_line: bool,
    /// The score written after the move.
    pub eval: Option<Eval>,
}

/// The result of searching a position, from the perspective of the side to move, or
/// [`UNSEARCHED`](SearchResult::UNSEARCHED).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct SearchResult {
    /// The ordinals of moves among the legal moves, in ascending order, with their relative shares
    /// of the policy. Moves without a share are omitted.
    pub policy: Vec<(u8, u16)>,
    /// The root's value, W − L, in 32767ths.
    pub root_q: i16,
    /// The best move's value, in 32767ths.
    pub best_q: i16,
}

impl SearchResult {
    const Q_UNIT: f32 = i16::MAX as f32;

    /// Marks a position of a searched game that was not searched, or was searched too little to
    /// learn from.
    pub const UNSEARCHED: SearchResult = SearchResult {
        policy: Vec::new(),
        root_q: i16::MIN,
        best_q: i16::MIN,
    };

    /// Rounds a search result to the stored precision. `policy` contains the moves' ordinals among
    /// the legal moves, in ascending order, with their shares; values are W − L.
    pub fn new(
        policy: impl IntoIterator<Item = (u8, f32)>,
        root_q: f32,
        best_q: f32,
    ) -> SearchResult {
        let share = |share: f32| (share * f32::from(u16::MAX)).round() as u16;
        let policy = policy.into_iter().map(|(place, part)| (place, share(part)));
        // A cast from float to integer saturates.
        let q = |q: f32| ((q * SearchResult::Q_UNIT).round() as i16).max(-i16::MAX);
        SearchResult {
            policy: policy.filter(|&(_, share)| share > 0).collect(),
            root_q: q(root_q),
            best_q: q(best_q),
        }
    }

    /// Returns whether the position was searched.
    pub fn is_searched(&self) -> bool {
        // The stored values of searched positions are at least −32767.
        self.root_q != i16::MIN
    }

    /// Returns the root's value in −1…1.
    pub fn root_q(&self) -> f32 {
        (f32::from(self.root_q) / SearchResult::Q_UNIT).max(-1.0)
    }

    /// Returns the best move's value in −1…1.
    pub fn best_q(&self) -> f32 {
        (f32::from(self.best_q) / SearchResult::Q_UNIT).max(-1.0)
    }

    /// Returns the policy as a distribution over policy indices, or `None` if a move is not in
    /// `legal`.
    pub(crate) fn distribution(&self, legal: &Legal) -> Option<Policy> {
        let total: u32 = self.policy.iter().map(|&(_, share)| u32::from(share)).sum();
        let entries = self.policy.iter().map(|&(place, share)| {
            let index = legal.nth(place.into())?;
            Some((index, f32::from(share) / total as f32))
        });
        let entries: Vec<_> = entries.collect::<Option<_>>()?;
        Some(match entries.is_empty() {
            true => Policy::Unknown,
            false => Policy::Distribution(entries),
        })
    }
}

/// A game.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Record {
    /// The FEN of the first position; `None` stands for the initial position of chess.
    pub fen: Option<String>,
    /// The result for White, if any.
    pub result: Option<Wdl>,
    /// The players' ratings.
    pub ratings: Ratings,
    /// The moves in PGN order: each move is followed by the variations that replace it, and then by
    /// the rest of its line.
    pub nodes: Vec<Node>,
    /// Search results for the positions of the main line, starting with the first. There may be
    /// fewer results than moves, and some may be [unsearched](SearchResult::UNSEARCHED).
    pub searches: Vec<SearchResult>,
    /// Expected number of plies after the last move, if the game was not played out.
    pub unplayed: u16,
}

/// A node's place in its game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of plies from the game's start to the position before the move.
    pub(crate) ply: usize,
    /// Number of plies since the variation left the main line, 0 at its first move; `None` on the
    /// main line.
    pub(crate) variation_ply: Option<usize>,
    /// On the main line, the move's score. In a variation, the latest score in the variation up to
    /// and including this move.
    pub(crate) eval: Option<Eval>,
}

/// The error for a record whose nodes do not form a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("move {node} of the game's tree continues a line that does not exist")]
pub struct StrayNode {
    /// The node's index in the record, from 0.
    pub node: usize,
}

impl Record {
    /// Returns a hash of the first position and the main line, ignoring variations and scores.
    pub fn hash(&self) -> u64 {
        let mut digest = Sha256::new();
        digest.update(self.fen.as_deref().unwrap_or_default());
        digest.update([0]);
        for node in self.main_line() {
            digest.update([node.ordinal]);
        }
        let digest = digest.finalize();
        u64::from_le_bytes(std::array::from_fn(|byte| digest[byte]))
    }

    /// Returns the moves of the main line.
    pub fn main_line(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.depth == 0)
    }

    /// Returns the search result for the main-line position after a number of plies, if any.
    pub fn search(&self, ply: usize) -> Option<&SearchResult> {
        let search = self.searches.get(ply);
        search.filter(|search| search.is_searched())
    }

    /// Returns the side that makes the first move.
    pub fn first_mover(&self) -> Color {
        let turn = self
            .fen
            .as_deref()
            .and_then(|fen| fen.split_whitespace().nth(1));
        Color::from_white(turn != Some("b"))
    }

    /// Returns the place of each node.
    ///
    /// # Errors
    /// [`StrayNode`] if the depths do not describe a tree.
    pub(crate) fn places(&self) -> Result<Vec<Place>, StrayNode> {
        // The latest node at each depth, with the latest score in its line before it.
        let mut latest: Vec<(Place, Option<Eval>)> = Vec::new();
        let mut places = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let depth = usize::from(node.depth);
            let stray = StrayNode { node: index };
            let (ply, variation_ply, inherited) = if node.starts_line {
                let parent = depth.checked_sub(1).ok_or(stray)?;
                let &(parent, before) = latest.get(parent).ok_or(stray)?;
                (parent.ply, Some(parent.variation_ply.unwrap_or(0)), before)
            } else {
                match latest.get(depth) {
                    Some((line, _)) => {
                        let variation_ply = line.variation_ply.map(|plies| plies + 1);
                        (line.ply + 1, variation_ply, line.eval.filter(|_| depth > 0))
                    }
                    None if index == 0 && depth == 0 => (0, None, None),
                    None => return Err(stray),
                }
            };
            let eval = node.eval.or(inherited);
            let place = Place {
                ply,
                variation_ply,
                eval,
            };
            latest.truncate(depth);
            latest.push((place, inherited));
            places.push(place);
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(depth: u8, starts_line: bool, centipawns: Option<i16>) -> Node {
        Node {
            ordinal: 0,
            depth,
            starts_line,
            eval: centipawns.map(Eval::Centipawns),
        }
    }

    #[test]
    fn scores_are_inherited_along_variations_only() {
        // 1. a {1} (1. b {2} b (1... c c) c) 1... d 2. e
        let record = Record {
            nodes: vec![
                node(0, false, Some(1)),
                node(1, true, Some(2)),
                node(1, false, None),
                node(2, true, None),
                node(2, false, Some(5)),
                node(1, false, None),
                node(0, false, None),
                node(0, false, None),
            ],
            ..Record::default()
        };
        let places = record.places().unwrap();
        let plies: Vec<usize> = places.iter().map(|place| place.ply).collect();
        assert_eq!(plies, [0, 0, 1, 1, 2, 2, 1, 2]);
        let variation_ply: Vec<_> = places.iter().map(|place| place.variation_ply).collect();
        let expected = [
            None,
            Some(0),
            Some(1),
            Some(1),
            Some(2),
            Some(2),
            None,
            None,
        ];
        assert_eq!(variation_ply, expected);
        let evals: Vec<_> = places
            .iter()
            .map(|place| match place.eval {
                Some(Eval::Centipawns(centipawns)) => centipawns,
                _ => 0,
            })
            .collect();
        assert_eq!(evals, [1, 2, 2, 2, 5, 2, 0, 0]);
    }

    #[test]
    fn nodes_without_a_line_are_refused() {
        for nodes in [
            vec![node(0, true, None)],
            vec![node(1, false, None)],
            vec![node(0, false, None), node(2, true, None)],
            vec![node(0, false, None), node(1, false, None)],
        ] {
            let record = Record {
                nodes,
                ..Record::default()
            };
            assert!(record.places().is_err());
        }
    }
}
