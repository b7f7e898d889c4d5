//! The root moves that preserve the result of a position and make progress, according to the
//! tables.
//!
//! The ranks are Stockfish's (`rank_root_moves` in its `tbprobe.cpp`). All moves that win well
//! before the 50-move rule applies have the same rank, so that the search can choose a natural one.
//! Once a position has been repeated, or the 50-move rule is about to apply, only the shortest way
//! to the next capture or pawn move counts. For the losing side, only the longest way counts.

use super::{Tablebase, Verdict};
use crate::chess::{CLAIMABLE_RULE50, Ending, Game};
use shakmaty::Move;
use shakmaty_syzygy::{Dtz, Wdl};
use std::cmp::{Ordering, Reverse};

/// The best moves of a position according to the tables, and their result.
#[derive(Clone, Debug, PartialEq)]
pub struct RootMoves {
    /// The moves, in the order in which they were given. There is at least one.
    pub moves: Vec<Move>,
    /// The result for the side to move.
    pub verdict: Verdict,
    /// Number of positions that were looked up.
    pub hits: u64,
}

/// The rank of a move, where the worst rank comes first. Plies are counted from the last capture or
/// pawn move to the next one that the winner can force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A loss well before the 50-move rule applies.
    Lost,
    /// A loss after this many plies, which the 50-move rule may prevent.
    LosesLate(u32),
    Drawn,
    /// A win after this many plies, which the 50-move rule may prevent.
    WinsLate(Reverse<u32>),
    /// A win well before the 50-move rule applies.
    Won,
}

impl Tablebase {
    /// Returns the best of `moves`, which must be legal in `game`. Returns `None` if there are no
    /// moves or if the tables do not cover all of them.
    ///
    /// With DTZ tables, a side that plays only these moves wins every won position before the
    /// 50-move rule applies. WDL tables alone show which moves preserve the result, but not which
    /// moves make progress.
    pub fn best_moves(&self, game: &Game, moves: &[Move]) -> Option<RootMoves> {
        if !self.covers(game.position()) {
            return None;
        }
        let mut game = game.clone();
        let ranks = self
            .ranks_by_dtz(&mut game, moves)
            .or_else(|| self.ranks_by_wdl(&mut game, moves))?;
        let best = *ranks.iter().max()?;
        let ranked = moves.iter().zip(&ranks);
        Some(RootMoves {
            moves: ranked
                .filter(|&(_, &rank)| rank == best)
                .map(|(&mv, _)| mv)
                .collect(),
            verdict: self.verdict(best),
            hits: moves.len() as u64,
        })
    }

    fn ranks_by_dtz(&self, game: &mut Game, moves: &[Move]) -> Option<Vec<Rank>> {
        let rule50 = game.rule50();
        let reversible = game.plies().iter().rev().take(rule50 as usize + 1);
        let repeated = reversible.into_iter().any(|ply| ply.repetitions > 0);
        let rank = |&mv: &Move| {
            game.play(mv);
            let dtz = self.dtz_of_last_move(game);
            game.undo();
            Some(Rank::of_dtz(dtz?, rule50, repeated))
        };
        moves.iter().map(rank).collect()
    }

    /// Returns the number of plies to the next capture or pawn move for the side that played the
    /// last move. The last move is included.
    fn dtz_of_last_move(&self, game: &Game) -> Option<Dtz> {
        match game.ending() {
            Some(Ending::Checkmate) => Some(Dtz(1)),
            Some(_) => Some(Dtz(0)),
            None if game.rule50() == 0 => {
                let wdl = self.tables().probe_wdl_after_zeroing(game.position());
                Some(Dtz::before_zeroing(-wdl.ok()?))
            }
            None => {
                let dtz = self.tables().probe_dtz(game.position()).ok()?;
                Some((-dtz.ignore_rounding()).add_plies_saturating(1))
            }
        }
    }

