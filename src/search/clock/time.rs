//! Time management: how long to think about a move, as pure functions of the limits.

use crate::play::Limits;
use std::time::Duration;

/// Number of moves to budget for if the time control does not state one. Trees are kept between
/// moves, so time spent early is not lost.
const HORIZON: u32 = 25;
/// If the next time control is more moves away than this, the clock is budgeted for this many
/// moves.
const MAX_HORIZON: u32 = 50;
/// The largest factor by which a hard move may extend the planned time, …
const STRETCH: f64 = 4.0;
/// … and the share of that time that the easiest move takes.
const LEAST: f64 = 0.4;
/// A plan leaves this many times the overhead on the clock, for a delay that is longer than usual.
const CUSHION: f64 = 4.0;
/// Share of the clock that one move may take, unless it is the last before the time control.
const MAX_SHARE: f64 = 0.5;
/// The longest clock time that is used, over 30 years; longer ones are truncated.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// If the best move has half of the visits, it takes the planned time; each further percent of the
/// visits saves one percent of the time (Monty: time by the best move's share of nodes).
const EVEN_SHARE: f64 = 0.5;
/// The time factor for a best move that has just changed, …
const UNSETTLED: f64 = 1.5;
/// … and for a best move that has led from the start (Stockfish: best-move instability).
const SETTLED: f64 = 0.9;
/// The time factor for a value that has fallen by 1, …
const FALL_COST: f64 = 2.0;
/// … and the fall beyond which the factor no longer grows (Stockfish: falling eval).
const MAX_FALL: f64 = 0.5;

/// The time budget for one move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeBudget {
    /// The planned time of the move.
    pub(crate) soft: Duration,
    /// The maximum time for the move.
    pub(crate) hard: Duration,
    /// Whether the move may be played before the soft limit.
    pub(crate) flexible: bool,
}

