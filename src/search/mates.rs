//! Mate search outside the tree: at the root throughout the search, and at leaves when they are
//! revisited.
//!
//! Networks of this engine's size miss long sacrifices, and a search of a few hundred visits does
//! not reach the mate behind a sacrifice. A [`Prover`] needs no network. At the root, it determines
//! for both sides which moves force mate and which let the opponent force it. At leaves, it tries
//! only checks. Its proofs enter the tree like other proven results.

use super::prove::{Attack, Goal, MAX_MATE_PLIES, ProofNumbers, Prover};
use super::tree::header::Outcome;
use crate::chess::{Checks, Ending, Game, after};
use crate::play::Limits;
use crate::tablebase::bare_king::{self, Known};
use shakmaty::{Chess, Color, Move, Position};
use std::time::{Duration, Instant};

/// Node limit of a check-only search at the root; more nodes rarely find another mate.
const CHECKS: u64 = 1_000;
/// Number of nodes of a full search after which the position's promise is judged.
const FIRST_LOOK: u64 = 500;
/// A position is promising while its proof number stays below this value times the number of nodes
/// to the power of [`GROWTH`]. At 3,000 nodes, this holds for 92 % of 112 positions in which more
/// nodes proved a mate (WAC and `matetrack`), and only for 2 of 150 quiet ones (STS).
const PROMISE: f64 = 1.25;
const GROWTH: f64 = 0.3;
/// The share of the time for a side with a promising attack, …
const PROMISING: f64 = 0.25;
/// … and for a side without one.
const UNPROMISING: f64 = 0.005;
/// Nodes per visit if visits are limited but time is not. With a network that evaluates 2,500
/// positions a second, the prover then gets about the shares of the time stated above.
const NODES_A_VISIT: f64 = 800.0;
/// Maximum number of nodes at a time, so that the tree keeps growing.
const SLICE: u64 = 8_192;
/// Minimum number of nodes for which it is worth returning to the root.
const LEAST_SLICE: u64 = 256;
/// Node limit for walking a whole proof. None of 775 proofs with up to 100,000 nodes (WAC,
/// `matetrack`, `mates2000`) took more than 25,000 nodes to walk. Walking a node takes as long as
/// searching one.
const LINE: u64 = 800_000;
/// Node limit for finding a shorter mate than the first one.
const SHORTEN: u64 = 50_000;
/// A lower bound on the nodes per second, used when a deadline is near.
const NODES_A_SECOND: f64 = 500_000.0;
/// Node limit at a leaf, …
const LEAF: u64 = 100;
/// … and for walking the proof, which visits each of its nodes several times.
const LEAF_LINE: u64 = 400;
/// Size in bytes of a leaf's table, which holds all of its nodes.
const LEAF_TABLE: usize = 1 << 17;
/// The longest mate at a leaf, in plies. The paths that share a node may differ in their 50-move
/// clocks, by less than 8 while the clocks are below 64 (see [`crate::encode::Encoder::key`]).
const LEAF_PLIES: u32 = 32;

/// A root move's proven outcome.
#[derive(Clone, Debug)]
pub(crate) struct RootProof {
    /// The outcome for the side to move after the root move: a win or a loss.
    pub(crate) outcome: Outcome,
    /// The moves from the root to the mate, which the losing side cannot delay further.
    pub(crate) line: Vec<Move>,
}

impl RootProof {
    pub(crate) fn mv(&self) -> Move {
        self.line[0]
    }

    /// Returns the number of plies to the mate after the root move.
    pub(crate) fn plies(&self) -> u8 {
        (self.line.len() - 1).try_into().unwrap_or(u8::MAX)
    }
}

/// One side's attempts to find a mate.
#[derive(Debug)]
struct Effort {
    attacker: Color,
    attack: Attack,
    max_plies: u32,
    /// Nodes spent on the current kind of attack.
    spent: u64,
    numbers: Option<ProofNumbers>,
    over: bool,
}

impl Effort {
    fn new(attacker: Color, max_plies: u32) -> Effort {
        Effort {
            attacker,
            attack: Attack::Checks,
            max_plies,
            spent: 0,
            numbers: None,
            over: max_plies == 0,
        }
    }

