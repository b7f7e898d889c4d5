//! Adds the lines that engines expected to the game as variations.
//!
//! Where a line departs from the game, it becomes a variation; where it departs from an existing
//! variation, it extends that variation's tree. Only the next few plies of the line are kept,
//! because moves deep in a line have been searched less.

use shakmaty::san::SanPlus;
use shakmaty::{Chess, Position};

use crate::data::legal::Legal;
use crate::data::record::{Eval, Node};
use crate::encode::policy_index;

/// Maximum nesting depth of variations.
pub(super) const MAX_DEPTH: usize = 255;

/// Number of plies of a line to keep after it departs from the existing moves.
const NEW_PLIES: usize = 8;

/// A line that an engine expected at a move of its game.
pub(super) struct Expected {
    /// Number of plies before that move.
    pub ply: usize,
    /// The position before the move.
    pub position: Chess,
    /// The engine's score.
    pub eval: Eval,
    /// The line in SAN, starting with the move itself.
    pub line: String,
}

/// A move in a variation.
struct Branch {
    ordinal: u8,
    eval: Option<Eval>,
    /// The next moves, as indices into [`Tree`]'s `branches`.
    next: Vec<usize>,
}

/// A game's moves, and the alternatives to each move.
struct Tree<'a> {
    own: &'a [Node],
    /// The alternatives to each move of the game, as indices into `branches`.
    alternatives: Vec<Vec<usize>>,
    branches: Vec<Branch>,
}

/// Returns the nodes of a game without variations, after adding `lines` as variations. Lines whose
/// first move differs from the game's are ignored. A line ends before an illegal move.
pub(super) fn weave(own: &[Node], lines: &[Expected]) -> Vec<Node> {
    let mut tree = Tree {
        own,
        alternatives: vec![Vec::new(); own.len()],
        branches: Vec::new(),
    };
    for line in lines {
        tree.insert(line);
    }
    let mut nodes = Vec::with_capacity(own.len() + tree.branches.len());
    for (node, alternatives) in own.iter().zip(&tree.alternatives) {
        nodes.push(*node);
        for &branch in alternatives {
            tree.write(branch, 1, &mut nodes);
        }
    }
    nodes
}

impl Tree<'_> {
    fn insert(&mut self, expected: &Expected) {
        let mut position = expected.position.clone();
        let mut left: Option<usize> = None;
        let (mut depth, mut fresh) = (0, 0);
        for (ply, word) in (expected.ply..).zip(expected.line.split_ascii_whitespace()) {
            let Some(ordinal) = play(&mut position, word) else {
                return;
            };
            let siblings = match left {
                // A variation must replace a move of the game, so it cannot start after the last
                // move.
                None => match self.own.get(ply) {
                    Some(node) if node.ordinal == ordinal => continue,
                    Some(_) if ply > expected.ply => &self.alternatives[ply],
                    _ => return,
                },
                Some(branch) => &self.branches[branch].next,
            };
            let known = siblings
                .iter()
                .position(|&branch| self.branches[branch].ordinal == ordinal);
            let place = known.unwrap_or(siblings.len());
            // The first child of a branch continues its line.
            depth += usize::from(left.is_none() || place > 0);
            if depth > MAX_DEPTH {
                return;
            }
            left = Some(match known {
                Some(place) => siblings[place],
                None if fresh == NEW_PLIES => return,
                None => self.add(left, ply, ordinal, (fresh == 0).then_some(expected.eval)),
            });
            fresh += usize::from(known.is_none());
        }
    }

    /// Adds a move after `parent` or, without a parent, as an alternative to the game's move at
    /// `ply`.
    fn add(&mut self, parent: Option<usize>, ply: usize, ordinal: u8, eval: Option<Eval>) -> usize {
        let branch = self.branches.len();
        self.branches.push(Branch {
            ordinal,
            eval,
            next: Vec::new(),
        });
        match parent {
            Some(parent) => self.branches[parent].next.push(branch),
            None => self.alternatives[ply].push(branch),
        }
        branch
    }

    /// Writes the line that starts with `branch`, including its own branches.
    fn write(&self, branch: usize, depth: u8, nodes: &mut Vec<Node>) {
        let (mut at, mut starts_line) = (branch, true);
        let mut others: &[usize] = &[];
        loop {
            let branch = &self.branches[at];
            nodes.push(Node {
                ordinal: branch.ordinal,
                depth,
                starts_line,
                eval: branch.eval,
            });
            for &other in others {
                self.write(other, depth + 1, nodes);
            }
            let Some((&first, rest)) = branch.next.split_first() else {
                return;
            };
            (at, starts_line, others) = (first, false, rest);
        }
    }
}

/// Plays a move in SAN; returns its index among the legal moves.
fn play(position: &mut Chess, word: &str) -> Option<u8> {
    let san: SanPlus = word.parse().ok()?;
    let mv = san.san.to_move(position).ok()?;
    let turn = position.turn();
    let legal = Legal::of(&position.legal_moves(), turn);
    let ordinal = u8::try_from(legal.ordinal(policy_index(mv, turn))).ok()?;
    position.play_unchecked(mv);
    Some(ordinal)
}
