//! The sequential probability ratio test for pairs of games.

/// Number of pairs of each score that are added to the counts in advance, so that a few identical
/// pairs do not decide a test.
const BEFORE: f64 = 0.5;

/// Tests whether the Elo difference is `elo1` rather than `elo0`, using the generalised test for
/// game pairs (pentanomial) in Van den Bergh's approximation by mean and variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprt {
    /// The null hypothesis's Elo difference.
    pub elo0: f64,
    /// The alternative hypothesis's Elo difference.
    pub elo1: f64,
    /// Probability of a type I error: rejecting the null hypothesis although it is true.
    pub alpha: f64,
    /// Probability of a type II error: accepting the null hypothesis although the alternative is
    /// true.
    pub beta: f64,
}

impl Sprt {
    /// Returns the log-likelihood ratio, given the numbers of pairs with 0, ½, 1, 1½ and 2 points.
    pub fn llr(&self, pairs: &[u64; 5]) -> f64 {
        let count = pairs.iter().sum::<u64>() as f64;
        if count == 0.0 {
            return 0.0;
        }
        let weights = pairs.map(|pairs| pairs as f64 + BEFORE);
        let total: f64 = weights.iter().sum();
        let points = || (0..5).map(|half| f64::from(half) / 4.0).zip(weights);
        let mean = points().map(|(point, weight)| point * weight).sum::<f64>() / total;
        let variance = points()
            .map(|(point, weight)| weight * (point - mean).powi(2))
            .sum::<f64>()
            / total;
        let score = |elo: f64| 1.0 / (1.0 + 10f64.powf(-elo / 400.0));
        let (low, high) = (score(self.elo0), score(self.elo1));
        count * (high - low) * (2.0 * mean - low - high) / (2.0 * variance)
    }

    /// Returns the decision: true for `elo1`, false for `elo0`, or `None` if undecided.
    pub fn decision(&self, llr: f64) -> Option<bool> {
        let upper = ((1.0 - self.beta) / self.alpha).ln();
        let lower = (self.beta / (1.0 - self.alpha)).ln();
        if llr >= upper {
            return Some(true);
        }
        (llr <= lower).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Sprt = Sprt {
        elo0: 0.0,
        elo1: 10.0,
        alpha: 0.05,
        beta: 0.05,
    };

    #[test]
    fn a_clear_score_decides_and_an_even_one_leans_to_the_null() {
        assert_eq!(TEST.llr(&[0; 5]), 0.0);
        let even = TEST.llr(&[10, 20, 40, 20, 10]);
        assert!(even < 0.0 && TEST.decision(even).is_none(), "{even}");
        let better = TEST.llr(&[50, 150, 400, 300, 100]);
        assert_eq!(TEST.decision(better), Some(true), "{better}");
        let worse = TEST.llr(&[100, 300, 400, 150, 50]);
        assert_eq!(TEST.decision(worse), Some(false), "{worse}");
        // A score halfway between the hypotheses, 0.5072 or +5 Elo, supports neither of them.
        let between = TEST.llr(&[0, 9424, 20_000, 10_576, 0]);
        assert!(between.abs() < 0.2, "{between}");
    }

    #[test]
    fn equal_pairs_are_no_certainty() {
        for pairs in [[0, 0, 3, 0, 0], [0, 0, 0, 0, 4], [4, 0, 0, 0, 0]] {
            let llr = TEST.llr(&pairs);
            assert!(llr.is_finite() && TEST.decision(llr).is_none(), "{llr}");
        }
    }
}
