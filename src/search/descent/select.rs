//! Selection: how the visits that reach a node are distributed among its moves.
//!
//! The rule is Lc0's PUCT. A descent carries many visits, and each move receives as many of them in
//! one step as it would if they were made one by one. Lc0 took this idea from Ceres.

use crate::search::numeric::ln;
use crate::search::parameters::{FpuStrategy, Parameters};
use crate::search::tree::arena::Index;
use std::cmp::Reverse;

/// A move that may receive visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The move's edge; 0 if it has none yet.
    pub(crate) edge: Index,
    /// The value for the player to move; for an unvisited move, the first-play urgency.
    pub(crate) q: f32,
    pub(crate) prior: f32,
    /// Visits completed and in flight.
    pub(crate) started: u32,
    /// Visits assigned in this step.
    pub(crate) given: u32,
    /// The score that selection maximises; −∞ for a proven move, which needs no visits.
    score: f32,
}

/// Returns the exploration factor of a node, cpuct(N)·√max(N − 1, 1), in which cpuct grows with the
/// logarithm of the visits.
pub(crate) fn exploration(parameters: &Parameters, visits: u32) -> f32 {
    let n = visits as f32;
    let base = parameters.cpuct_base.max(1.0);
    let cpuct = parameters.cpuct + parameters.cpuct_factor * ln((n + base) / base);
    cpuct * (n - 1.0).max(1.0).sqrt()
}

/// Returns the first-play urgency, which is the assumed value of an unvisited move. By default it
/// is below the position's own value, and it decreases as more of the policy is tried.
pub(crate) fn first_play_urgency(parameters: &Parameters, own: f32, visited_policy: f32) -> f32 {
    let value = parameters.fpu_value;
    match parameters.fpu_strategy {
        FpuStrategy::Reduction => own - value * visited_policy.sqrt(),
        FpuStrategy::Absolute => value,
    }
}

/// Moves that have no visits yet, in descending order of prior.
pub(crate) trait Untried {
    /// Returns an upper bound on the prior of the next move.
    fn bound(&self) -> f32;
    /// Returns the prior of the next move.
    fn next(&mut self) -> Option<f32>;
}

/// Distributes `visits` among the candidates, adding untried moves as soon as they could be
/// selected.
pub(crate) fn share_out(
    candidates: &mut Vec<Candidate>,
    untried: &mut impl Untried,
    fpu: f32,
    exploration: f32,
    mut visits: u32,
) {
    while visits > 0 {
        let (mut best, mut first, mut second) = (None, f32::NEG_INFINITY, f32::NEG_INFINITY);
        for (number, candidate) in candidates.iter().enumerate() {
            let score = candidate.score;
            if score > first {
                (second, first) = (first, score);
                best = Some(number);
            } else if score > second {
                second = score;
            }
        }
        // An untried move matters if it could come first or second.
        if fpu + exploration * untried.bound() > second
            && let Some(prior) = untried.next()
        {
            let mut candidate = Candidate::new(0, prior, 0);
            candidate.q = fpu;
            candidate.rate(exploration);
            candidates.push(candidate);
            continue;
        }
        let Some(best) = best else {
            // Every move is proven, so the best one takes the remaining visits.
            let best = candidates.iter_mut().max_by(|a, b| a.q.total_cmp(&b.q));
            if let Some(best) = best {
                best.given += visits;
            }
            return;
        };
        let candidate = &mut candidates[best];
        let given = candidate.visits_until(second, exploration).min(visits);
        candidate.started += given;
        candidate.given += given;
        candidate.rate(exploration);
        visits -= given;
    }
}

/// Gives a visit to each move that should be shown as a line but is untried or has fewer visits
/// than a line's minimum; returns the number of visits given. Lines are the most visited unproven
/// moves.
pub(crate) fn visit_lines(
    candidates: &mut Vec<Candidate>,
    untried: &mut impl Untried,
    fpu: f32,
    exploration: f32,
    (lines, least): (usize, u32),
    visits: u32,
) -> u32 {
    let is_open = |&number: &usize| candidates[number].score > f32::NEG_INFINITY;
    let mut open: Vec<usize> = (0..candidates.len()).filter(is_open).collect();
    open.sort_by_key(|&number| Reverse(candidates[number].started));
    open.truncate(lines);
    let mut left = visits;
    for _ in open.len()..lines {
        if left == 0 {
            break;
        }
        let Some(prior) = untried.next() else { break };
        let mut candidate = Candidate::new(0, prior, 0);
        candidate.q = fpu;
        candidate.give(exploration);
        candidates.push(candidate);
        left -= 1;
    }
    for number in open {
        let candidate = &mut candidates[number];
        if left > 0 && candidate.started < least {
            candidate.give(exploration);
            left -= 1;
        }
    }
    visits - left
}

impl Candidate {
    /// Returns a candidate with this many visits completed and in flight, valued as a draw. It
    /// receives no visits until it is rated.
    pub(crate) fn new(edge: Index, prior: f32, started: u32) -> Candidate {
        Candidate {
            edge,
            q: 0.0,
            prior,
            started,
            given: 0,
            score: f32::NEG_INFINITY,
        }
    }

    /// Assigns one visit to the candidate.
    fn give(&mut self, exploration: f32) {
        self.started += 1;
        self.given += 1;
        self.rate(exploration);
    }

    /// Updates the score: Q + U.
    pub(crate) fn rate(&mut self, exploration: f32) {
        self.score = self.q + exploration * self.prior / (1 + self.started) as f32;
    }

