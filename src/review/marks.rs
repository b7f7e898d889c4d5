//! Marks of moves, using Lichess's thresholds.

use super::curve::Evaluation;
use serde::{Deserialize, Serialize};

/// Winning chances, on a scale of −1…1, that an only move has to save, …
const SAVED: f64 = 0.2;
/// … and the maximum share of players who find it.
const HARD_TO_FIND: f32 = 0.35;

/// The rules of grading, which depend on how far the scores can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grading {
    /// Lichess's rules, for the scores of a strong engine.
    Judge,
    /// Stricter rules for Tessera's own scores, whose errors are larger: a move has to lose more,
    /// and has no mark if its side is clearly winning, or clearly losing, before and after it.
    Own,
}

/// Losses of winning chances, on a scale of −1…1, from which Tessera's own scores make a move an
/// inaccuracy, a mistake and a blunder. `bench/review.py thresholds` chose the mistake's.
const OWN_LOSSES: [f64; 3] = [0.2, 0.24, 0.34];
/// Winning chances, on the same scale, from which Tessera's own scores call a side clearly winning,
/// chosen likewise.
const OWN_DECIDED: f64 = 0.3;

/// The mark of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// `!`: the only good move, hard to find.
    Good,
    /// `?!`
    Inaccuracy,
    /// `?`
    Mistake,
    /// `??`
    Blunder,
}

impl Mark {
    /// Returns the mark in chess players' notation.
    pub fn symbol(self) -> &'static str {
        match self {
            Mark::Good => "!",
            Mark::Inaccuracy => "?!",
            Mark::Mistake => "?",
            Mark::Blunder => "??",
        }
    }

    /// Returns the mark's numeric annotation glyph for PGN.
    pub fn glyph(self) -> u8 {
        match self {
            Mark::Good => 1,
            Mark::Mistake => 2,
            Mark::Blunder => 4,
            Mark::Inaccuracy => 6,
        }
    }

    /// Returns whether the move should not have been played.
    pub fn is_bad(self) -> bool {
        self != Mark::Good
    }
}

/// A forced mate that a move missed or allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MateEvent {
    /// The mover had a forced mate and has none now.
    Missed,
    /// The opponent has a forced mate and had none before.
    Allowed,
}

/// Finds missed and allowed mates, given the player's evaluations before and after a move.
pub fn mate_event(before: Evaluation, after: Evaluation) -> Option<MateEvent> {
    match (before, after) {
        (Evaluation::Mate(1..), Evaluation::Mate(1..)) => None,
        (Evaluation::Mate(1..), _) => Some(MateEvent::Missed),
        (Evaluation::Centipawns(_), Evaluation::Mate(..=0)) => Some(MateEvent::Allowed),
        _ => None,
    }
}