    /// Records the result of a number of nodes.
    fn note(&mut self, numbers: ProofNumbers, nodes: u64) {
        self.spent += nodes;
        self.numbers = Some(numbers);
        match self.attack {
            // The nodes for searching checks are spent.
            Attack::Checks if numbers.mate().is_none() => {
                *self = Effort {
                    attack: Attack::All,
                    ..Effort::new(self.attacker, self.max_plies)
                };
            }
            _ => self.over = numbers.is_decided(),
        }
    }

    /// Records that a mate was found; `improve` requests a shorter one.
    fn found(&mut self, plies: u32, improve: bool) {
        if improve && plies > 2 {
            *self = Effort {
                attack: Attack::All,
                ..Effort::new(self.attacker, plies - 2)
            };
        }
    }

    /// Returns the number of nodes that the effort gets in the first look at a position.
    fn first_look(&self) -> u64 {
        match self.attack {
            Attack::Checks => CHECKS,
            Attack::All => FIRST_LOOK.saturating_sub(self.spent),
        }
    }

    fn is_promising(&self) -> bool {
        let most = PROMISE * (self.spent as f64).powf(GROWTH);
        self.numbers
            .is_some_and(|numbers| f64::from(numbers.pn) <= most)
    }
}

/// The mate search of one root, run by one thread at a time.
pub(crate) struct MateSearch {
    prover: Prover,
    position: Chess,
    moves: Option<Vec<Move>>,
    draws: Vec<u64>,
    /// The efforts of both sides, ours first.
    efforts: [Effort; 2],
    /// Whether to look for a shorter mate than the proven one.
    improve: bool,
    proofs: Vec<RootProof>,
    /// The number of `proofs` that have been entered in the tree.
    entered: usize,
    /// Whether the first look at this root is done.
    looked: bool,
    spent: Duration,
    nodes: u64,
    /// The node limit that follows from the time to the deadline.
    most: u64,
}

impl MateSearch {
    /// Returns a mate search with a table of at most this many bytes.
    pub(crate) fn new(bytes: usize) -> MateSearch {
        MateSearch {
            prover: Prover::new(bytes),
            position: Chess::default(),
            moves: None,
            draws: Vec::new(),
            efforts: [Color::White, Color::Black].map(|side| Effort::new(side, 0)),
            improve: false,
            proofs: Vec::new(),
            entered: 0,
            looked: true,
            spent: Duration::ZERO,
            nodes: 0,
            most: u64::MAX,
        }
    }

    /// Clears the table.
    pub(crate) fn clear(&mut self) {
        self.prover.clear();
    }

    /// Begins another search at a new root. Only `moves` are considered, if given.
    pub(crate) fn begin(&mut self, game: &Game, moves: Option<&[Move]>, limits: &Limits) {
        self.prover.begin_search();
        self.position = game.position().clone();
        self.moves = moves.map(<[Move]>::to_vec);
        self.draws = claimable(game);
        let turn = game.position().turn();
        let ours = limits.mate.map_or(MAX_MATE_PLIES, |moves| {
            moves
                .saturating_mul(2)
                .saturating_sub(1)
                .min(MAX_MATE_PLIES)
        });
        let theirs = if limits.mate.is_some() {
            0
        } else {
            MAX_MATE_PLIES
        };
        self.efforts = [Effort::new(turn, ours), Effort::new(turn.other(), theirs)];
        self.improve = limits.infinite;
        self.proofs.clear();
        self.entered = 0;
        self.looked = false;
        self.spent = Duration::ZERO;
        self.nodes = 0;
        self.proofs = self.known(game);
        if !self.proofs.is_empty() {
            self.efforts
                .iter_mut()
                .for_each(|effort| effort.over = true);
        }
    }

