//! The short search of stronger levels.
//!
//! A policy that imitates strong players blunders more often than they do, because it does not
//! calculate. Above a certain rating, a search evaluates the moves, and the policy is shifted
//! towards the best ones, as in piKL (Jacob et al., "Modeling Strong and Human-Like Gameplay with
//! KL-Regularized Search", 2022). The sampled policy is proportional to prior × exp(Q / λ), which
//! maximises the expected result less λ times the divergence from the human policy. As in ALLIE
//! (Zhang et al., "Human-Aligned Chess with a Bit of Search", 2024), the number of visits grows
//! with the rating. λ falls from infinity as the rating rises, so there is no jump between levels.

use crate::play::{Limits, MoveStatistics};
use crate::search::Parameters;
use crate::tablebase::Tablebase;
use std::time::Duration;

/// The highest rating at which the policy plays alone. Up to this rating, its mistakes are as large
/// as people's (`bench/human-mistakes`).
const POLICY_REACH: u16 = 1400;
/// Number of visits just above that rating, …
const FIRST_VISITS: f64 = 8.0;
/// … and the number of rating points that double it.
const DOUBLING: f64 = 200.0;
/// Maximum number of visits, for ratings above all levels.
const MOST_VISITS: f64 = 4096.0;
/// The number of rating points above [`POLICY_REACH`] at which λ is 1, the value of a win. If one
/// move's value exceeds another's by λ, the odds between them are e times those of the priors. At
/// twice as many points, λ is half as large.
const LAMBDA_POINTS: f32 = 100.0;

/// The search effort at a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effort {
    visits: u64,
    /// λ, in units of the expected result W − L.
    lambda: f32,
}

impl Effort {
    /// Returns the effort at a rating, or `None` if the policy answers alone.
    pub(super) fn of(rating: Option<u16>) -> Option<Effort> {
        let above = rating?
            .checked_sub(POLICY_REACH)
            .filter(|&above| above > 0)?;
        let visits = FIRST_VISITS * (f64::from(above) / DOUBLING).exp2();
        Some(Effort {
            visits: visits.min(MOST_VISITS) as u64,
            lambda: LAMBDA_POINTS / f32::from(above),
        })
    }

    /// Returns the limits of the search: the level's visits, and the limits of the question. The
    /// question's clock is ignored in an infinite analysis.
    pub(super) fn limits(self, limits: &Limits) -> Limits {
        let clock = |time: Option<Duration>| time.filter(|_| !limits.infinite);
        Limits {
            nodes: Some(self.visits.min(limits.nodes.unwrap_or(u64::MAX))),
            time: clock(limits.time),
            move_time: clock(limits.move_time),
            infinite: false,
            ponder: false,
            ..limits.clone()
        }
    }

    /// Replaces the priors of a search's root moves with the shifted policy, likeliest move first.
    pub(super) fn shift(self, moves: &mut [MoveStatistics]) {
        // Unvisited moves get the mean value of the visited moves, weighted by prior.
        let visited = moves.iter().filter(|of| of.visits > 0);
        let (value, prior) = visited.fold((0.0, 0.0), |(value, prior), of| {
            (value + of.prior * of.q, prior + of.prior)
        });
        let mean = value / f32::max(prior, f32::MIN_POSITIVE);
        let advantage = |of: &MoveStatistics| match of.visits {
            0 => 0.0,
            _ => of.q - mean,
        };
        let mut sum = 0.0;
        for of in moves.iter_mut() {
            of.prior *= (advantage(of) / self.lambda).exp();
            sum += of.prior;
        }
        for of in moves.iter_mut() {
            of.prior /= f32::max(sum, f32::MIN_POSITIVE);
        }
        moves.sort_by(|a, b| b.prior.total_cmp(&a.prior));
    }
}

/// Returns the search's parameters: the priors are the human policy itself, tablebases are off, and
/// a single thread makes the search deterministic.
pub(super) fn parameters(parameters: &Parameters) -> Parameters {
    Parameters {
        threads: 1,
        policy_temperature: 1.0,
        root_policy_temperature: 0.0,
        noise_epsilon: 0.0,
        gumbel_moves: 0,
        temperature: 0.0,
        // A level plays the same regardless of the number of lines it reports.
        multi_pv: 1,
        // People miss mates.
        mate_search: false,
        tablebase: Tablebase::default(),
        ..parameters.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::play::Score;
    use shakmaty::Position;

    fn visits(rating: u16) -> Option<u64> {
        Effort::of(Some(rating)).map(|effort| effort.visits)
    }

    #[test]
    fn visits_grow_beyond_the_reach_of_the_policy() {
        assert_eq!(Effort::of(None), None);
        assert_eq!(visits(POLICY_REACH), None);
        assert_eq!(visits(POLICY_REACH + 200), Some(16));
        assert_eq!(visits(POLICY_REACH + 800), Some(128));
        assert_eq!(visits(u16::MAX), Some(MOST_VISITS as u64));
        let lambda = |rating| Effort::of(Some(rating)).map(|effort| effort.lambda);
        assert_eq!(lambda(POLICY_REACH + 1), Some(100.0));
        assert_eq!(lambda(POLICY_REACH + 400), Some(0.25));
    }

    #[test]
    fn no_clock_holds_up_an_analysis() {
        let limits = Limits {
            time: Some(Duration::ZERO),
            move_time: Some(Duration::ZERO),
            ..Limits::default()
        };
        let effort = Effort::of(Some(2000)).unwrap();
        assert_eq!(effort.limits(&limits).time, Some(Duration::ZERO));
        let analysis = Limits {
            infinite: true,
            ..limits
        };
        let of_search = effort.limits(&analysis);
        assert_eq!((of_search.time, of_search.move_time), (None, None));
    }

    #[test]
    fn better_moves_gain_and_unvisited_ones_stay() {
        let moves = Game::default().position().legal_moves();
        let values = [(0.5, 10, 0.0), (0.3, 10, 0.1), (0.2, 0, 0.0)];
        let mut statistics: Vec<_> = moves
            .iter()
            .zip(values)
            .map(|(&mv, (prior, visits, q))| MoveStatistics {
                mv,
                visits,
                prior,
                q,
                wdl: [0.0, 1.0, 0.0],
                moves_left: None,
                score: Score::Expected(q),
            })
            .collect();
        let lambda = 0.1;
        let visits = 20;
        Effort { visits, lambda }.shift(&mut statistics);
        let sum: f32 = statistics.iter().map(|of| of.prior).sum();
        assert!((sum - 1.0).abs() < 1e-6);
        let prior = |place: usize| {
            let of = statistics.iter().find(|of| of.mv == moves[place]);
            of.unwrap().prior
        };
        // The second move is better by a tenth, so its odds against the first grow by a factor of
        // e.
        assert!((prior(1) / prior(0) / (0.3 / 0.5) - 1f32.exp()).abs() < 1e-4);
        assert_eq!(statistics[0].mv, moves[1]);
        let mean = 0.3 * 0.1 / 0.8;
        assert!((prior(2) / prior(0) / (0.2 / 0.5) - (mean / lambda).exp()).abs() < 1e-4);
    }
}
