//! How attention learns where the squares are.

use super::config::{ModelConfig, PositionConfig};
use super::layers::{Linear, Norm};
use super::parameters::{Builder, Dense, Initial, Slot, Weights};
use super::size::Part;
use crate::nn::torch::fused;
use tch::Tensor;

/// Displacements between two squares: 15 files times 15 ranks.
const DISPLACEMENTS: i64 = 225;

/// Standard deviation of position vectors and biases at the start.
const INITIAL_DEVIATION: f64 = 0.02;

/// What a head's bias is worth at the start where its piece can go: six sevenths
/// of the attention of a rook's head lie on the lines that it moves along.
const INITIAL_BIAS: f32 = 3.0;

/// How much of GAB's biases depends on the board at the start.
const INITIAL_DYNAMIC_SHARE: f64 = 0.2;

/// Moves that heads start from: a head sees at first what stands where one kind
/// of piece could go from (or come from, which is the same but for pawns), so
/// that "attacked by" and "defended by" are there from the first step and need
/// not be found out square by square. Learning is free to change it.
const MOVES: [fn(i64, i64) -> bool; 6] = [
    |files, ranks| files == 0 || ranks == 0,
    |files, ranks| files.abs() == ranks.abs(),
    |files, ranks| (files * ranks).abs() == 2,
    |files, ranks| files.abs() <= 1 && ranks.abs() <= 1,
    |files, ranks| files.abs() == 1 && ranks == 1,
    |files, ranks| files.abs() == 1 && ranks == -1,
];

/// The move that a head of a layer starts from; every seventh head starts
/// without one.
fn initial_move(layer: i64, head: i64, heads: i64) -> Option<usize> {
    let number = (layer * heads + head) as usize % (MOVES.len() + 1);
    (number < MOVES.len()).then_some(number)
}

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

/// Files and ranks from square j to square i, by the displacement's index.
fn steps(displacement: i64) -> (i64, i64) {
    (displacement % 15 - 7, displacement / 15 - 7)
}