    fn ranks_by_wdl(&self, game: &mut Game, moves: &[Move]) -> Option<Vec<Rank>> {
        let rank = |&mv: &Move| {
            game.play(mv);
            let wdl = match game.ending() {
                Some(Ending::Checkmate) => Some(Wdl::Win),
                Some(_) => Some(Wdl::Draw),
                None => {
                    let wdl = self.tables().probe_wdl_after_zeroing(game.position());
                    wdl.ok().map(|wdl| -wdl)
                }
            };
            game.undo();
            Some(Rank::of_wdl(wdl?))
        };
        moves.iter().map(rank).collect()
    }

    fn verdict(&self, rank: Rank) -> Verdict {
        let in_time = |plies: u32| plies <= CLAIMABLE_RULE50 || !self.fifty_move_rule;
        match rank {
            Rank::Won => Verdict::Win,
            Rank::WinsLate(Reverse(plies)) if in_time(plies) => Verdict::Win,
            Rank::Lost => Verdict::Loss,
            Rank::LosesLate(plies) if in_time(plies) => Verdict::Loss,
            Rank::WinsLate(_) | Rank::Drawn | Rank::LosesLate(_) => Verdict::Draw,
        }
    }
}

impl Rank {
    /// Returns the rank of a move from its DTZ, which is positive if the move wins. Before the
    /// move, there have been `rule50` plies without a capture or pawn move.
    fn of_dtz(Dtz(dtz): Dtz, rule50: u32, repeated: bool) -> Rank {
        let distance = dtz.unsigned_abs();
        let plies = distance.saturating_add(rule50);
        match dtz.cmp(&0) {
            // One ply is kept in reserve, because DTZ may be one too low.
            Ordering::Greater if plies < CLAIMABLE_RULE50 && !repeated => Rank::Won,
            Ordering::Greater => Rank::WinsLate(Reverse(plies)),
            Ordering::Equal => Rank::Drawn,
            Ordering::Less if plies.saturating_add(distance) < CLAIMABLE_RULE50 => Rank::Lost,
            Ordering::Less => Rank::LosesLate(plies),
        }
    }

    /// Returns the rank of a move from its WDL.
    fn of_wdl(wdl: Wdl) -> Rank {
        match wdl {
            Wdl::Win => Rank::Won,
            Wdl::CursedWin => Rank::WinsLate(Reverse(CLAIMABLE_RULE50 + 1)),
            Wdl::Draw => Rank::Drawn,
            Wdl::BlessedLoss => Rank::LosesLate(CLAIMABLE_RULE50 + 1),
            Wdl::Loss => Rank::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_50_move_rule() {
        let rank = |dtz, rule50| Rank::of_dtz(Dtz(dtz), rule50, false);
        assert_eq!(rank(40, 59), rank(2, 0));
        assert!(rank(40, 59) > rank(40, 60));
        assert!(rank(30, 60) > rank(40, 60) && rank(40, 60) > rank(101, 0));
        assert!(rank(101, 0) > rank(120, 0) && rank(120, 0) > rank(0, 0));
        assert!(rank(0, 0) > rank(-120, 0) && rank(-120, 0) > rank(-101, 0));
        assert!(rank(-101, 0) > rank(-60, 0) && rank(-60, 0) > rank(-40, 0));
        assert_eq!(rank(-40, 0), rank(-4, 0));
        // After a repetition, only the shortest win has the best rank.
        let repeated = |dtz| Rank::of_dtz(Dtz(dtz), 4, true);
        assert!(repeated(3) > repeated(5) && repeated(5) > repeated(0));
    }

    #[test]
    fn wins_that_come_too_late_are_draws_by_the_rule_only() {
        let mut tablebase = Tablebase::default();
        let verdicts = |tablebase: &Tablebase| {
            [
                (5, 94),
                (40, 60),
                (40, 61),
                (101, 0),
                (0, 9),
                (-101, 0),
                (-40, 60),
            ]
            .map(|(dtz, rule50)| tablebase.verdict(Rank::of_dtz(Dtz(dtz), rule50, false)))
        };
        use Verdict::{Draw, Loss, Win};
        assert_eq!(
            verdicts(&tablebase),
            [Win, Win, Draw, Draw, Draw, Draw, Loss]
        );
        tablebase.fifty_move_rule = false;
        assert_eq!(verdicts(&tablebase), [Win, Win, Win, Win, Draw, Loss, Loss]);
    }
}