    /// Returns the proven root moves if the position has king and one piece against king, shortest
    /// mates first.
    fn known(&self, game: &Game) -> Vec<RootProof> {
        if bare_king::known(&self.position).is_none() {
            return Vec::new();
        }
        let proof = |mv: Move| {
            let after = after(&self.position, mv);
            let outcome = match bare_king::known(&after)? {
                Known::Mated(_) => Outcome::Loss,
                Known::Mates(_) => Outcome::Win,
                Known::Draw => return None,
            };
            let mut line = vec![mv];
            line.append(&mut bare_king::line(&after)?);
            ends_in_mate(game, &line).then_some(RootProof { outcome, line })
        };
        let moves = self.moves.clone();
        let moves = moves.unwrap_or_else(|| self.position.legal_moves().to_vec());
        let mut proofs: Vec<_> = moves.into_iter().filter_map(proof).collect();
        proofs.sort_by_key(|proof| proof.line.len());
        proofs
    }

    /// Returns a root move's proven outcome.
    pub(crate) fn proof_of(&self, mv: Move) -> Option<&RootProof> {
        self.proofs.iter().rev().find(|proof| proof.mv() == mv)
    }

    /// Returns the next proof that has not been entered in the tree.
    pub(crate) fn next_proof(&self) -> Option<&RootProof> {
        self.proofs.get(self.entered)
    }

    /// Marks the proof that [`MateSearch::next_proof`] returns as entered in the tree.
    pub(crate) fn enter(&mut self) {
        self.entered += 1;
    }

    /// Takes a first look at the position, which lasts a millisecond or two. Later calls continue
    /// as far as the mate search's share of `time` allows, the time since the search began. If
    /// `time` is `None`, the share is measured in `visits`, the visits of the search so far, so
    /// that the search is deterministic. `left` is the time to the deadline, if there is one; it is
    /// never exceeded. `halt` returns whether to stop early.
    pub(crate) fn advance(
        &mut self,
        visits: u64,
        time: Option<Duration>,
        left: Option<Duration>,
        halt: &dyn Fn() -> bool,
    ) {
        self.most = left.map_or(u64::MAX, |left| {
            (left.as_secs_f64() * NODES_A_SECOND) as u64
        });
        match std::mem::replace(&mut self.looked, true) {
            false => self.look(halt),
            true => self.go_on(visits, time, halt),
        }
    }

    fn look(&mut self, halt: &dyn Fn() -> bool) {
        for side in 0..2 {
            loop {
                let effort = &self.efforts[side];
                let nodes = effort.first_look();
                if effort.over || nodes == 0 || !self.proofs.is_empty() || halt() {
                    break;
                }
                self.spend(side, nodes, halt);
            }
        }
    }

    fn go_on(&mut self, visits: u64, time: Option<Duration>, halt: &dyn Fn() -> bool) {
        let first = self.efforts[0].is_promising();
        let second = self.efforts[1].is_promising();
        let open = |side: usize| !self.efforts[side].over;
        // Choose the more promising side, or alternate if both are equally promising.
        let side = match (open(0), open(1)) {
            (false, false) => return,
            (true, false) => 0,
            (false, true) => 1,
            (true, true) if first == second => {
                usize::from(self.efforts[1].spent < self.efforts[0].spent)
            }
            (true, true) => usize::from(second),
        };
        let share = match self.efforts[side].is_promising() {
            true => PROMISING,
            false => UNPROMISING,
        };
        let affordable = match time {
            None => visits as f64 * share * NODES_A_VISIT - self.nodes as f64,
            Some(time) => {
                let left = time.mul_f64(share).saturating_sub(self.spent).as_secs_f64();
                let spent = self.spent.as_secs_f64().max(1e-9);
                left * self.nodes as f64 / spent
            }
        };
        if affordable >= LEAST_SLICE as f64 {
            self.spend(side, (affordable as u64).min(SLICE), halt);
        }
    }

