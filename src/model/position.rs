//! How attention learns where the squares are.

use super::config::{ModelConfig, PositionConfig};
use super::layers::{Linear, Norm};
use super::parameters::{Builder, Dense, Initial, Slot, Weights};
use super::size::Part;
use tch::Tensor;

/// Displacements between two squares: 15 files times 15 ranks.
const DISPLACEMENTS: i64 = 225;

/// Standard deviation of position vectors and biases at the start.
const INITIAL_DEVIATION: f64 = 0.02;

/// What the norms of GAB add to the variance; Lc0's smolgen has this fixed.
const GAB_EPSILON: f64 = 1e-3;

/// The displacement of each pair of squares (i, j), row by row: 64 · 64 indices
/// into tables of 225.
pub(super) fn displacements() -> Vec<i64> {
    let pairs = (0..64i64).flat_map(|i| (0..64i64).map(move |j| (i, j)));
    pairs
        .map(|(i, j)| (i / 8 - j / 8 + 7) * 15 + (i % 8 - j % 8 + 7))
        .collect()
}

/// One layer's position encoding.
#[derive(Debug)]
pub(super) enum PositionEncoding {
    Absolute { offset: Slot },
    Relative { bias: Slot },
    Shaw { query: Slot, key: Slot, value: Slot },
    Gab(Gab),
}

impl PositionEncoding {
    /// `generator` holds the weights that all layers with GAB share.
    pub fn build(
        builder: &mut Builder,
        config: &ModelConfig,
        generator: Option<Slot>,
    ) -> PositionEncoding {
        let initial = Initial::Normal(INITIAL_DEVIATION);
        let (width, heads) = (config.width, config.heads);
        builder.scope("position", |builder| match (&config.position, generator) {
            (
                &PositionConfig::Gab {
                    compress,
                    hidden,
                    generator: wide,
                },
                Some(generator),
            ) => {
                let other = Part::Other;
                let squares = Dense::per_token(width, compress).without_bias();
                let summary = Dense::per_board(64 * compress, hidden);
                let heads_of = Dense::per_board(hidden, heads * wide);
                builder.count_macs(heads * wide * 64 * 64);
                PositionEncoding::Gab(Gab {
                    heads,
                    wide,
                    squares: builder.linear("squares", squares, other),
                    summary: builder.linear("summary", summary, other),
                    summary_norm: builder.norm("summary_norm", hidden, true, GAB_EPSILON),
                    heads_of: builder.linear("heads", heads_of, other),
                    heads_norm: builder.norm("heads_norm", heads * wide, true, GAB_EPSILON),
                    generator,
                })
            }
            (PositionConfig::Relative, _) => PositionEncoding::Relative {
                bias: builder.add("bias", &[DISPLACEMENTS, heads], initial),
            },
            (PositionConfig::Shaw, _) => {
                builder.count_macs(3 * 64 * 64 * width);
                let shape = [DISPLACEMENTS, width];
                PositionEncoding::Shaw {
                    query: builder.add("query", &shape, initial),
                    key: builder.add("key", &shape, initial),
                    value: builder.add("value", &shape, initial),
                }
            }
            (PositionConfig::Absolute | PositionConfig::Gab { .. }, _) => {
                PositionEncoding::Absolute {
                    offset: builder.add("offset", &[64, width], initial),
                }
            }
        })
    }
}

/// Geometric attention bias: the board, compressed, generates h × 64 × 64
/// biases for the attention logits. Centred norms and SiLU are what Lc0's
/// smolgen can express.
#[derive(Debug)]
pub(super) struct Gab {
    heads: i64,
    wide: i64,
    squares: Linear,
    summary: Linear,
    summary_norm: Norm,
    heads_of: Linear,
    heads_norm: Norm,
    generator: Slot,
}

impl Gab {
    /// The weights that generate biases, shared by all layers.
    pub fn build_generator(builder: &mut Builder, wide: i64) -> Slot {
        let deviation = (2.0 / (wide + 64 * 64) as f64).sqrt();
        let initial = Initial::Normal(deviation);
        builder.add("gab_generator.weight", &[64 * 64, wide], initial)
    }

    /// Biases [B · h, 64, 64] from tokens [B, 64, width].
    pub fn biases(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let squares = self.squares.forward(weights, x).flatten(1, 2);
        let summary = self.summary.forward(weights, &squares).silu();
        let summary = self.summary_norm.forward(weights, &summary);
        let heads = self.heads_of.forward(weights, &summary).silu();
        let heads = self.heads_norm.forward(weights, &heads);
        heads
            .view([-1, self.heads, self.wide])
            .linear(&weights[self.generator], None::<&Tensor>)
            .view([-1, 64, 64])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displacements_are_shared_by_pairs_alike() {
        let table = displacements();
        let at = |i: usize, j: usize| table[i * 64 + j];
        assert_eq!(at(0, 9), at(9, 18));
        assert_ne!(at(0, 9), at(9, 0));
        assert_ne!(at(0, 8), at(0, 1));
        let mut distinct = table.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct, (0..DISPLACEMENTS).collect::<Vec<_>>());
    }
}
