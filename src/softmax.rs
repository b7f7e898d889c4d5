//! Conversion of logits to probabilities.

/// Replaces logits with probabilities at a temperature.
///
/// A temperature above 1 flattens the distribution. An empty slice stays empty.
pub fn softmax(logits: &mut [f32], temperature: f32) {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for logit in logits.iter_mut() {
        *logit = ((*logit - top) / temperature).exp();
        sum += *logit;
    }
    for probability in logits {
        *probability /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sums_to_one_and_flattens_with_temperature() {
        let mut sharp = [1.0, 3.0, -200.0];
        let mut flat = sharp;
        softmax(&mut sharp, 1.0);
        softmax(&mut flat, 4.0);
        for probabilities in [sharp, flat] {
            assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
        assert!(sharp[1] > flat[1] && flat[1] > flat[0]);
        softmax(&mut [], 1.0);
    }
}
