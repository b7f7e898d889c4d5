//! The material that a side can force. Up to a depth, its captures, promotions and checks are
//! searched against every defence; beyond that depth, only captures are searched. The other side
//! plays the best moves by material, so it does not hang pieces in the line that it did not lose in
//! the game.

use super::board::balance;
use super::board::{after, value};
use super::gain;
use shakmaty::{Chess, Move, Position, Role};

/// Number of plies with every defence, including the attacker's first move: first a shallow search,
/// …
const SHALLOW: usize = 3;
/// … then a deeper one, unless it has too many positions.
const DEEP: usize = 5;
/// Maximum number of positions in a search.
const MOST: usize = 40_000;
/// Number of plies of captures beyond that depth.
const CAPTURES: usize = 8;
/// A value above all material.
const MATE: i32 = 1_000;

/// The material that a side can force, and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// White's material minus Black's at the end, in pawns.
    pub balance: i32,
    /// The line with the best defence.
    pub line: Vec<Move>,
}

/// Returns the material that the side to move can at least force by starting with the first move of
/// `plan`; it may also use the plan's quiet moves after that. Returns `None` if that move mates by
/// force or if there are too many positions.
pub fn forced(position: &Chess, plan: &[Move]) -> Option<Forced> {
    let deep = Search::run(position, plan, DEEP);
    let (score, line) = deep.or_else(|| Search::run(position, plan, SHALLOW))?;
    (score.abs() < MATE).then(|| Forced {
        balance: position.turn().fold_wb(score, -score),
        line,
    })
}

/// Returns whether the side that does not begin a line gives away material in it by a move that it
/// need not play, in which case the line proves nothing. In check, the best evasion counts as
/// forced.
pub fn gives_away(position: &Chess, line: &[Move]) -> bool {
    let mut position = position.clone();
    for (place, &mv) in line.iter().enumerate() {
        let lost = gain(&position, mv);
        let others = || position.legal_moves().into_iter();
        let is_forced = || position.is_check() && others().all(|it| gain(&position, it) <= lost);
        if place % 2 == 1 && lost < 0 && !is_forced() {
            return true;
        }
        position = after(&position, mv);
    }
    false
}

/// A value in pawns for the side to move, and the line that leads to it.
type Found = (i32, Vec<Move>);

struct Search {
    left: usize,
}

/// The remaining depth of a search at a position.
#[derive(Clone, Copy)]
struct Depth<'a> {
    /// Whether the side to move is trying to force something.
    attacks: bool,
    /// Number of plies with every defence.
    plies: usize,
    /// Number of plies of captures beyond them.
    captures: usize,
    /// The moves to search first.
    plan: &'a [Move],
}

impl<'a> Depth<'a> {
    fn below(self, is_planned: bool) -> Depth<'a> {
        let plan = match is_planned {
            true => &self.plan[1..],
            false => &[],
        };
        let is_deep = self.plies > 0;
        Depth {
            attacks: !self.attacks,
            plies: self.plies.saturating_sub(1),
            captures: self.captures - usize::from(!is_deep),
            plan,
        }
    }
}

impl Search {
    fn run(position: &Chess, plan: &[Move], plies: usize) -> Option<Found> {
        let (&first, rest) = plan.split_first()?;
        let mut search = Search { left: MOST };
        let depth = Depth {
            attacks: false,
            plies: plies - 1,
            captures: CAPTURES,
            plan: rest,
        };
        let next = after(position, first);
        let (score, line) = search.value(&next, depth, -2 * MATE, 2 * MATE)?;
        Some((-score, [first].into_iter().chain(line).collect()))
    }

    /// Returns the value of a position within bounds, or `None` once there are too many positions.
    fn value(&mut self, position: &Chess, depth: Depth<'_>, low: i32, high: i32) -> Option<Found> {
        self.left = self.left.checked_sub(1)?;
        let legal = position.legal_moves();
        let is_check = position.is_check();
        if legal.is_empty() {
            return Some((if is_check { -MATE } else { 0 }, Vec::new()));
        }
        let own = position.turn().fold_wb(1, -1) * balance(position);
        // Beyond the depth, neither side has to capture; the attacker never has to continue.
        let may_rest = !is_check && (depth.plies == 0 || depth.attacks);
        if depth.captures == 0 || may_rest && own >= high {
            return Some((own, Vec::new()));
        }
        let mut best = (if may_rest { own } else { -2 * MATE }, Vec::new());
        for mv in candidates(position, depth, &legal, is_check) {
            let is_planned = depth.plan.first() == Some(&mv);
            let low = low.max(best.0);
            let next = after(position, mv);
            let (score, line) = self.value(&next, depth.below(is_planned), -high, -low)?;
            if -score > best.0 {
                best = (-score, [mv].into_iter().chain(line).collect());
            }
            if best.0 >= high {
                break;
            }
        }
        Some(best)
    }
}

