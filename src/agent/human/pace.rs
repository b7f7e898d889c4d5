//! Human thinking times.
//!
//! The curve is not fitted, for lack of games with clock times. It follows from simple
//! observations: time is divided among the moves to come, moves that offer a choice take longer
//! than those that do not, stronger players distinguish more between the two, and thinking times
//! vary widely.
//!
//! time = even × (entropy / usual entropy)^(rating / 2000) × scatter

use crate::play::Limits;
use rand::Rng;
use rand_distr::{Distribution, LogNormal};
use std::time::Duration;

/// Number of moves among which the clock is divided, unless the time control states a number.
const MOVES: f64 = 40.0;
/// Share of the increment that is spent on a move.
const INCREMENT_SHARE: f64 = 0.75;
/// The policy's entropy in a typical position, in nats.
const USUAL_ENTROPY: f64 = 1.5;
/// Minimum entropy, which applies to forced moves and obvious recaptures.
const LEAST_ENTROPY: f64 = 0.15;
/// The rating at which thinking time is proportional to the entropy, …
const PROPORTIONAL_RATING: f64 = 2000.0;
/// … and the rating that is assumed if a player's rating is unknown.
const USUAL_RATING: u16 = 1500;
/// Standard deviation of the time's logarithm.
const SCATTER: f64 = 0.5;
/// Maximum share of the clock for one move.
const LARGEST_SHARE: f64 = 0.1;

/// Returns the time for a move with these `priors`, which sum to 1; `None` without a clock. The
/// time never exceeds a tenth of the clock less the `overhead`, nor a fixed time for the move.
pub fn thinking_time(
    limits: &Limits,
    overhead: Duration,
    rating: Option<u16>,
    priors: impl Iterator<Item = f32>,
    random: &mut impl Rng,
) -> Option<Duration> {
    let usable = limits.time.filter(|_| !limits.infinite)?;
    let usable = usable.saturating_sub(overhead).as_secs_f64();
    let moves = limits
        .moves_to_go
        .map_or(MOVES, |moves| f64::from(moves.max(1)));
    let even = usable / moves + INCREMENT_SHARE * limits.increment.as_secs_f64();
    let choice = entropy(priors).max(LEAST_ENTROPY) / USUAL_ENTROPY;
    let rating = f64::from(rating.unwrap_or(USUAL_RATING));
    let scatter = LogNormal::new(0.0, SCATTER).map_or(1.0, |scatter| scatter.sample(random));
    let time = even * choice.powf(rating / PROPORTIONAL_RATING) * scatter;
    let mut most = usable * LARGEST_SHARE;
    if let Some(fixed) = limits.move_time {
        most = most.min(fixed.saturating_sub(overhead).as_secs_f64());
    }
    Some(Duration::from_secs_f64(time.min(most).max(0.0)))
}

/// Returns the entropy in nats.
fn entropy(priors: impl Iterator<Item = f32>) -> f64 {
    let terms = priors.map(f64::from).filter(|&prior| prior > 0.0);
    -terms.map(|prior| prior * prior.ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    const OVERHEAD: Duration = Duration::from_millis(100);
    const HARD: [f32; 10] = [0.1; 10];
    const PLAIN: [f32; 2] = [0.99, 0.01];

    fn limits(milliseconds: u64, increment: u64) -> Limits {
        Limits {
            time: Some(Duration::from_millis(milliseconds)),
            increment: Duration::from_millis(increment),
            ..Limits::default()
        }
    }

    fn mean(limits: &Limits, rating: u16, priors: &[f32]) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let times = (0..1000).map(|_| {
            let priors = priors.iter().copied();
            thinking_time(limits, OVERHEAD, Some(rating), priors, &mut random)
        });
        times.map(|time| time.unwrap().as_secs_f64()).sum::<f64>() / 1000.0
    }

    #[test]
    fn choice_takes_time_and_strong_players_distinguish_more() {
        let clock = limits(300_000, 0);
        let ratio = |rating| mean(&clock, rating, &HARD) / mean(&clock, rating, &PLAIN);
        assert!(ratio(1200) > 2.0);
        assert!(ratio(2200) > 1.5 * ratio(1200));
        let even = mean(&clock, 1500, &HARD);
        assert!((5.0..20.0).contains(&even), "{even}");
        assert!(mean(&limits(300_000, 5000), 1500, &HARD) > even + 3.0);
    }

    #[test]
    fn without_a_clock_nobody_waits() {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let mut time =
            |limits: &Limits| thinking_time(limits, OVERHEAD, None, HARD.into_iter(), random);
        assert_eq!(time(&Limits::default()), None);
        let infinite = Limits {
            infinite: true,
            ..limits(1000, 0)
        };
        assert_eq!(time(&infinite), None);
        let fixed = Limits {
            move_time: Some(Duration::from_millis(150)),
            ..limits(300_000, 0)
        };
        assert!(time(&fixed).unwrap() <= Duration::from_millis(50));
    }

    /// Plays games of 400 moves, each of which costs the overhead in addition to the thinking time.
    #[test]
    fn the_clock_never_runs_out() {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(2);
        for (start, increment, overhead) in [
            (0, 0, 0),
            (1, 0, 0),
            (50, 50, 100),
            (100, 100, 100),
            (1000, 10, 10),
            (60_000, 0, 0),
            (180_000, 2000, 100),
            (u64::from(u32::MAX), 0, 100),
        ] {
            let mut clock = Duration::from_millis(start);
            let [increment, overhead] = [increment, overhead].map(Duration::from_millis);
            for ply in 0..400 {
                let limits = Limits {
                    time: Some(clock),
                    increment,
                    moves_to_go: (start % 2 == 0).then_some(40 - ply % 40),
                    ..Limits::default()
                };
                let time = thinking_time(&limits, overhead, Some(2500), HARD.into_iter(), random);
                let (time, usable) = (time.unwrap(), clock.saturating_sub(overhead));
                assert!(
                    time <= usable.mul_f64(1.001 * LARGEST_SHARE),
                    "{time:?} of {clock:?}"
                );
                clock = usable - time + increment;
            }
        }
    }
}