    /// Returns the number of visits after which this candidate no longer scores above `rival`.
    fn visits_until(&self, rival: f32, exploration: f32) -> u32 {
        if self.q >= rival {
            return u32::MAX;
        }
        let total = exploration * self.prior / (rival - self.q);
        let more = total - (1 + self.started) as f32;
        // The cast saturates, and at least one visit is due.
        (more as u32).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct List {
        priors: std::vec::IntoIter<f32>,
        bound: f32,
    }

    impl Untried for List {
        fn bound(&self) -> f32 {
            self.bound
        }

        fn next(&mut self) -> Option<f32> {
            let next = self.priors.next();
            self.bound = next.unwrap_or(f32::NEG_INFINITY);
            next
        }
    }

    fn candidate(q: f32, prior: f32, started: u32) -> Candidate {
        Candidate {
            q,
            ..Candidate::new(0, prior, started)
        }
    }

    fn one_by_one(all: &[Candidate], exploration: f32, visits: u32) -> Vec<u32> {
        let mut all = all.to_vec();
        for _ in 0..visits {
            let mut best = 0;
            for number in 1..all.len() {
                if all[number].score > all[best].score {
                    best = number;
                }
            }
            all[best].started += 1;
            all[best].given += 1;
            all[best].rate(exploration);
        }
        all.iter().map(|candidate| candidate.given).collect()
    }

    proptest! {
        /// Assigning many visits in one step gives the same result as assigning them one by one,
        /// and unvisited moves are left out only if they would not change the result.
        #[test]
        fn sharing_out_equals_visiting_one_by_one(
            tried in prop::collection::vec((-1.0f32..1.0, 1u32..50), 0..8),
            untried in 0usize..8,
            visits in 0u32..200,
            exploration in 0.1f32..40.0,
        ) {
            let fpu = -0.2;
            let total = tried.len() + untried;
            prop_assume!(total > 0);
            let prior = |number: usize| 0.4 / (1.0 + number as f32);
            let mut all: Vec<Candidate> = tried
                .iter()
                .enumerate()
                .map(|(number, &(q, started))| candidate(q, prior(number), started))
                .collect();
            let priors: Vec<f32> = (tried.len()..total).map(prior).collect();
            all.extend(priors.iter().map(|&prior| candidate(fpu, prior, 0)));
            all.iter_mut().for_each(|candidate| candidate.rate(exploration));
            let mut candidates = all[..tried.len()].to_vec();
            let mut list = List {
                priors: priors.into_iter(),
                bound: 1.0,
            };
            share_out(&mut candidates, &mut list, fpu, exploration, visits);
            let given: u32 = candidates.iter().map(|candidate| candidate.given).sum();
            prop_assert_eq!(given, visits);
            let expected = one_by_one(&all, exploration, visits);
            // On a tie, rounding may give a single visit to the neighbouring candidate.
            for (candidate, expected) in candidates.iter().zip(&expected) {
                prop_assert!(candidate.given.abs_diff(*expected) <= 1);
            }
            for &expected in &expected[candidates.len()..] {
                prop_assert!(expected <= 1);
            }
        }
    }

    #[test]
    fn lines_get_visits_until_each_has_the_least() {
        let mut candidates = vec![
            candidate(0.5, 0.5, 90),
            candidate(0.1, 0.2, 3),
            candidate(0.9, 0.1, 8),
        ];
        // The last candidate is proven.
        candidates[..2].iter_mut().for_each(|it| it.rate(1.0));
        let mut list = List {
            priors: vec![0.15, 0.05].into_iter(),
            bound: 1.0,
        };
        let mut visit = |candidates: &mut Vec<Candidate>, lines, visits| {
            visit_lines(candidates, &mut list, -0.2, 1.0, (lines, 5), visits)
        };
        // Untried moves come first, one at a time, as long as visits remain.
        assert_eq!(visit(&mut candidates, 2, 4), 1);
        assert_eq!(visit(&mut candidates, 3, 1), 1);
        assert_eq!(visit(&mut candidates, 9, 4), 3);
        let given: Vec<u32> = candidates.iter().map(|it| it.given).collect();
        assert_eq!(given, [0, 2, 0, 2, 1]);
        assert_eq!(visit(&mut candidates, 1, 4), 0);
    }

    #[test]
    fn proven_moves_get_nothing_while_others_are_open() {
        let lost = candidate(0.9, 0.9, 0);
        let mut other = candidate(-0.9, 0.9, 0);
        other.rate(1.0);
        let mut none = List {
            priors: Vec::new().into_iter(),
            bound: f32::NEG_INFINITY,
        };
        let mut candidates = vec![lost, other];
        share_out(&mut candidates, &mut none, 0.0, 1.0, 5);
        assert_eq!((candidates[0].given, candidates[1].given), (0, 5));
    }

    #[test]
    fn lc0s_constants_give_lc0s_numbers() {
        let parameters = Parameters::default();
        // 1.745 + 3.894·ln((10000 + 38739) / 38739), multiplied by √9999.
        let expected = (1.745 + 3.894 * (48739.0f32 / 38739.0).ln()) * 9999f32.sqrt();
        assert!((exploration(&parameters, 10_000) - expected).abs() < 1e-2);
        assert_eq!(exploration(&parameters, 0), parameters.cpuct);
    }

    #[test]
    fn unvisited_moves_have_a_reduced_or_an_absolute_value() {
        let reduced = Parameters::default();
        let urgency = |parameters: &Parameters| first_play_urgency(parameters, 0.1, 0.25);
        assert!((urgency(&reduced) - (0.1 - 0.33 * 0.5)).abs() < 1e-6);
        let absolute = Parameters {
            fpu_strategy: FpuStrategy::Absolute,
            ..reduced
        };
        assert_eq!(urgency(&absolute), 0.33);
    }
}