impl TimeBudget {
    /// Returns the budget that `limits` allow, or `None` if there is no time limit.
    ///
    /// `overhead` is reserved for delays outside the engine. It takes at most half of a fixed time
    /// per move.
    pub(crate) fn new(limits: &Limits, overhead: Duration) -> Option<TimeBudget> {
        if limits.infinite {
            return None;
        }
        let fixed = limits.move_time.map(|time| {
            let time = time.min(LONGEST);
            let hard = time.saturating_sub(overhead).max(time / 2);
            TimeBudget {
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

    /// Returns how long to think at this stability; only [`TimeBudget::hard`] is an absolute limit.
    pub(crate) fn limit(&self, stability: Stability) -> Duration {
        match self.flexible {
            true => self.soft.mul_f64(stability.factor()).min(self.hard),
            false => self.hard,
        }
    }
}

fn from_clock(time: Duration, limits: &Limits, overhead: Duration) -> TimeBudget {
    let usable = time.min(LONGEST).saturating_sub(overhead).as_secs_f64();
    let moves = limits
        .moves_to_go
        .map_or(HORIZON, |moves| moves.clamp(1, MAX_HORIZON));
    let later = f64::from(moves - 1);
    let overhead = overhead.as_secs_f64();
    let total = usable - CUSHION * overhead + later * (limits.increment.as_secs_f64() - overhead);
    let share = if limits.moves_to_go == Some(1) {
        1.0
    } else {
        MAX_SHARE
    };
    let planned = (total / f64::from(moves)).max(usable / f64::from(4 * moves));
    let hard = (planned * STRETCH).min(usable * share);
    TimeBudget {
        soft: Duration::from_secs_f64(planned.min(hard)),
        hard: Duration::from_secs_f64(hard),
        flexible: true,
    }
}

/// How settled the choice is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stability {
    /// Share of the root's visits that went to the best move, in 0…1.
    pub(crate) best_share: f64,
    /// Share of the elapsed time for which that move has been the best, in 0…1.
    pub(crate) stable: f64,
    /// The fall in the best move's value, in 0…2, since the end of the previous search, or
    /// otherwise since the start of this one.
    pub(crate) fallen: f64,
}

impl Stability {
    /// Returns the factor of the soft limit: smaller if one move gets all visits, larger if the
    /// best move has just changed or its value is falling.
    fn factor(self) -> f64 {
        let share = 1.0 + EVEN_SHARE - self.best_share;
        let stability = UNSETTLED + (SETTLED - UNSETTLED) * self.stable;
        let fall = 1.0 + FALL_COST * self.fallen.clamp(0.0, MAX_FALL);
        (share * stability * fall).clamp(LEAST, STRETCH)
    }
}

/// Returns whether the remaining visits can no longer overtake a move with `lead` more visits than
/// any other (Lc0's smart pruning). A `factor` above 1 assumes that rivals do not get all of the
/// remaining visits.
pub(crate) fn is_decided(lead: u32, to_come: f64, factor: f64) -> bool {
    factor > 0.0 && f64::from(lead) * factor > to_come
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

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
        /// The overhead is reserved with every clock.
        #[test]
        fn the_hard_limit_leaves_the_overhead(
            time in 0u64..10_000_000,
            increment in 0u64..60_000,
            moves_to_go in prop::option::of(0u32..200),
            overhead in 0u64..5_000,
        ) {
            let limits = clock(time, increment, moves_to_go);
            let budget = TimeBudget::new(&limits, MS(overhead)).unwrap();
            prop_assert!(budget.hard <= MS(time.saturating_sub(overhead)) + Duration::from_nanos(1));
            prop_assert!(budget.soft <= budget.hard);
        }

        /// The stability never makes the time exceed the hard limit, and an unsettled choice takes
        /// at least as long as a settled one.
        #[test]
        fn trouble_takes_time_within_the_hard_limit(
            time in any::<u64>(),
            increment in any::<u64>(),
            moves_to_go in prop::option::of(any::<u32>()),
            move_time in prop::option::of(any::<u64>()),
            overhead in any::<u64>(),
            best_share in 0.0f64..=1.0,
            stable in 0.0f64..=1.0,
            fallen in 0.0f64..=2.0,
        ) {
            let limits = Limits {
                move_time: move_time.map(MS),
                ..clock(time, increment, moves_to_go)
            };
            let budget = TimeBudget::new(&limits, MS(overhead)).unwrap();
            let stability = Stability { best_share, stable, fallen };
            let limit = budget.limit(stability);
            prop_assert!(limit <= budget.hard && budget.hard <= LONGEST);
            prop_assert!(Instant::now().checked_add(budget.hard).is_some());
            let troubles = [
                Stability { best_share: best_share / 2.0, ..stability },
                Stability { stable: stable / 2.0, ..stability },
                Stability { fallen: fallen + 0.1, ..stability },
            ];
            for trouble in troubles {
                prop_assert!(budget.limit(trouble) >= limit, "{trouble:?}");
            }
        }

        /// A game in which every move takes its hard limit never runs out of time.
        #[test]
        fn a_game_at_the_hard_limit_survives(
            time in 50u64..600_000,
            increment in 0u64..5_000,
            overhead in 0u64..40,
        ) {
            let mut left = MS(time);
            for _ in 0..300 {
                let limits = clock(left.as_millis() as u64, increment, None);
                let budget = TimeBudget::new(&limits, MS(overhead)).unwrap();
                prop_assert!(budget.hard <= left);
                left = left - budget.hard + MS(increment);
            }
        }
    }

    #[test]
    fn an_increment_that_covers_only_the_overhead_leaves_a_cushion() {
        let mut left = MS(1000);
        for _ in 0..100 {
            let limits = clock(left.as_millis() as u64, 10, None);
            let budget = TimeBudget::new(&limits, MS(10)).unwrap();
            left = left - budget.soft - MS(10) + MS(10);
        }
        assert!((MS(30)..MS(100)).contains(&left), "{left:?}");
    }

    #[test]
    fn the_last_move_before_the_control_may_take_all() {
        let budget = TimeBudget::new(&clock(1000, 0, Some(1)), MS(100)).unwrap();
        assert_eq!(budget.hard, MS(900));
        let budget = TimeBudget::new(&clock(1000, 0, Some(2)), MS(100)).unwrap();
        assert!(budget.hard <= MS(450));
    }

    #[test]
    fn an_increment_is_spent_and_a_long_game_is_planned() {
        let none = TimeBudget::new(&clock(60_000, 0, None), MS(50)).unwrap();
        assert!(none.soft > MS(1500) && none.soft < MS(3000));
        let some = TimeBudget::new(&clock(60_000, 1000, None), MS(50)).unwrap();
        assert!(some.soft > none.soft + MS(800));
        // The increment is enough to make a move in time.
        let last = TimeBudget::new(&clock(200, 1000, None), MS(50)).unwrap();
        assert!(last.hard <= MS(75) && last.soft > MS(50), "{last:?}");
    }

    #[test]
    fn less_than_the_overhead_is_no_time_at_all() {
        for moves_to_go in [None, Some(1), Some(40)] {
            let budget = TimeBudget::new(&clock(10, 0, moves_to_go), MS(100)).unwrap();
            assert_eq!((budget.soft, budget.hard), (MS(0), MS(0)));
        }
        let some = TimeBudget::new(&clock(10, 0, None), MS(0)).unwrap();
        assert!(some.soft > MS(0) && some.hard <= MS(5), "{some:?}");
    }

    #[test]
    fn no_clock_is_too_long() {
        let limits = Limits {
            time: Some(Duration::MAX),
            increment: Duration::MAX,
            ..Limits::default()
        };
        let budget = TimeBudget::new(&limits, Duration::ZERO).unwrap();
        assert!(budget.hard <= LONGEST);
        let limits = Limits {
            move_time: Some(Duration::MAX),
            ..Limits::default()
        };
        let budget = TimeBudget::new(&limits, Duration::MAX).unwrap();
        assert_eq!(budget.hard, LONGEST / 2);
    }

    #[test]
    fn a_fixed_time_is_used_up() {
        let limits = Limits {
            move_time: Some(MS(1000)),
            ..Limits::default()
        };
        let budget = TimeBudget::new(&limits, MS(30)).unwrap();
        assert_eq!((budget.hard, budget.flexible), (MS(970), false));
        let limits = Limits {
            move_time: Some(MS(20)),
            ..limits
        };
        assert_eq!(TimeBudget::new(&limits, MS(30)).unwrap().hard, MS(10));
        assert_eq!(TimeBudget::new(&Limits::default(), MS(30)), None);
    }

    #[test]
    fn clear_choices_are_quick_and_troubled_ones_slow() {
        let clear = Stability {
            best_share: 0.95,
            stable: 1.0,
            fallen: 0.0,
        };
        let troubled = Stability {
            best_share: 0.3,
            stable: 0.0,
            fallen: 0.3,
        };
        assert!(clear.factor() < 0.6);
        assert!(troubled.factor() > 2.5);
        let budget = TimeBudget::new(&clock(60_000, 0, None), MS(50)).unwrap();
        let lost = Stability {
            best_share: 0.1,
            stable: 0.0,
            fallen: 0.6,
        };
        assert_eq!(budget.limit(lost), budget.hard);
        assert!(budget.limit(clear) < budget.soft.mul_f64(0.6));
        assert!(is_decided(1000, 500.0, 0.75));
        assert!(!is_decided(1000, 1000.0, 0.75));
        assert!(!is_decided(u32::MAX, 1.0, 0.0));
    }
}
