//! The line of a proven mate, and its length.
//!
//! The table stores only bounds: the number of plies known when each position was proven. Since
//! then, mates may have been shortened and entries replaced. The whole proof is therefore walked by
//! the rules, with one move for the attacker and every move for the defender. The result is the
//! length that the attacker's moves guarantee, and the line on which the defender holds out that
//! long.

use super::children::played;
use super::{Goal, ProofNumbers, Prover, judge};
use crate::chess::key_of;
use shakmaty::{Chess, Move, Position};
use std::collections::HashMap;

/// The state of a proof walk.
struct Walk<'a> {
    goal: &'a Goal<'a>,
    /// The value of [`Prover::nodes`] at which to stop.
    last: u64,
    /// The number of plies to the mate and the next move, for each walked position; `None` for
    /// positions on the path.
    walked: HashMap<u64, Option<(u32, Option<Move>)>>,
}

impl Prover {
    /// Returns the line to a proven mate on which the defender holds out longest. Entries lost from
    /// the table are proven again. Returns `None` if nothing is proven, if the walk takes more
    /// nodes than `goal` allows (each tried move counts as one node), or if [`Goal::halt`] stops
    /// it.
    pub fn line(&mut self, position: &Chess, goal: &Goal<'_>) -> Option<Vec<Move>> {
        let mut walk = Walk {
            goal,
            last: self.nodes.saturating_add(goal.nodes),
            walked: HashMap::new(),
        };
        self.asked_again = self.nodes;
        self.walk(&mut walk, position, 0)?;
        let mut position = position.clone();
        let mut line = Vec::new();
        let context = self.context(goal);
        let key = |position: &Chess| context.key(position, key_of(position));
        while let Some(Some((_, Some(mv)))) = walk.walked.get(&key(&position)) {
            line.push(*mv);
            position.play_unchecked(*mv);
        }
        Some(line)
    }

    /// Returns the number of plies to the mate from here, or `None` if it could not be proven.
    fn walk(&mut self, walk: &mut Walk<'_>, position: &Chess, ply: u32) -> Option<u32> {
        let zobrist = key_of(position);
        let key = self.context(walk.goal).key(position, zobrist);
        if let Some(known) = walk.walked.get(&key) {
            return known.map(|(plies, _)| plies);
        }
        if self.is_over(walk.goal, walk.last) || walk.goal.draws.contains(&zobrist) {
            return None;
        }
        walk.walked.insert(key, None);
        let attacks = position.turn() == walk.goal.attacker;
        let moves = match walk.goal.moves {
            Some(moves) if ply == 0 => moves.iter().copied().collect(),
            _ => position.legal_moves(),
        };
        let found = if attacks {
            let mut next = self.shortest(walk.goal, position, &moves);
            if next.is_none() {
                let again = Goal {
                    nodes: walk.last.saturating_sub(self.nodes),
                    moves: walk.goal.moves.filter(|_| ply == 0),
                    ..*walk.goal
                };
                self.prove(position, &again);
                next = self.shortest(walk.goal, position, &moves);
            }
            let (mv, after) = next?;
            (self.walk(walk, &after, ply + 1)? + 1, Some(mv))
        } else if moves.is_empty() && position.is_check() {
            (0, None)
        } else {
            let mut longest = None;
            for (mv, after) in played(position, &moves, false, walk.goal.attack) {
                self.nodes += 1;
                let plies = self.walk(walk, &after, ply + 1)? + 1;
                if longest.is_none_or(|(most, _)| plies > most) {
                    longest = Some((plies, Some(mv)));
                }
            }
            longest?
        };
        walk.walked.insert(key, Some(found));
        Some(found.0)
    }

    /// Returns the attacker's move that leads to the shortest known mate, and the position after
    /// it.
    fn shortest(
        &mut self,
        goal: &Goal<'_>,
        position: &Chess,
        moves: &[Move],
    ) -> Option<(Move, Chess)> {
        let mut shortest: Option<(u32, Move, Chess)> = None;
        for (mv, after) in played(position, moves, true, goal.attack) {
            self.nodes += 1;
            let mate = self.known(&after, goal).and_then(|known| known.mate());
            if let Some(plies) = mate
                && shortest.as_ref().is_none_or(|&(least, ..)| plies < least)
            {
                shortest = Some((plies, mv, after));
            }
        }
        shortest.map(|(_, mv, after)| (mv, after))
    }

    /// Returns a position's outcome if it is known without a search.
    pub fn known(&self, position: &Chess, goal: &Goal<'_>) -> Option<ProofNumbers> {
        let context = self.context(goal);
        let zobrist = key_of(position);
        if goal.draws.contains(&zobrist) {
            return None;
        }
        let known = self.table.get(context.key(position, zobrist));
        known.or_else(|| Some(judge(position, context.attacks(position), goal.attack)))
    }
}
