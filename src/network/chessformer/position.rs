//! Position encodings of Chessformers and their initial values.

use crate::network::config::chessformer::{ModelConfig, PositionConfig};
use crate::network::encoder::{
    DISPLACEMENTS, GAB_EPSILON, Gab, PositionEncoding, displacements, steps,
};
use crate::network::layers::Activation;
use crate::network::parameters::{Builder, Dense, Initial, Slot};
use crate::network::size::Part;

/// Initial standard deviation of position vectors and biases.
const INITIAL_DEVIATION: f64 = 0.02;

/// The initial bias of a head towards the squares that its piece can reach. With it, a rook head
/// puts six sevenths of its attention on the rook's lines.
const INITIAL_BIAS: f32 = 3.0;

/// The initial share of GAB's biases that varies with the board.
const INITIAL_DYNAMIC_SHARE: f64 = 0.2;

/// The piece moves that heads start with. A head first attends to the squares from which one kind
/// of piece could move to its token's square. (For all pieces except pawns, these are also the
/// squares that the piece could move to.) "Attacked by" and "defended by" thus exist from the first
/// step and need not be learned square by square. Training can change them.
const MOVES: [fn(i64, i64) -> bool; 6] = [
    |files, ranks| files == 0 || ranks == 0,
    |files, ranks| files.abs() == ranks.abs(),
    |files, ranks| (files * ranks).abs() == 2,
    |files, ranks| files.abs() <= 1 && ranks.abs() <= 1,
    |files, ranks| files.abs() == 1 && ranks == 1,
    |files, ranks| files.abs() == 1 && ranks == -1,
];

/// Returns the index in [`MOVES`] that a head starts with. Every seventh head starts without a
/// move.
fn initial_move(layer: i64, head: i64, heads: i64) -> Option<usize> {
    let number = (layer * heads + head) as usize % (MOVES.len() + 1);
    (number < MOVES.len()).then_some(number)
}

/// Returns a layer's initial biases for each displacement and head, flattened from [225, h].
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

/// Builds the position encoding of a layer. `generator` holds the weights that all layers with GAB
/// share.
pub(super) fn build(
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
                activation: Activation::Swish,
                squares: Some(builder.linear("squares", squares, other)),
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
                    Some(Initial::Around(initial_heads(layer, heads, wide), 0.0)),
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
        (PositionConfig::Absolute | PositionConfig::Gab { .. }, _) => PositionEncoding::Absolute {
            offset: builder.add("offset", &[64, width], initial),
        },
    })
}

/// Builds the weights that generate the biases of all layers. The first columns start as the
/// [`MOVES`], the others start random.
pub(super) fn build_generator(builder: &mut Builder, wide: i64) -> Slot {
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
    builder.add_matrix("gab_generator.weight", &[64 * 64, wide], initial, true)
}

/// Returns the initial constant inputs of the generator for a layer's heads, flattened from [h,
/// wide]. Each head selects one of the [`MOVES`] on every board.
fn initial_heads(layer: i64, heads: i64, wide: i64) -> Vec<f32> {
    let mut values = vec![0.0; (heads * wide) as usize];
    for head in 0..heads {
        if let Some(column) = initial_move(layer, head, heads).filter(|&m| (m as i64) < wide) {
            values[(head * wide) as usize + column] = 1.0;
        }
    }
    values
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
        // The first seven heads include one without a move, so the eighth is a rook head again.
        assert_eq!(reached(a8), heads(&[0, 7]));
        assert_eq!(reached(b3), heads(&[2]));
        assert_eq!(reached(c3), heads(&[1]));
        // A pawn on a1 attacks b2, but a pawn on b2 does not attack a1.
        assert_eq!(reached(b2), heads(&[1, 3, 4]));
        assert_eq!(bias(b2, a1, 4), 0.0);
        assert_eq!(bias(b2, a1, 5), INITIAL_BIAS);
        // The next layer continues in the cycle of moves.
        assert_eq!(initial_move(1, 0, 8), Some(1));
        assert_eq!(initial_move(0, 6, 8), None);
    }
}
