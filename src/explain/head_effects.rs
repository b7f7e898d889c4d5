//! The effect of each attention head over positions of many games.

use super::ExplainError;
use super::ablation::{first, policy_divergence};
use super::evaluator::{Evaluated, Evaluator};
use crate::chess::Game;
use crate::eval::move_match::{Interval, over_games};
use crate::network::Network;
use serde::Serialize;

/// Minimum number of positions, because a mean of one has no interval.
const LEAST: usize = 2;

/// The effect of one attention head: the changes of the network's outputs when the head's part of
/// its layer's output is set to zero, as means over positions with 95 % intervals.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeadEffect {
    /// The head's layer, numbered from 1.
    pub layer: usize,
    /// The head's number in the layer, starting from 1.
    pub head: usize,
    /// Kullback–Leibler divergence of the policy from the policy without the head, in nats.
    pub divergence: Interval,
    /// Absolute change of the expected result, 0…2.
    pub q: Interval,
    /// Fraction of the positions in which the most probable move changes.
    pub changed: Interval,
}

/// Measures the effects of a network's attention heads over positions of different games, none of
/// which is over. The heads with the greatest divergence come first. `tell` receives each head's
/// layer and number before it is measured.
///
/// The intervals of the means are those of a bootstrap over the games, and those of fractions are
/// Wilson's.
///
/// # Errors
/// [`ExplainError`] if the network has no attention heads or cannot play, or if there are fewer than
/// two positions.
pub fn head_effects(
    network: &Network,
    games: &[Game],
    mut tell: impl FnMut(usize, usize),
) -> Result<Vec<HeadEffect>, ExplainError> {
    if games.len() < LEAST {
        return Err(ExplainError::TooFewPositions(LEAST));
    }
    let evaluator = Evaluator::new(network)?;
    let architecture = &network.architecture;
    let without = |layer, head| architecture.without_head(&network.weights, layer, head);
    if without(0, 0).is_none() {
        return Err(ExplainError::NoAttention(network.about.name.clone()));
    }
    let whole = evaluator.evaluate(games)?;
    let mut effects = Vec::new();
    for layer in 0.. {
        let before = effects.len();
        for head in 0.. {
            let Some(weights) = without(layer, head) else {
                break;
            };
            tell(layer + 1, head + 1);
            let without = evaluator.evaluate_with(&weights, games)?;
            let over = |change: &dyn Fn(&Evaluated, &Evaluated) -> f64| {
                let pairs = whole.iter().zip(&without);
                let changes = pairs.map(|(whole, without)| (change(whole, without), 1.0));
                over_games(&changes.collect::<Vec<_>>())
            };
            let pairs = whole.iter().zip(&without);
            let changed = pairs.filter(|(whole, without)| first(whole) != first(without));
            let changed = changed.count();
            effects.push(HeadEffect {
                layer: layer + 1,
                head: head + 1,
                divergence: over(&|whole, without| f64::from(policy_divergence(whole, without))),
                q: over(&|whole, without| {
                    f64::from((whole.evaluation.q - without.evaluation.q).abs())
                }),
                changed: fraction(changed, games.len()),
            });
        }
        if effects.len() == before {
            break;
        }
    }
    effects.sort_by(|a, b| b.divergence.mean.total_cmp(&a.divergence.mean));
    Ok(effects)
}

/// Returns the fraction of `count` in `total`, with Wilson's 95 % interval, which is right even if
/// the fraction is 0.
fn fraction(count: usize, total: usize) -> Interval {
    /// The 97.5 % quantile of the normal distribution.
    const Z: f64 = 1.96;
    let total = total as f64;
    let mean = count as f64 / total;
    let shrunk = 1.0 + Z * Z / total;
    let middle = (mean + Z * Z / (2.0 * total)) / shrunk;
    let variance = mean * (1.0 - mean) / total + Z * Z / (4.0 * total * total);
    let half = Z * variance.sqrt() / shrunk;
    Interval {
        mean,
        low: (middle - half).max(0.0),
        high: (middle + half).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_fractions_are_open_at_the_ends() {
        let found = fraction(75, 100);
        assert!((found.low - 0.657).abs() < 1e-3 && (found.high - 0.825).abs() < 1e-3);
        let none = fraction(0, 200);
        assert_eq!((none.mean, none.low), (0.0, 0.0));
        assert!((0.018..0.02).contains(&none.high), "{none:?}");
        let all = fraction(200, 200);
        assert!(all.low < 1.0 && all.high > 0.9999, "{all:?}");
    }
}
