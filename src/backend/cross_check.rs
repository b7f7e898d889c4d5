//! Compares two backends on every batch, like Lc0's `check` backend.

use super::{Backend, BackendError, Batch, Evaluations, Imagination, Properties};
use crate::softmax::softmax;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Evaluates with one backend and compares each result with that of a reference backend. The
/// largest differences are logged whenever one of them has doubled.
#[derive(Debug)]
pub struct CrossCheck<B, R> {
    backend: B,
    reference: R,
    found: Mutex<Found>,
}

/// A difference is logged again once it has grown by this factor.
const GROWTH: f32 = 2.0;

#[derive(Debug, Default)]
struct Found {
    worst: Differences,
    told: Differences,
}

/// Largest absolute differences between two backends over all compared positions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Differences {
    /// Number of compared positions.
    pub positions: u64,
    /// Difference in the probability of a legal move, in 0…1.
    pub policy: f32,
    /// Difference in the expected result [`Value::q`](super::Value::q), in 0…2.
    pub q: f32,
    /// Difference in the probability of a draw, in 0…1.
    pub d: f32,
    /// Difference in the moves left, in plies.
    pub moves_left: f32,
    /// Sums over the positions: the largest difference in the probability of a move, and the
    /// difference in the expected result.
    sums: [f32; 2],
}

impl Differences {
    /// Returns the differences between two evaluations of the same batch.
    pub(crate) fn between(one: &Evaluations, other: &Evaluations) -> Differences {
        let mut worst = Differences {
            positions: one.len() as u64,
            ..Differences::default()
        };
        let probabilities = |logits: &[f32]| {
            let mut probabilities = logits.to_vec();
            softmax(&mut probabilities, 1.0);
            probabilities
        };
        for index in 0..one.len() {
            let [here, there] = [one, other].map(|all| probabilities(all.logits(index)));
            let policy = here.iter().zip(&there).map(|(a, b)| (a - b).abs());
            let policy = policy.fold(0.0, f32::max);
            worst.policy = worst.policy.max(policy);
            let (here, there) = (one.value(index), other.value(index));
            let q = (here.q - there.q).abs();
            worst.q = worst.q.max(q);
            worst.sums = [worst.sums[0] + policy, worst.sums[1] + q];
            worst.d = worst.d.max((here.d - there.d).abs());
            worst.moves_left = worst
                .moves_left
                .max((here.moves_left - there.moves_left).abs());
        }
        worst
    }

    /// Returns the means over the positions of the largest difference in the probability of a move,
    /// and of the difference in the expected result.
    pub fn means(&self) -> [f32; 2] {
        self.sums.map(|sum| sum / self.positions.max(1) as f32)
    }

    /// Adds positions, and keeps the larger value of each difference.
    pub(crate) fn join(&mut self, other: Differences) {
        *self = Differences {
            positions: self.positions + other.positions,
            policy: self.policy.max(other.policy),
            q: self.q.max(other.q),
            d: self.d.max(other.d),
            moves_left: self.moves_left.max(other.moves_left),
            sums: [0, 1].map(|index| self.sums[index] + other.sums[index]),
        };
    }

    /// Returns whether any difference is much larger than in `before`.
    fn has_grown_since(&self, before: &Differences) -> bool {
        let grown = |now: f32, then: f32| now > GROWTH * then;
        grown(self.policy, before.policy)
            || grown(self.q, before.q)
            || grown(self.d, before.d)
            || grown(self.moves_left, before.moves_left)
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Differences {
            positions,
            policy,
            q,
            d,
            moves_left,
            sums: _,
        } = self;
        write!(
            formatter,
            "largest differences over {positions} positions: policy {policy:.6}, q {q:.6}, \
             draws {d:.6}, moves left {moves_left:.4}"
        )
    }
}

impl<B: Backend, R: Backend> CrossCheck<B, R> {
    /// Evaluates with `backend` and compares the results with those of `reference`, which must read
    /// the same inputs.
    pub fn new(backend: B, reference: R) -> CrossCheck<B, R> {
        CrossCheck {
            backend,
            reference,
            found: Mutex::default(),
        }
    }
}

impl<B: Backend, R: Backend> Backend for CrossCheck<B, R> {
    fn properties(&self) -> &Properties {
        self.backend.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        self.backend.evaluate(batch, out)?;
        let mut expected = Evaluations::default();
        self.reference.evaluate(batch, &mut expected)?;
        let differences = Differences::between(out, &expected);
        let mut found = self.found.lock();
        found.worst.join(differences);
        if found.worst.has_grown_since(&found.told) {
            found.told = found.worst;
            tracing::warn!("{}: {}", self.properties().name, found.worst);
        }
        Ok(())
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        self.backend.imagination()
    }

    fn forget(&self) {
        self.backend.forget();
        self.reference.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::{assert_same, positions};
    use crate::backend::{Random, Uniform};

    #[test]
    fn a_backend_does_not_differ_from_itself() {
        let check = CrossCheck::new(Random::new(1), Random::new(1));
        let batch = positions(30, false);
        assert_same(&check, &Random::new(1), &batch);
        let none = Differences {
            positions: 30,
            ..Differences::default()
        };
        assert_eq!(check.found.lock().worst, none);
    }

    #[test]
    fn the_worst_difference_of_all_batches_is_known() {
        let check = CrossCheck::new(Random::new(1), Uniform::default());
        let mut out = Evaluations::default();
        let mut worst = 0.0f32;
        for count in [5, 40] {
            check.evaluate(&positions(count, false), &mut out).unwrap();
            for index in 0..count {
                worst = worst.max(out.value(index).q.abs());
            }
        }
        let found = check.found.lock().worst;
        assert_eq!((found.positions, found.q), (45, worst));
        assert!(found.policy > 0.0 && found.policy < 1.0);
        assert!(found.to_string().contains("over 45 positions"), "{found}");
    }

    #[test]
    fn differences_are_told_when_they_have_grown_much() {
        let of = |q| Differences {
            q,
            ..Differences::default()
        };
        assert!(of(0.1).has_grown_since(&of(0.0)));
        assert!(of(0.3).has_grown_since(&of(0.1)));
        assert!(!of(0.15).has_grown_since(&of(0.1)));
    }
}
