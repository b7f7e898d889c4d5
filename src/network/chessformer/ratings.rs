//! The players' ratings as soft embeddings, as in Maia-3.
//!
//! Each of the two players has a learned vector for a weak player and one for a strong player, and
//! a rating interpolates linearly between the two. A rating therefore generalises from games of
//! weaker and of stronger players. Maia-3 concatenates the interpolated vectors to the features of
//! every square before the projection; adding vectors of the token's width after the projection
//! computes the same function.
//!
//! Maia-3 has no vector for an unknown rating. Here each player also has a vector for an unknown
//! rating, so that games without ratings, and variations, can be used for training.

use crate::network::parameters::{Builder, Initial, Slot, Weights};
use tch::Tensor;

/// The rating that corresponds to the strong vector. The weak vector corresponds to 0. Higher
/// ratings are clamped.
pub(super) const STRONGEST: i64 = 5000;

/// The embedding of both players' ratings.
#[derive(Debug)]
pub(super) struct RatingEmbedding {
    /// The embeddings of the side to move and of the opponent.
    pub players: [PlayerEmbedding; 2],
}

/// The vectors of one player, each `[width]`.
#[derive(Debug)]
pub(super) struct PlayerEmbedding {
    pub weak: Slot,
    pub strong: Slot,
    pub unknown: Slot,
}

impl RatingEmbedding {
    /// Builds vectors that start at zero, so that a network that gains ratings starts as the same
    /// function.
    pub fn build(builder: &mut Builder, width: i64) -> RatingEmbedding {
        builder.scope("ratings", |builder| RatingEmbedding {
            players: ["mover", "opponent"].map(|player| {
                builder.scope(player, |builder| {
                    let mut add = |name| builder.add(name, &[width], Initial::Zeros);
                    PlayerEmbedding {
                        weak: add("weak"),
                        strong: add("strong"),
                        unknown: add("unknown"),
                    }
                })
            }),
        })
    }

    /// Returns the vectors [B, 1, width] that the mover's and the opponent's ratings [B, 2] add to
    /// every token.
    pub fn forward(&self, weights: &Weights, ratings: &Tensor) -> Tensor {
        let [mover, opponent] = [0, 1].map(|index| {
            let rating = ratings.narrow(1, index, 1);
            self.players[index as usize].forward(weights, &rating)
        });
        (mover + opponent).unsqueeze(1)
    }

    /// Returns the vector `[width]` that is added to every token if both ratings are unknown.
    pub fn unknown(&self, weights: &Weights) -> Tensor {
        let [mover, opponent] = &self.players;
        &weights[mover.unknown] + &weights[opponent.unknown]
    }
}

impl PlayerEmbedding {
    /// Returns the vectors [B, width] of ratings [B, 1]. A rating of 0 is unknown.
    fn forward(&self, weights: &Weights, rating: &Tensor) -> Tensor {
        let weak = &weights[self.weak];
        // bf16 rounds ratings to multiples of 8 from 1024 to 2048, and to multiples of 16 up to
        // 4096.
        let share = rating.clamp(0, STRONGEST).type_as(weak) / STRONGEST as f64;
        let blend = weak + share * (&weights[self.strong] - weak);
        blend.where_self(&rating.gt(0), &weights[self.unknown])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    const WEAK: f64 = -1.0;
    const STRONG: f64 = 4.0;
    const UNKNOWN: f64 = 7.0;

    /// Returns the vector that both ratings add to a token of width 1. The opponent's vectors are
    /// 100 times the mover's.
    fn embed(ratings: &[[i64; 2]]) -> Vec<f64> {
        let mut builder = Builder::default();
        let embedding = RatingEmbedding::build(&mut builder, 1);
        let mover = [WEAK, STRONG, UNKNOWN];
        let vectors = mover.into_iter().chain(mover.map(|value| 100.0 * value));
        let weights = vectors.map(|value| Tensor::from_slice(&[value as f32]));
        let weights = Weights::new(weights.collect());
        let ratings = Tensor::from_slice(&ratings.concat()).view([-1, 2]);
        let unknown = embedding.unknown(&weights).double_value(&[0]);
        assert_eq!(unknown, 101.0 * UNKNOWN);
        Vec::try_from(
            embedding
                .forward(&weights, &ratings)
                .reshape([-1])
                .to_kind(Kind::Double),
        )
        .unwrap()
    }

    #[test]
    fn ratings_blend_the_vectors_of_weak_and_strong_players() {
        let found = embed(&[
            [5000, 5000],
            [2500, 5000],
            [1000, 4000],
            [9000, 2500],
            [0, 5000],
            [2500, 0],
            [0, 0],
        ]);
        let blend = |share: f64| WEAK + share * (STRONG - WEAK);
        let expected = [
            blend(1.0) + 100.0 * blend(1.0),
            blend(0.5) + 100.0 * blend(1.0),
            blend(0.2) + 100.0 * blend(0.8),
            blend(1.0) + 100.0 * blend(0.5),
            UNKNOWN + 100.0 * blend(1.0),
            blend(0.5) + 100.0 * UNKNOWN,
            101.0 * UNKNOWN,
        ];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
        }
    }
}
