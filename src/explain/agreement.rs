//! How far two attributions agree.

use super::{Gradients, Occlusion};
use serde::Serialize;

/// Spearman's rank correlation of occlusion and integrated gradients over the pieces
/// that could be removed: 1 is the same order, 0 none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Of what pieces are worth to the value; `None` of fewer than three pieces.
    pub value: Option<f32>,
    /// Of what they are worth to the logarithm of the move's probability, over the
    /// pieces without which it is still legal.
    #[serde(rename = "move")]
    pub mv: Option<f32>,
}

impl Agreement {
    /// The agreement of two attributions of the same position.
    pub(super) fn of(occlusion: &Occlusion, gradients: &Gradients) -> Agreement {
        let of_value = occlusion.pieces.iter().filter_map(|piece| {
            let worth = occlusion.q - piece.q?;
            Some((worth, gradients.value.squares[piece.square]))
        });
        let of_move = occlusion.pieces.iter().filter_map(|piece| {
            let worth = occlusion.prior.ln() - piece.prior?.ln();
            Some((worth, gradients.mv.squares[piece.square]))
        });
        let (one, other): (Vec<f32>, Vec<f32>) = of_value.unzip();
        let value = rank_correlation(&one, &other);
        let (one, other): (Vec<f32>, Vec<f32>) = of_move.unzip();
        Agreement {
            value,
            mv: rank_correlation(&one, &other),
        }
    }
}

/// Spearman's rank correlation; `None` of fewer than three pairs, and where one side is
/// the same everywhere.
#[must_use]
pub fn rank_correlation(one: &[f32], other: &[f32]) -> Option<f32> {
    let count = one.len().min(other.len());
    if count < 3 {
        return None;
    }
    let (one, other) = (ranks(&one[..count]), ranks(&other[..count]));
    let mean = (count as f64 - 1.0) / 2.0;
    let covariance = |a: &[f64], b: &[f64]| -> f64 {
        let products = a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean));
        products.sum()
    };
    let spread = (covariance(&one, &one) * covariance(&other, &other)).sqrt();
    (spread > 0.0).then(|| (covariance(&one, &other) / spread) as f32)
}

/// Ranks from 0; equal values share the mean of theirs.
fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = start as f64 + (tied.len() as f64 - 1.0) / 2.0;
        for &place in tied {
            ranks[place] = rank;
        }
        start += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_are_spearmans() {
        let close = |found: Option<f32>, expected: f32| (found.unwrap() - expected).abs() < 1e-6;
        assert!(close(
            rank_correlation(&[1.0, 2.0, 9.0], &[0.1, 0.2, 0.3]),
            1.0
        ));
        assert!(close(
            rank_correlation(&[1.0, 2.0, 9.0], &[3.0, 2.0, -1.0]),
            -1.0
        ));
        // By scipy.stats.spearmanr.
        let (one, other) = ([1.0, 2.0, 2.0, 4.0, 5.0], [2.0, 1.0, 3.0, 3.0, 7.0]);
        assert!(close(rank_correlation(&one, &other), 0.763_158));
        assert_eq!(rank_correlation(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(rank_correlation(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
    }
}