/// Biases by displacement and head, [225 · h], as a layer starts.
fn initial_table(layer: i64, heads: i64) -> Vec<f32> {
    (0..DISPLACEMENTS)
        .flat_map(|displacement| (0..heads).map(move |head| (steps(displacement), head)))
        .map(
            |((files, ranks), head)| match initial_move(layer, head, heads) {
                Some(number) if MOVES[number](files, ranks) => INITIAL_BIAS,
                _ => 0.0,
            },
        )
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
    /// The encoding of layer `layer`; `generator` holds the weights that all
    /// layers with GAB share.
    pub fn build(
        builder: &mut Builder,
        config: &ModelConfig,
        layer: i64,
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
                    wide,
                    squares: builder.linear("squares", squares, other),
                    summary: builder.linear("summary", summary, other),
                    summary_norm: builder.norm("summary_norm", hidden, true, GAB_EPSILON),
                    heads_of: builder.linear("heads", heads_of, other),
                    heads_norm: builder.norm_from(
                        "heads_norm",
                        heads * wide,
                        GAB_EPSILON,
                        Initial::Around(
                            vec![INITIAL_DYNAMIC_SHARE as f32; (heads * wide) as usize],
                            0.0,
                        ),
                        Some(Initial::Around(Gab::initial_heads(layer, heads, wide), 0.0)),
                    ),
                    generator,
                })
            }
            (PositionConfig::Relative, _) => {
                let start = Initial::Around(initial_table(layer, heads), INITIAL_DEVIATION);
                PositionEncoding::Relative {
                    bias: builder.add("bias", &[DISPLACEMENTS, heads], start),
                }
            }
            (PositionConfig::Shaw, _) => {
                builder.count_macs(3 * 64 * 64 * width);
                let shape = [DISPLACEMENTS, width];
                PositionEncoding::Shaw {
                    query: builder.add("query", &shape, initial.clone()),
                    key: builder.add("key", &shape, initial.clone()),
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
    wide: i64,
    squares: Linear,
    summary: Linear,
    summary_norm: Norm,
    heads_of: Linear,
    heads_norm: Norm,
    generator: Slot,
}

impl Gab {
    /// The weights that generate biases, shared by all layers. The first
    /// columns start as the [`MOVES`], the others at random.
    pub fn build_generator(builder: &mut Builder, wide: i64) -> Slot {
        let deviation = (2.0 / (wide + 64 * 64) as f64).sqrt();
        let mut values = vec![0.0; (64 * 64 * wide) as usize];
        for (pair, displacement) in displacements().into_iter().enumerate() {
            let (files, ranks) = steps(displacement);
            for (column, reaches) in MOVES.iter().enumerate().take(wide as usize) {
                if reaches(files, ranks) {
                    values[pair * wide as usize + column] = INITIAL_BIAS;
                }
            }
        }
        let initial = Initial::Around(values, deviation);
        builder.add("gab_generator.weight", &[64 * 64, wide], initial)
    }

    /// What the heads of a layer ask of the generator on every board: one of
    /// the moves each.
    fn initial_heads(layer: i64, heads: i64, wide: i64) -> Vec<f32> {
        let mut values = vec![0.0; (heads * wide) as usize];
        for head in 0..heads {
            if let Some(column) = initial_move(layer, head, heads).filter(|&m| (m as i64) < wide) {
                values[(head * wide) as usize + column] = 1.0;
            }
        }
        values
    }

    /// Biases [B · h, 64, 64] from tokens [B, 64, width], added to others
    /// [B · h, 4096] if there are.
    pub fn biases(&self, weights: &Weights, x: &Tensor, others: Option<&Tensor>) -> Tensor {
        let squares = self.squares.forward(weights, x).flatten(1, 2);
        let summary = self.summary.forward(weights, &squares).silu();
        let summary = self.summary_norm.forward(weights, &summary);
        let heads = self.heads_of.forward(weights, &summary).silu();
        let heads = self.heads_norm.forward(weights, &heads);
        let heads = heads.view([-1, self.wide]);
        let generator = &weights[self.generator];
        let biases = match others {
            // In one pass over the memory.
            Some(others) => others.addmm(&heads, &generator.tr()),
            None => heads.linear(generator, None::<&Tensor>),
        };
        biases.view([-1, 64, 64])
    }

    /// Numbers a head from which its biases are generated, and those of the
    /// board's summary.
    pub fn widths(&self, weights: &Weights) -> [i64; 2] {
        [self.wide, weights[self.summary.weight].size()[0]]
    }

    /// The same for a fused block.
    pub fn fused<'a>(&self, weights: &'a Weights) -> fused::Gab<'a> {
        fused::Gab {
            squares: &weights[self.squares.weight],
            summary: self.summary.fused(weights),
            summary_norm: self.summary_norm.centred(weights),
            heads: self.heads_of.fused(weights),
            heads_norm: self.heads_norm.centred(weights),
            epsilon: GAB_EPSILON,
            generator: &weights[self.generator],
        }
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

    #[test]
    fn heads_start_from_the_moves_of_pieces() {
        let table = initial_table(0, 8);
        let bias = |from: i64, to: i64, head: usize| {
            table[displacements()[(to * 64 + from) as usize] as usize * 8 + head]
        };
        let (a1, a8, b3, c3, b2) = (0, 56, 17, 18, 9);
        let reached = |to: i64| {
            (0..8)
                .map(|head| bias(a1, to, head) > 0.0)
                .collect::<Vec<_>>()
        };
        let heads = |numbers: &[usize]| {
            (0..8)
                .map(|head| numbers.contains(&head))
                .collect::<Vec<_>>()
        };
        // The eighth head begins again with the rook.
        assert_eq!(reached(a8), heads(&[0, 7]));
        assert_eq!(reached(b3), heads(&[2]));
        assert_eq!(reached(c3), heads(&[1]));
        // A pawn on a1 attacks b2, one on b2 does not attack a1.
        assert_eq!(reached(b2), heads(&[1, 3, 4]));
        assert_eq!(bias(b2, a1, 4), 0.0);
        assert_eq!(bias(b2, a1, 5), INITIAL_BIAS);
        // The next layer goes on where this one ended.
        assert_eq!(initial_move(1, 0, 8), Some(1));
        assert_eq!(initial_move(0, 6, 8), None);
    }
}
