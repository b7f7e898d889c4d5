//! The course of the material in a line, and its first point that lasts and explains a loss.

use super::board::after;
use super::{Outcome, is_quiet, material, outcomes};
use shakmaty::{Chess, Color, Move, Position};

/// Maximum number of moves that are told for less than …
const TOLD: usize = 9;
/// … this much material in centipawns, …
const LARGE: i32 = 250;
/// … and for more. Nobody follows a longer line.
const MOST_TOLD: usize = 14;
/// A score may differ by this many centipawns from the material.
const RETURN: i32 = 200;
/// Both lines are compared after as many moves and this many more.
const SOON: usize = 3;
/// A loss lasts if it is not made good within this many moves.
const LASTING: usize = 8;
/// In lines of at least this many moves, …
const LONG: usize = 10;
/// … this many at the end may be careless.
const TAIL: usize = 3;
/// A sacrifice after more moves than this is not the point of a line.
const NEAR: usize = 8;
/// The smallest difference in material that counts, in centipawns.
pub(super) const LEAST: i32 = 40;
/// Material up to a pawn, in centipawns.
pub(super) const PAWN: i32 = 110;
/// A score of this many centipawns or more no longer grows with the material.
const WON: i32 = 900;

/// A line from the position before a move, with the material at its quiet positions.
pub(super) struct Course {
    pub(super) line: Vec<Move>,
    mover: Color,
    /// The player's material in centipawns before the line, minus the opponent's.
    base: i32,
    outcomes: Vec<Outcome>,
    /// The player's gain in centipawns in the final position, if nothing can be captured there.
    end: Option<i32>,
}

/// The score in centipawns that a move lost, as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct ScoreDrop {
    /// The player's scores before and after the move.
    pub scores: Option<[i32; 2]>,
    /// Whether a small loss may be told by a long line.
    pub at_length: bool,
}

impl ScoreDrop {
    fn centipawns(self) -> Option<i32> {
        let [before, after] = self.scores?;
        let is_open = before.abs() < WON && after.abs() < WON;
        is_open.then(|| (before - after).max(0))
    }

    /// Returns the maximum number of moves that may be told for this much material in centipawns.
    fn told(self, material: i32) -> usize {
        match self.at_length || material >= LARGE {
            true => MOST_TOLD,
            false => TOLD,
        }
    }

    /// Returns whether the drop may be due to this much material in centipawns.
    pub(super) fn fits(self, material: i32) -> bool {
        self.centipawns()
            .is_none_or(|drop| material <= 150 + drop * 5 / 2)
    }

    /// Returns whether the player's score before the move (`sign` 1) or after it (`sign` −1) is that
    /// of a position with this material in centipawns. If it is not, there is something in return,
    /// such as a piece that cannot escape.
    fn is_worth(self, sign: i32, material: i32) -> bool {
        let Some([before, after]) = self.scores else {
            return true;
        };
        let material = material.clamp(-WON, WON);
        match sign {
            1 => before >= material - RETURN,
            _ => after <= material + RETURN,
        }
    }

    /// Returns whether this much material in centipawns is a large part of the drop.
    fn is_explained(self, material: i32) -> bool {
        self.centipawns().is_none_or(|drop| 3 * material >= drop)
    }
}

impl Course {
    pub(super) fn new(before: &Chess, line: Vec<Move>) -> Course {
        let mut end = before.clone();
        line.iter().for_each(|&mv| end = after(&end, mv));
        let mover = before.turn();
        Course {
            outcomes: outcomes(before, &line),
            end: is_quiet(&end).then(|| Outcome::between(before, &end).worth(mover)),
            mover,
            base: mover.fold_wb(1, -1) * material(before),
            line,
        }
    }

    fn settled(&self) -> impl DoubleEndedIterator<Item = &Outcome> {
        self.outcomes.iter().filter(|it| it.is_settled)
    }

    /// Returns the outcome at the last quiet position, except for the last moves of a long line,
    /// which are often careless.
    pub(super) fn last(&self) -> Option<&Outcome> {
        let end = match self.line.len() {
            long @ LONG.. => long - TAIL,
            short => short,
        };
        self.settled().rfind(|it| it.quiet <= end)
    }

    /// Returns the player's gain in centipawns at the last quiet position.
    pub(super) fn worth(&self) -> i32 {
        self.last().map_or(0, |last| last.worth(self.mover))
    }

    /// Returns the outcome at the very last quiet position.
    pub(super) fn end(&self) -> Option<&Outcome> {
        self.outcomes.last()
    }

    /// Returns whether no material is lost in the end, and by how much less the player has on the
    /// way, in centipawns.
    pub(super) fn keeps(&self) -> Option<i32> {
        let worth = |it: &Outcome| it.worth(self.mover);
        let keeps = |it: &&Outcome| worth(it) > -LEAST;
        self.settled().next_back().filter(keeps)?;
        self.last().filter(keeps)?;
        if self.end.is_some_and(|end| end <= -LEAST) {
            return None;
        }
        self.settled().map(|it| -worth(it)).max()
    }

