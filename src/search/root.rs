//! Settings that apply only to the root: a mate in one, temperature and noise for self-play, Gumbel
//! selection.

pub(crate) mod gumbel;
pub(crate) mod history;

use super::parameters::Parameters;
use crate::chess::{Game, mate_in_one};
use crate::play::Limits;
use crate::softmax::softmax;
use gumbel::Gumbel;
use rand::Rng;
use rand_distr::{Distribution, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use shakmaty::Move;
use std::borrow::Cow;

/// A logit that exceeds all others by this much leaves them no probability.
const CERTAIN: f32 = 100.0;

/// The root settings of one search.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// The number of the mating move, if any.
    mate: Option<usize>,
    /// The divisor of the logits, applied before the policy's own temperature.
    temperature: f32,
    policy_temperature: f32,
    /// The share and the distribution of the noise mixed into the policy.
    noise: Option<(f32, Vec<f32>)>,
    pub(crate) gumbel: Option<Gumbel>,
    /// Addends to the root moves' logits; empty adds nothing.
    shifts: Vec<f32>,
}

/// Returns whether a search needs a fresh root, because its root policy differs from the usual one.
pub(crate) fn needs_fresh_root(parameters: &Parameters) -> bool {
    parameters.noise_epsilon > 0.0
        || parameters.root_policy_temperature > 0.0
        || parameters.gumbel_moves > 0
}

/// Returns a search's random number generator, seeded from the seed and the length of the game.
pub(crate) fn generator(parameters: &Parameters, game: &Game) -> Xoshiro256PlusPlus {
    let ply = game.plies().len() as u64;
    Xoshiro256PlusPlus::seed_from_u64(parameters.seed ^ ply << 48)
}

impl Root {
    pub(crate) fn new(
        parameters: &Parameters,
        game: &Game,
        moves: &[Move],
        limits: &Limits,
        lines: usize,
    ) -> Root {
        let mate = mate_in_one(game.position(), moves);
        let mut random = generator(parameters, game);
        let epsilon = parameters.noise_epsilon;
        let noise = (epsilon > 0.0).then(|| {
            (
                epsilon,
                dirichlet(&mut random, parameters.noise_alpha, moves.len()),
            )
        });
        // Sequential halving depends on the number of visits.
        let visits = limits.nodes.filter(|_| parameters.gumbel_moves > 0);
        let gumbel = visits.map(|visits| {
            let considered = lines.max(parameters.gumbel_moves as usize);
            let visits = visits.saturating_sub(1).min(1 << 20) as usize;
            Gumbel::new(
                &mut random,
                moves.len(),
                considered,
                visits,
                parameters.gumbel_scale,
            )
        });
        Root {
            mate: moves.iter().position(|&mv| Some(mv) == mate),
            temperature: parameters.root_policy_temperature,
            policy_temperature: parameters.policy_temperature,
            noise,
            gumbel,
            shifts: Vec::new(),
        }
    }

    /// Returns the same settings without the mating move, which only the rules can prove.
    pub(crate) fn without_rules(self) -> Root {
        Root { mate: None, ..self }
    }

    /// Returns the same settings with a number to add to each root move's logit.
    pub(crate) fn with_shifts(self, shifts: Vec<f32>) -> Root {
        Root { shifts, ..self }
    }

    /// Returns the root moves' logits before division by the policy's temperature.
    pub(crate) fn logits<'a>(&self, logits: &'a [f32]) -> Cow<'a, [f32]> {
        let mut logits = Cow::Borrowed(logits);
        if !self.shifts.is_empty() {
            let shifted = logits.to_mut().iter_mut().zip(&self.shifts);
            shifted.for_each(|(logit, shift)| *logit += shift);
        }
        if self.temperature > 0.0 {
            let ratio = self.policy_temperature / self.temperature;
            logits.to_mut().iter_mut().for_each(|logit| *logit *= ratio);
        }
        if let Some((share, noise)) = &self.noise {
            let mut policy = logits.to_vec();
            softmax(&mut policy, self.policy_temperature);
            for (p, noise) in policy.iter_mut().zip(noise) {
                let mixed = *p * (1.0 - share) + noise * share;
                *p = mixed.max(f32::MIN_POSITIVE).ln() * self.policy_temperature;
            }
            logits = Cow::Owned(policy);
        }
        if let Some(number) = self.mate {
            let top = logits.iter().copied().fold(0.0, f32::max);
            logits.to_mut()[number] = top + CERTAIN;
        }
        logits
    }
}

/// Samples from a symmetric Dirichlet distribution.
fn dirichlet(random: &mut impl Rng, alpha: f32, count: usize) -> Vec<f32> {
    let Ok(gamma) = Gamma::new(alpha.max(1e-3), 1.0f32) else {
        return vec![1.0 / count.max(1) as f32; count];
    };
    let mut parts: Vec<f32> = (0..count).map(|_| gamma.sample(random)).collect();
    let sum: f32 = parts.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    parts.iter_mut().for_each(|part| *part /= sum);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::Position;

    fn policy(root: &Root, logits: &[f32], temperature: f32) -> Vec<f32> {
        let mut policy = root.logits(logits).into_owned();
        softmax(&mut policy, temperature);
        policy
    }

    fn root(parameters: &Parameters) -> Root {
        let game = Game::default();
        let moves = game.position().legal_moves();
        Root::new(parameters, &game, &moves, &Limits::default(), 1)
    }

    #[test]
    fn temperature_and_noise_change_the_policy_as_said() {
        let logits: Vec<f32> = (0..20).map(|number| number as f32 / 5.0).collect();
        let plain = Parameters::default();
        assert!(!needs_fresh_root(&plain));
        assert!(matches!(root(&plain).logits(&logits), Cow::Borrowed(_)));

        let flat = Parameters {
            root_policy_temperature: 3.0,
            ..plain.clone()
        };
        let mut expected = logits.clone();
        softmax(&mut expected, 3.0);
        let found = policy(&root(&flat), &logits, flat.policy_temperature);
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-5);
        }

        let noisy = Parameters {
            noise_epsilon: 0.25,
            ..plain.clone()
        };
        let mut plain_policy = logits.clone();
        softmax(&mut plain_policy, plain.policy_temperature);
        let found = policy(&root(&noisy), &logits, noisy.policy_temperature);
        let noise: Vec<f32> = found
            .iter()
            .zip(&plain_policy)
            .map(|(found, plain)| (found - 0.75 * plain) / 0.25)
            .collect();
        assert!((noise.iter().sum::<f32>() - 1.0).abs() < 1e-3);
        assert!(noise.iter().all(|&part| part > -1e-3));
        assert!(noise.iter().any(|&part| part > 0.1), "{noise:?}");
        let other = Parameters {
            seed: 9,
            ..noisy.clone()
        };
        assert_eq!(
            found,
            policy(&root(&noisy), &logits, noisy.policy_temperature)
        );
        assert_ne!(
            found,
            policy(&root(&other), &logits, noisy.policy_temperature)
        );
    }
}
