//! The clock: how long to think about a move. Pure functions of the limits.

use crate::agent::Limits;
use std::time::Duration;

/// Moves the time is made to last for when the rules do not say. Trees are kept
/// from move to move, so early thinking is not lost.
const HORIZON: u32 = 25;
/// A control many moves away is planned for as if it were this near.
const MAX_HORIZON: u32 = 50;
/// How much longer than planned a hard move may take.
const STRETCH: f64 = 4.0;
/// Share of the clock that one move may take, unless it is the last one before
/// the time control.
const MAX_SHARE: f64 = 0.5;

/// Time for one move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allotment {
    /// What the move should take, before [`Situation::factor`].
    pub(crate) soft: Duration,
    /// What it must not exceed.
    pub(crate) hard: Duration,
    /// Whether the move may be played before the soft limit.
    pub(crate) flexible: bool,
}

impl Allotment {
    /// The time that `limits` give; `None` if they do not speak of time.
    ///
    /// `overhead` is kept back for what happens outside the engine. A fixed
    /// time for the move gives up at most half of itself to it.
    pub(crate) fn new(limits: &Limits, overhead: Duration) -> Option<Allotment> {
        if limits.infinite {
            return None;
        }
        let fixed = limits.move_time.map(|time| {
            let hard = time.saturating_sub(overhead).max(time / 2);
            Allotment {
                soft: hard,
                hard,
                flexible: false,
            }
        });
        let clock = limits.time.map(|time| from_clock(time, limits, overhead));
        match (fixed, clock) {
            (Some(fixed), Some(clock)) if clock.hard < fixed.hard => Some(clock),
            (Some(fixed), _) => Some(fixed),
            (None, clock) => clock,
        }
    }
}

fn from_clock(time: Duration, limits: &Limits, overhead: Duration) -> Allotment {
    let usable = time.saturating_sub(overhead).as_secs_f64();
    let moves = limits
        .moves_to_go
        .map_or(HORIZON, |moves| moves.clamp(1, MAX_HORIZON));
    let later = f64::from(moves - 1);
    let total = usable + later * (limits.increment.as_secs_f64() - overhead.as_secs_f64());
    let share = if limits.moves_to_go == Some(1) {
        1.0
    } else {
        MAX_SHARE
    };
    let planned = (total / f64::from(moves)).max(usable / f64::from(4 * moves));
    let hard = (planned * STRETCH).min(usable * share);
    Allotment {
        soft: Duration::from_secs_f64(planned.min(hard)),
        hard: Duration::from_secs_f64(hard),
        flexible: true,
    }
}

/// How clear the choice is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Situation {
    /// Share of the root's visits that went to the best move, in 0…1.
    pub(crate) best_share: f64,
    /// Share of the elapsed time for which it has been the best, in 0…1.
    pub(crate) stable: f64,
    /// How far the value has fallen since the search before, in 0…2.
    pub(crate) fallen: f64,
}

impl Situation {
    /// What the soft limit is to be multiplied by: less where one move gets all
    /// visits, more where the best move has just changed or the value falls.
    pub(crate) fn factor(self) -> f64 {
        let share = 1.5 - self.best_share;
        let stability = 1.3 - 0.4 * self.stable;
        let fall = 1.0 + self.fallen.clamp(0.0, 0.5);
        (share * stability * fall).clamp(0.4, 2.5)
    }
}

/// Whether a move with `lead` more visits than any other can no longer be
/// overtaken in the time left, at so many visits a second: Lc0's smart pruning.
/// A `factor` above 1 reckons with rivals that do not get all the visits.
pub(crate) fn is_decided(lead: u64, visits_a_second: f64, left: Duration, factor: f64) -> bool {
    factor > 0.0 && (lead as f64) * factor > visits_a_second * left.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn clock(time: u64, increment: u64, moves_to_go: Option<u32>) -> Limits {
        Limits {
            time: Some(MS(time)),
            increment: MS(increment),
            moves_to_go,
            ..Limits::default()
        }
    }

    proptest! {
        /// Whatever the clock says, the overhead is kept back.
        #[test]
        fn the_hard_limit_leaves_the_overhead(
            time in 0u64..10_000_000,
            increment in 0u64..60_000,
            moves_to_go in prop::option::of(0u32..200),
            overhead in 0u64..5_000,
        ) {
            let limits = clock(time, increment, moves_to_go);
            let allotment = Allotment::new(&limits, MS(overhead)).unwrap();
            prop_assert!(allotment.hard <= MS(time.saturating_sub(overhead)) + Duration::from_nanos(1));
            prop_assert!(allotment.soft <= allotment.hard);
        }

        /// A game played to the limits never runs out of time.
        #[test]
        fn a_game_at_the_hard_limit_survives(
            time in 50u64..600_000,
            increment in 0u64..5_000,
            overhead in 0u64..40,
        ) {
            let mut left = MS(time);
            for _ in 0..300 {
                let limits = clock(left.as_millis() as u64, increment, None);
                let allotment = Allotment::new(&limits, MS(overhead)).unwrap();
                prop_assert!(allotment.hard <= left);
                left = left - allotment.hard + MS(increment);
            }
        }
    }

    #[test]
    fn the_last_move_before_the_control_may_take_all() {
        let allotment = Allotment::new(&clock(1000, 0, Some(1)), MS(100)).unwrap();
        assert_eq!(allotment.hard, MS(900));
        let allotment = Allotment::new(&clock(1000, 0, Some(2)), MS(100)).unwrap();
        assert!(allotment.hard <= MS(450));
    }

    #[test]
    fn an_increment_is_spent_and_a_long_game_is_planned() {
        let none = Allotment::new(&clock(60_000, 0, None), MS(50)).unwrap();
        assert!(none.soft > MS(1500) && none.soft < MS(3000));
        let some = Allotment::new(&clock(60_000, 1000, None), MS(50)).unwrap();
        assert!(some.soft > none.soft + MS(800));
    }

    #[test]
    fn a_fixed_time_is_used_up() {
        let limits = Limits {
            move_time: Some(MS(1000)),
            ..Limits::default()
        };
        let allotment = Allotment::new(&limits, MS(30)).unwrap();
        assert_eq!((allotment.hard, allotment.flexible), (MS(970), false));
        let limits = Limits {
            move_time: Some(MS(20)),
            ..limits
        };
        assert_eq!(Allotment::new(&limits, MS(30)).unwrap().hard, MS(10));
        assert_eq!(Allotment::new(&Limits::default(), MS(30)), None);
    }

    #[test]
    fn clear_choices_are_quick_and_troubled_ones_slow() {
        let clear = Situation {
            best_share: 0.95,
            stable: 1.0,
            fallen: 0.0,
        };
        let troubled = Situation {
            best_share: 0.3,
            stable: 0.0,
            fallen: 0.3,
        };
        assert!(clear.factor() < 0.6);
        assert!(troubled.factor() > 1.5);
        assert!(is_decided(1000, 100.0, Duration::from_secs(5), 0.75));
        assert!(!is_decided(1000, 200.0, Duration::from_secs(5), 0.75));
        assert!(!is_decided(u64::MAX, 1.0, Duration::from_secs(1), 0.0));
    }
}
