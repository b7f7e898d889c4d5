//! Sampling a move from probabilities.

use rand::Rng;

/// Samples a move from `probabilities`, which are in descending order and need not be normalised,
/// at a `temperature` above 0. Only the likeliest moves that together have the share `top_p` are
/// considered (nucleus sampling, Holtzman et al., "The Curious Case of Neural Text Degeneration",
/// 2020). Returns the move's index, or `None` if there are no moves.
pub(crate) fn sample(
    probabilities: &[f32],
    temperature: f32,
    top_p: f32,
    random: &mut impl Rng,
) -> Option<usize> {
    let greatest = f64::from(*probabilities.first()?).max(f64::MIN_POSITIVE);
    // Weights are relative to the greatest probability, so that no temperature rounds all of them
    // to 0.
    let weight = |&probability: &f32| {
        let ratio = f64::from(probability) / greatest;
        ratio.powf(1.0 / f64::from(temperature))
    };
    let mut weights: Vec<f64> = probabilities.iter().map(weight).collect();
    let mut nucleus = f64::from(top_p) * weights.iter().sum::<f64>();
    let kept = weights.iter().take_while(|&&weight| {
        let is_wanted = nucleus > 0.0;
        nucleus -= weight;
        is_wanted
    });
    let kept = kept.count().max(1);
    weights.truncate(kept);
    let mut left = random.random::<f64>() * weights.iter().sum::<f64>();
    let sampled = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    Some(sampled.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn moves_are_sampled_by_probability_temperature_and_top_p() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut shares = |temperature, top_p| {
            let mut counts = [0.0; 3];
            for _ in 0..4000 {
                let place = sample(&[0.6, 0.3, 0.1], temperature, top_p, &mut random);
                counts[place.unwrap()] += 1.0 / 4000.0;
            }
            counts
        };
        let near = |found: [f64; 3], expected: [f64; 3]| {
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(
                off.fold(0.0, f64::max) < 0.03,
                "{found:?}, not {expected:?}"
            );
        };
        near(shares(1.0, 1.0), [0.6, 0.3, 0.1]);
        near(shares(0.5, 1.0), [0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46]);
        near(shares(1e-3, 1.0), [1.0, 0.0, 0.0]);
        near(shares(1e6, 1.0), [1.0 / 3.0; 3]);
        near(shares(1.0, 0.85), [2.0 / 3.0, 1.0 / 3.0, 0.0]);
        near(shares(1.0, 0.5), [1.0, 0.0, 0.0]);
        // The temperature is applied first.
        near(shares(0.5, 0.75), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn odd_probabilities_are_no_panic() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        assert_eq!(sample(&[], 1.0, 1.0, &mut random), None);
        for probabilities in [[0.0, 0.0], [f32::NAN, 0.5], [1.0, f32::NAN]] {
            assert!(sample(&probabilities, 1.0, 0.9, &mut random).is_some());
        }
    }
}