    /// Returns the player's smallest gain in centipawns at a quiet position near the beginning.
    pub(super) fn least(&self) -> i32 {
        let near = self.settled().filter(|it| it.quiet <= NEAR);
        near.map(|it| it.worth(self.mover)).min().unwrap_or(0)
    }

    /// Returns the player's gain in centipawns at the last quiet position within this many moves.
    fn worth_within(&self, plies: usize) -> i32 {
        let last = self.settled().rfind(|it| it.quiet <= plies);
        last.map_or(0, |it| it.worth(self.mover))
    }

    /// Returns the first outcome that the next moves undo by at most a third, in which the
    /// player has lost material (`sign` −1) or won some (`sign` 1), and stands worse or better than
    /// with the other line, soon after as many moves. If there are several, the first
    /// that explains the drop.
    pub(super) fn lasting(
        &self,
        sign: i32,
        other: Option<&Course>,
        drop: ScoreDrop,
    ) -> Option<&Outcome> {
        let gain = |outcome: &Outcome| sign * outcome.worth(self.mover);
        let lasts = |place: usize| {
            let rest = &self.outcomes[place..];
            let mut near = rest
                .iter()
                .take_while(|it| it.quiet <= rest[0].quiet + LASTING);
            near.all(|later| 3 * gain(later) >= 2 * gain(&rest[0]))
        };
        let apart = |outcome: &Outcome| {
            let other = other.map_or(0, |it| it.worth_within(outcome.quiet + SOON));
            gain(outcome) - sign * other
        };
        let all = self.outcomes.iter().enumerate();
        let all = all.filter(|&(place, outcome)| {
            outcome.is_settled
                && gain(outcome) >= LEAST
                && apart(outcome) >= LEAST
                && outcome.plies <= drop.told(apart(outcome))
                && drop.fits(apart(outcome))
                && drop.is_worth(sign, self.base + sign * gain(outcome))
                && lasts(place)
        });
        let all: Vec<&Outcome> = all.map(|(_, outcome)| outcome).collect();
        let explains = all.iter().find(|it| drop.is_explained(apart(it)));
        let most = all.iter().map(|it| gain(it)).max();
        let largest = || all.iter().find(|it| Some(gain(it)) == most);
        let &found = explains.or_else(largest)?;
        // The same material may have been reached before.
        self.outcomes.iter().find(|it| it.has_lost_as(found))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    const UNKNOWN: ScoreDrop = ScoreDrop {
        scores: None,
        at_length: false,
    };

    fn course(fen: &str, moves: &str) -> Course {
        let before = position(fen);
        let line = line(&before, moves);
        Course::new(&before, line)
    }

    #[test]
    fn material_that_lasts() {
        let fen = "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1";
        let lost = course(fen, "h3 Rxe4 Kf2 Re7");
        let told = lost.lasting(-1, None, UNKNOWN).unwrap();
        assert_eq!((told.plies, told.gain(Color::White)), (2, -3));
        assert_eq!(lost.last().map(|it| it.worth(Color::White)), Some(-325));
        // The other line loses as much.
        assert_eq!(lost.lasting(-1, Some(&lost), UNKNOWN), None);
        assert_eq!(lost.lasting(1, None, UNKNOWN), None);
        // The line wins the piece back.
        let back = course(
            "4k3/8/8/4r3/4N3/8/3B3P/6K1 w - - 0 1",
            "h3 Rxe4 Kf2 Rd4 Ke3 Kd7 Kxd4",
        );
        assert_eq!(back.lasting(-1, None, UNKNOWN), None);
        assert_eq!(back.last().map(|it| it.worth(Color::White)), Some(175));
    }

    #[test]
    fn material_that_fits_the_scores() {
        let fen = "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1";
        let lost = course(fen, "h3 Rxe4 Kf2 Re7");
        let drop = |scores| ScoreDrop {
            scores: Some(scores),
            ..UNKNOWN
        };
        assert!(lost.lasting(-1, None, drop([0, -300])).is_some());
        assert!(lost.lasting(-1, None, drop([-950, -1300])).is_some());
        // A piece for so small a drop: there must be something in return.
        assert!(lost.lasting(-1, None, drop([0, -50])).is_none());
    }

    #[test]
    fn the_first_loss_that_explains_the_drop() {
        let fen = "4k3/8/8/4r3/4P3/8/4N3/6K1 w - - 0 1";
        let both = course(fen, "Kf2 Rxe4 Kf3 Rxe2 Kxe2");
        assert_eq!(both.last().map(|it| it.worth(Color::White)), Some(75));
        let both = course(fen, "Kh2 Rxe4 Nc3 Re5 Na2 Rf5 Nc3 Rf3 Kg2 Rxc3 Kh2 Rc5");
        let told = |after| {
            let drop = ScoreDrop {
                scores: Some([0, after]),
                ..UNKNOWN
            };
            both.lasting(-1, None, drop).map(|it| it.plies)
        };
        assert_eq!(told(-150), Some(2));
        assert_eq!(told(-500), Some(10));
    }
}