/// Returns the mark of a move that was not the best, given the player's evaluations before and
/// after it.
pub fn bad_mark(before: Evaluation, after: Evaluation, grading: Grading) -> Option<Mark> {
    let [from, to] = [before, after].map(Evaluation::chances);
    let is_decided = from.min(to) >= OWN_DECIDED || from.max(to) <= -OWN_DECIDED;
    let losses = match grading {
        Grading::Judge => [0.1, 0.2, 0.3],
        Grading::Own if is_decided => return None,
        Grading::Own => OWN_LOSSES,
    };
    // The evaluation without the mate determines how bad it is to miss the mate.
    let by_centipawns = |centipawns: i32| match centipawns {
        1000.. => Mark::Inaccuracy,
        701.. => Mark::Mistake,
        _ => Mark::Blunder,
    };
    match (before, after) {
        (Evaluation::Mate(1..), Evaluation::Centipawns(after)) => Some(by_centipawns(after)),
        (Evaluation::Mate(1..), Evaluation::Mate(..=0)) => Some(Mark::Blunder),
        (Evaluation::Centipawns(before), Evaluation::Mate(..=0)) => Some(by_centipawns(-before)),
        (Evaluation::Centipawns(_), Evaluation::Centipawns(_)) => {
            match losses.map(|least| from - to >= least) {
                [_, _, true] => Some(Mark::Blunder),
                [_, true, _] => Some(Mark::Mistake),
                [true, ..] => Some(Mark::Inaccuracy),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns whether the best move was played, every other move is much worse, and few players find
/// it.
pub fn is_only_move(best: Evaluation, second: Evaluation, share: f32) -> bool {
    best.chances() - second.chances() >= SAVED && share <= HARD_TO_FIND
}

#[cfg(test)]
mod tests {
    use super::*;
    use Evaluation::{Centipawns, Mate};

    #[test]
    fn own_scores_need_larger_losses_and_an_undecided_game() {
        let mark = |before, after| bad_mark(before, after, Grading::Own);
        let chances = |chances: f64| {
            let centipawns = (2.0 / (1.0 + chances) - 1.0).ln() / -0.003_682_08;
            Centipawns(centipawns.round() as i32)
        };
        for (place, expected) in [Mark::Inaccuracy, Mark::Mistake, Mark::Blunder]
            .into_iter()
            .enumerate()
        {
            let least = OWN_LOSSES[place];
            assert_eq!(mark(chances(least + 0.01), Centipawns(0)), Some(expected));
            assert!(mark(chances(least - 0.01), Centipawns(0)) < Some(expected));
        }
        let [high, higher] = [0.01, 0.45].map(|above| chances(OWN_DECIDED + above));
        assert_eq!(mark(higher, high), None);
        assert_eq!(mark(high.reversed(), higher.reversed()), None);
        assert_eq!(mark(Mate(3), high), None);
        assert!(mark(high, high.reversed()).is_some());
        assert_eq!(mark(Centipawns(0), Mate(-2)), Some(Mark::Blunder));
    }

    #[test]
    fn marks_are_those_of_lichess() {
        for (before, after, expected) in [
            (Centipawns(0), Centipawns(-50), None),
            (Centipawns(0), Centipawns(-60), Some(Mark::Inaccuracy)),
            (Centipawns(0), Centipawns(-115), Some(Mark::Mistake)),
            (Centipawns(0), Centipawns(-170), Some(Mark::Blunder)),
            // The game is won either way.
            (Centipawns(900), Centipawns(700), None),
            (Centipawns(-200), Centipawns(100), None),
            (Mate(3), Mate(5), None),
            (Mate(-3), Mate(-1), None),
            (Mate(-3), Centipawns(0), None),
            (Mate(2), Centipawns(1200), Some(Mark::Inaccuracy)),
            (Mate(2), Centipawns(800), Some(Mark::Mistake)),
            (Mate(2), Centipawns(300), Some(Mark::Blunder)),
            (Mate(2), Mate(-4), Some(Mark::Blunder)),
            (Centipawns(-1200), Mate(-4), Some(Mark::Inaccuracy)),
            (Centipawns(-800), Mate(-4), Some(Mark::Mistake)),
            (Centipawns(0), Mate(-4), Some(Mark::Blunder)),
            (Centipawns(0), Mate(0), Some(Mark::Blunder)),
        ] {
            assert_eq!(
                bad_mark(before, after, Grading::Judge),
                expected,
                "{before:?} {after:?}"
            );
        }
    }

    #[test]
    fn mates_are_missed_and_allowed() {
        assert_eq!(
            mate_event(Mate(2), Centipawns(900)),
            Some(MateEvent::Missed)
        );
        assert_eq!(mate_event(Mate(2), Mate(-1)), Some(MateEvent::Missed));
        assert_eq!(
            mate_event(Centipawns(0), Mate(-3)),
            Some(MateEvent::Allowed)
        );
        assert_eq!(mate_event(Mate(2), Mate(1)), None);
        assert_eq!(mate_event(Mate(-2), Mate(-1)), None);
        assert_eq!(mate_event(Centipawns(0), Centipawns(5)), None);
    }

    #[test]
    fn an_only_move_saves_much_and_is_hard_to_find() {
        assert!(is_only_move(Centipawns(0), Centipawns(-300), 0.2));
        assert!(!is_only_move(Centipawns(0), Centipawns(-300), 0.6));
        assert!(!is_only_move(Centipawns(0), Centipawns(-80), 0.2));
        assert!(!is_only_move(Mate(2), Centipawns(900), 0.2));
        assert!(Mark::Blunder > Mark::Inaccuracy && !Mark::Good.is_bad());
    }
}
