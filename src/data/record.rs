//! A game as files hold it: where it started, how it ended, and its tree of
//! moves with the scores that engines gave them.

use crate::chess::Ratings;
use sha2::{Digest, Sha256};
use shakmaty::Color;

use super::legal::Legal;
use super::sample::{Policy, Wdl};

/// An engine's score, from White's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Eval {
    /// Hundredths of a pawn.
    Centipawns(i16),
    /// Mate in so many moves; negative where Black mates.
    Mate(i16),
}

impl Eval {
    /// The same score from the other side's view.
    #[must_use]
    pub fn reversed(self) -> Eval {
        match self {
            Eval::Centipawns(centipawns) => Eval::Centipawns(centipawns.saturating_neg()),
            Eval::Mate(moves) => Eval::Mate(moves.saturating_neg()),
        }
    }
}

/// One move of a game's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The move's place among the legal moves in the order of their policy
    /// indices, from 0.
    pub ordinal: u8,
    /// How deep in variations the move stands; 0 on the game's own line.
    pub depth: u8,
    /// Whether a variation starts here: the move is an alternative to the
    /// latest one of the depth above. Other moves continue the latest line of
    /// their depth.
    pub starts_line: bool,
    /// The score written after the move.
    pub eval: Option<Eval>,
}

/// What a search said of a position, from the mover's view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Search {
    /// Shares of the policy, in proportion to each other, by the moves' places
    /// among the legal ones; the places ascend, and moves without a share are
    /// left out.
    pub policy: Vec<(u8, u16)>,
    /// The root's value, W − L, in 32767ths.
    pub root_q: i16,
    /// The best move's value in the same.
    pub best_q: i16,
}

impl Search {
    const Q_UNIT: f32 = i16::MAX as f32;

    /// A search's findings, rounded to what is kept of them: `policy` by the
    /// moves' places among the legal ones, ascending, and values W − L.
    #[must_use]
    pub fn new(policy: impl IntoIterator<Item = (u8, f32)>, root_q: f32, best_q: f32) -> Search {
        let share = |share: f32| (share * f32::from(u16::MAX)).round() as u16;
        let policy = policy.into_iter().map(|(place, part)| (place, share(part)));
        // A cast from float to integer saturates.
        let q = |q: f32| (q * Search::Q_UNIT).round() as i16;
        Search {
            policy: policy.filter(|&(_, share)| share > 0).collect(),
            root_q: q(root_q),
            best_q: q(best_q),
        }
    }

    /// The root's value in −1…1.
    #[must_use]
    pub fn root_q(&self) -> f32 {
        (f32::from(self.root_q) / Search::Q_UNIT).max(-1.0)
    }

    /// The best move's value in −1…1.
    #[must_use]
    pub fn best_q(&self) -> f32 {
        (f32::from(self.best_q) / Search::Q_UNIT).max(-1.0)
    }

    /// The policy by policy indices, if all its moves are among `legal`.
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
    /// The FEN of the first position; `None` is the initial position of chess.
    pub fen: Option<String>,
    /// The result for White, if the game came to one.
    pub result: Option<Wdl>,
    /// The players' ratings.
    pub ratings: Ratings,
    /// The moves in the order of a PGN: each is followed by the alternatives
    /// to it, then by the rest of its own line.
    pub nodes: Vec<Node>,
    /// What searches said of the positions before the first moves of the own
    /// line, of as many of them as there are searches.
    pub searches: Vec<Search>,
    /// Plies that the game was expected to last for after its last move, if it
    /// was not played out.
    pub unplayed: u16,
}

/// Where a node stands in its game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Plies from the game's start to the position before the move.
    pub(crate) ply: usize,
    /// Plies from where the variation leaves the game's own line to the
    /// position before the move; `None` on the own line.
    pub(crate) off_line: Option<usize>,
    /// In a variation, the last score on the way, that of the move included;
    /// on the own line, the move's own score.
    pub(crate) eval: Option<Eval>,
}

/// The nodes of a record do not form a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("move {node} of the game's tree continues a line that does not exist")]
pub struct StrayNode {
    /// The node's place in the record, from 0.
    pub node: usize,
}

impl Record {
    /// A number that games with the same start and the same moves share, and
    /// hardly any others. Variations and scores do not count.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut digest = Sha256::new();
        digest.update(self.fen.as_deref().unwrap_or_default());
        digest.update([0]);
        for node in self.own_line() {
            digest.update([node.ordinal]);
        }
        let digest = digest.finalize();
        u64::from_le_bytes(std::array::from_fn(|byte| digest[byte]))
    }

    /// The moves that were played.
    pub fn own_line(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.depth == 0)
    }

    /// Who makes the first move.
    #[must_use]
    pub fn first_mover(&self) -> Color {
        let turn = self
            .fen
            .as_deref()
            .and_then(|fen| fen.split_whitespace().nth(1));
        Color::from_white(turn != Some("b"))
    }

    /// Where each node stands.
    ///
    /// # Errors
    /// [`StrayNode`] if the depths do not describe a tree.
    pub(crate) fn places(&self) -> Result<Vec<Place>, StrayNode> {
        // The latest node of each depth, with the score on the way before it.
        let mut latest: Vec<(Place, Option<Eval>)> = Vec::new();
        let mut places = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let depth = usize::from(node.depth);
            let stray = StrayNode { node: index };
            let (ply, off_line, inherited) = if node.starts_line {
                let parent = depth.checked_sub(1).ok_or(stray)?;
                let &(parent, before) = latest.get(parent).ok_or(stray)?;
                (parent.ply, Some(parent.off_line.unwrap_or(0)), before)
            } else {
                match latest.get(depth) {
                    Some((line, _)) => {
                        let off_line = line.off_line.map(|plies| plies + 1);
                        (line.ply + 1, off_line, line.eval.filter(|_| depth > 0))
                    }
                    None if index == 0 && depth == 0 => (0, None, None),
                    None => return Err(stray),
                }
            };
            let eval = node.eval.or(inherited);
            let place = Place {
                ply,
                off_line,
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
        let off_line: Vec<_> = places.iter().map(|place| place.off_line).collect();
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
        assert_eq!(off_line, expected);
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