/// Returns the moves to search, starting with those of the plan and captures of valuable pieces.
fn candidates(position: &Chess, depth: Depth<'_>, legal: &[Move], is_check: bool) -> Vec<Move> {
    let planned = depth.plan.first().copied();
    let is_loud = |mv: &Move| mv.is_capture() || mv.promotion() == Some(Role::Queen);
    let is_looked_at = |mv: &Move| match (depth.plies, depth.attacks) {
        _ if is_check || is_loud(mv) || Some(*mv) == planned => true,
        (0, _) => false,
        (_, false) => true,
        (_, true) => after(position, *mv).is_check(),
    };
    let mut moves: Vec<Move> = legal.iter().copied().filter(is_looked_at).collect();
    moves.sort_by_key(|mv| {
        let captured = mv.capture().map_or(0, value);
        let promoted = mv.promotion().map_or(0, value);
        let dear = 10 * (captured + promoted) - value(mv.role()).min(9);
        (Some(*mv) != planned, -if is_loud(mv) { dear } else { -100 })
    });
    moves
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::super::words;
    use super::*;

    fn check(cases: &[(&str, &str, &str, i32)]) {
        for &(fen, plan, expected, gain) in cases {
            let position = position(fen);
            let found = forced(&position, &line(&position, plan)).expect(fen);
            let told = words::line(&position, &found.line);
            let gained = position.turn().fold_wb(1, -1) * (found.balance - balance(&position));
            assert!(told.starts_with(expected), "{told} in {fen}");
            assert_eq!(gained, gain, "{told} in {fen}");
        }
    }

    #[test]
    fn material_that_is_forced() {
        check(&[
            ("4k3/8/8/4n3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", "Rxe5+", 3),
            ("r3k3/8/8/3N4/8/8/8/4K3 w - - 0 1", "Nc7+", "Nc7+", 5),
            // A check followed by another check that forks.
            (
                "6k1/8/8/8/r3p3/8/8/3QK3 w - - 0 1",
                "Qd5+ Kg7 Qxe4",
                "Qd5+",
                5,
            ),
            ("4k3/8/8/1n5n/8/8/8/3Q1K2 w - - 0 1", "Qe2+ Kf7", "Qe2+", 3),
            // The exchange is even or loses material.
            (
                "4k3/8/3p4/4b3/8/3N4/8/4K3 w - - 0 1",
                "Nxe5",
                "Nxe5 dxe5",
                0,
            ),
            (
                "4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1",
                "Rxe5+",
                "Rxe5+ dxe5",
                -2,
            ),
        ]);
    }

    #[test]
    fn a_defence_is_found() {
        check(&[
            // The attacked knight moves away; the queen need not be left hanging.
            ("6k1/8/8/4n3/8/8/8/R6K w - - 0 1", "Re1 Kf7 Rxe5", "Re1", 0),
            (
                "4k3/5p2/6p1/5n1q/8/7B/8/4K3 w - - 0 1",
                "Bxf5 Qh4+",
                "Bxf5",
                0,
            ),
        ]);
    }

    #[test]
    fn material_that_is_given_away() {
        for (fen, moves, expected) in [
            // Nothing is gained; a spite check precedes the loss of the piece.
            ("4k3/8/8/3b4/8/2N5/8/3RK3 w - - 0 1", "Nxd5 Kf7", false),
            ("6k1/8/8/3n4/8/2P5/1r6/3RK3 w - - 0 1", "c4 Rb1 Rxb1", true),
            (
                "4k3/5p2/6p1/5n1q/8/7B/8/4K3 w - - 0 1",
                "Bg4 Qh4+ Kd1",
                false,
            ),
            (
                "4k3/5p2/6p1/5n1q/8/7B/8/3QK3 w - - 0 1",
                "Bg4 Qxg4 Qxg4",
                true,
            ),
            // The only evasion loses the queen.
            (
                "3q2k1/5ppp/8/8/8/8/4R3/4R1K1 w - - 0 1",
                "Re8+ Qxe8 Rxe8#",
                false,
            ),
            // The side that begins may give away material.
            ("4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1", "Rxe5+ dxe5", false),
        ] {
            let position = position(fen);
            let found = gives_away(&position, &line(&position, moves));
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }

    #[test]
    fn mates_are_told_elsewhere() {
        let position = position("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1");
        assert_eq!(forced(&position, &line(&position, "Ra8#")), None);
        assert_eq!(forced(&position, &[]), None);
    }
}