    /// Spends up to `nodes` nodes on a side's effort, and further nodes on the mates that it finds;
    /// all together take at most half of the nodes that the time allows.
    fn spend(&mut self, side: usize, nodes: u64, halt: &dyn Fn() -> bool) {
        let began = Instant::now();
        let before = self.prover.nodes;
        let effort = &mut self.efforts[side];
        let goal = Goal {
            attacker: effort.attacker,
            attack: effort.attack,
            max_plies: effort.max_plies,
            nodes: nodes.min(self.most / 4),
            moves: self.moves.as_deref(),
            draws: &self.draws,
            halt,
        };
        let numbers = self.prover.prove(&self.position, &goal);
        effort.note(numbers, self.prover.nodes - before);
        let goal = Goal {
            nodes: LINE.min(self.most / 8),
            ..goal
        };
        if goal.attacker == self.position.turn() {
            // A proof that cannot be walked in the remaining time is ignored.
            let mate = numbers
                .mate()
                .and_then(|_| self.prover.line(&self.position, &goal));
            if let Some(line) = mate {
                let line = shorten(&mut self.prover, &self.position, &goal, line);
                effort.found(line.len() as u32, self.improve);
                let outcome = Outcome::Loss;
                self.proofs.push(RootProof { outcome, line });
            }
        } else {
            let known = |mv: &Move| self.proofs.iter().any(|proof| proof.mv() == *mv);
            let moves = goal.moves.map_or_else(
                || self.position.legal_moves(),
                |moves| moves.iter().copied().collect(),
            );
            let lost = lost(
                &mut self.prover,
                &self.position,
                moves.into_iter().filter(|mv| !known(mv)),
                &goal,
                self.most / 8,
            );
            self.proofs.extend(lost);
        }
        let nodes = self.prover.nodes - before;
        self.nodes += nodes;
        self.most = self.most.saturating_sub(nodes);
        self.spent += began.elapsed();
    }
}

/// Returns whether the moves lead to mate before either side can claim a draw.
fn ends_in_mate(game: &Game, line: &[Move]) -> bool {
    let mut game = game.clone();
    let ending = line.iter().find_map(|&mv| {
        game.play(mv);
        game.ending()
    });
    ending == Some(Ending::Checkmate)
}

/// Returns the line of a shorter mate, if one is found quickly; the first mate found by a
/// proof-number search may be long.
fn shorten(
    prover: &mut Prover,
    position: &Chess,
    goal: &Goal<'_>,
    mut line: Vec<Move>,
) -> Vec<Move> {
    let last = prover.nodes + SHORTEN.min(goal.nodes);
    while line.len() > 2 {
        let shorter = Goal {
            max_plies: line.len() as u32 - 2,
            nodes: last.saturating_sub(prover.nodes),
            ..*goal
        };
        let found = prover.prove(position, &shorter).mate();
        let shorter = Goal {
            nodes: last.saturating_sub(prover.nodes),
            ..shorter
        };
        match found.and_then(|_| prover.line(position, &shorter)) {
            Some(found) => line = found,
            None => break,
        }
    }
    line
}

/// Returns the moves that are proven, within a node limit, to allow a mate.
fn lost(
    prover: &mut Prover,
    position: &Chess,
    moves: impl Iterator<Item = Move>,
    goal: &Goal<'_>,
    most: u64,
) -> Vec<RootProof> {
    let last = prover.nodes.saturating_add(most);
    let proof = |mv: Move| {
        let affordable = |prover: &Prover| Goal {
            moves: None,
            nodes: goal.nodes.min(last.saturating_sub(prover.nodes)),
            ..*goal
        };
        let after = after(position, mv);
        prover.known(&after, goal)?.mate()?;
        let mut line = vec![mv];
        let mate = prover.line(&after, &affordable(prover))?;
        line.extend(shorten(prover, &after, &affordable(prover), mate));
        let outcome = Outcome::Win;
        Some(RootProof { outcome, line })
    };
    moves.filter_map(proof).collect()
}

/// Searches for mates by checks at leaves of the tree, with few nodes. Each position is searched
/// independently, so that a report finds the same line again.
pub(crate) struct LeafMates(Prover);

impl LeafMates {
    pub(crate) fn new() -> LeafMates {
        LeafMates(Prover::new(LEAF_TABLE))
    }

    /// Returns the line to a mate if the side to move has one. `moves` are its legal moves.
    pub(crate) fn line(
        &mut self,
        position: &Chess,
        moves: &[Move],
        draws: &[u64],
    ) -> Option<Vec<Move>> {
        // Three quarters of quiet positions have no checks.
        let checks = Checks::new(position)?;
        if !moves.iter().any(|&mv| checks.may_be_given_by(mv)) {
            return None;
        }
        let goal = Goal {
            max_plies: LEAF_PLIES,
            moves: Some(moves),
            draws,
            ..Goal::new(position.turn(), Attack::Checks, LEAF)
        };
        self.0.clear();
        self.0.prove(position, &goal).mate()?;
        let nodes = LEAF_LINE;
        self.0.line(position, &Goal { nodes, ..goal })
    }
}

/// Returns the keys of positions whose next occurrence would allow a draw claim.
pub(crate) fn claimable(game: &Game) -> Vec<u64> {
    let reversible = game.rule50() as usize + 1;
    let plies = game.plies().iter().rev().take(reversible);
    let mut keys: Vec<u64> = plies
        .filter(|ply| ply.repetitions >= 1)
        .map(|ply| ply.key)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;
    use std::cell::Cell;

    /// Lasker's king walk after the sacrifice. White mates after both of Black's replies to e4f6.
    const WALK: &str = "rn3r2/pbppq1pk/1p2pb2/4N3/3PN3/3B4/PPP2PPP/R3K2R w KQ - 0 12";

    #[test]
    fn a_near_deadline_bounds_what_is_spent() {
        let game = Game::from_fen(WALK, CastlingMode::Standard).unwrap();
        let after = |mv: &str| {
            let mut game = game.clone();
            game.play(game.parse_move(mv).unwrap());
            game
        };
        // First the attacker is to move; after e4f6 it is the defender, in double check.
        for game in [game.clone(), after("e4f6")] {
            for milliseconds in [0, 1, 4, 20] {
                let mut mates = MateSearch::new(1 << 20);
                mates.begin(&game, None, &Limits::default());
                let left = Duration::from_millis(milliseconds);
                for visits in 0..20 {
                    let before = mates.prover.nodes;
                    mates.advance(visits, Some(left), Some(left), &|| false);
                    // A first look has four parts, and expanding a node creates all its children.
                    let spent = mates.prover.nodes - before;
                    let most = (left.as_secs_f64() * NODES_A_SECOND) as u64;
                    assert!(spent <= most + 4 * 400, "{spent} of {most}");
                }
            }
        }
    }

    #[test]
    fn a_stop_is_not_kept_waiting() {
        let game = Game::from_fen(WALK, CastlingMode::Standard).unwrap();
        let mut defender = game.clone();
        defender.play(game.parse_move("e4f6").unwrap());
        for game in [game, defender] {
            // Returns the number of search steps until everything is found.
            let found = |patience: usize| {
                let mut mates = MateSearch::new(1 << 20);
                mates.begin(&game, None, &Limits::default());
                let asked = Cell::new(0);
                let halt = || {
                    asked.set(asked.get() + 1);
                    asked.get() > patience
                };
                let mut late = 0;
                for visits in 0..40 {
                    let before = mates.prover.nodes;
                    let in_time = asked.get();
                    mates.advance(visits, None, None, &halt);
                    if in_time > patience {
                        late += mates.prover.nodes - before;
                    }
                }
                (mates.proofs.len(), asked.get(), late)
            };
            let (all, asked, late) = found(usize::MAX);
            assert!(all > 0 && late == 0);
            for patience in [0, 1, 2, asked / 2, asked - 1] {
                let (proofs, _, late) = found(patience);
                assert!(proofs <= all);
                // Each stop is late by one or two positions, with all their moves.
                assert!(late < 40 * 400, "{late} after {patience} of {asked}");
            }
            assert_eq!(found(0).0, 0);
        }
    }

    #[test]
    fn positions_that_stood_twice_could_be_claimed() {
        let mut game = Game::default();
        assert!(claimable(&game).is_empty());
        for mv in ["g1f3", "g8f6", "f3g1", "f6g8"] {
            game.play(game.parse_move(mv).unwrap());
        }
        assert_eq!(claimable(&game), [game.current().key]);
        game.play(game.parse_move("e2e4").unwrap());
        assert!(claimable(&game).is_empty());
    }
}
