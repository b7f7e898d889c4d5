//! Attacks looked up on bitboards, where nothing is traced and a processor
//! trains: far cheaper than the products that compute them in an exported network.

use super::{ATTACKS, KINDS, PLANES};
use shakmaty::{Bitboard, Color, Square, attacks};
use tch::Tensor;

/// The attacks on B boards.
#[derive(Debug)]
pub(in crate::network::chessformer) struct BoardAttacks {
    /// The features of the squares, u8 [B, 64, ATTACKS].
    pub squares: Tensor,
    /// The squares that the piece on each square attacks, then those of the
    /// pieces that attack it; bitboards i64 [B, 2, 64].
    pub pairs: Tensor,
}

impl BoardAttacks {
    /// Boards by the first 12 words of rows i64 [B, 12 or more], on the CPU.
    pub fn of(rows: &Tensor) -> BoardAttacks {
        let boards = rows.size()[0];
        let words = rows.narrow(1, 0, PLANES).contiguous().view(-1);
        let words: Vec<i64> = words.try_into().expect("i64 on the CPU");
        let mut squares = vec![0; (boards * 64 * ATTACKS) as usize];
        let mut pairs = vec![0; (boards * 2 * 64) as usize];
        for ((words, squares), pairs) in words
            .chunks_exact(PLANES as usize)
            .zip(squares.chunks_exact_mut((64 * ATTACKS) as usize))
            .zip(pairs.chunks_exact_mut(2 * 64))
        {
            look_up(words, squares, pairs);
        }
        BoardAttacks {
            squares: Tensor::from_slice(&squares).view([boards, 64, ATTACKS]),
            pairs: Tensor::from_slice(&pairs).view([boards, 2, 64]),
        }
    }
}

/// Fills in the features and the pairs of one board, both zero before.
fn look_up(planes: &[i64], squares: &mut [u8], pairs: &mut [i64]) {
    let plane = |plane: i64| Bitboard(planes[plane as usize].cast_unsigned());
    let occupied = (0..PLANES).map(plane).fold(Bitboard::EMPTY, |a, b| a | b);
    let (attacked, attackers) = pairs.split_at_mut(64);
    let mut count = |reached: Bitboard, feature: i64| {
        for square in reached {
            squares[(i64::from(square) * ATTACKS + feature) as usize] += 1;
        }
    };
    for number in 0..PLANES {
        let color = Color::from_white(number < KINDS);
        for from in plane(number) {
            let reached = match number % KINDS {
                0 => attacks::pawn_attacks(color, from),
                1 => attacks::knight_attacks(from),
                2 => attacks::bishop_attacks(from, occupied),
                3 => attacks::rook_attacks(from, occupied),
                4 => attacks::queen_attacks(from, occupied),
                _ => attacks::king_attacks(from),
            };
            count(reached, number);
            attacked[usize::from(from)] |= reached.0.cast_signed();
            for to in reached {
                attackers[usize::from(to)] |= Bitboard::from_square(from).0.cast_signed();
            }
        }
    }
    type Line = fn(Square, Bitboard) -> Bitboard;
    let lines: [Line; 2] = [attacks::bishop_attacks, attacks::rook_attacks];
    for (side, number) in (0..).zip([KINDS - 1, PLANES - 1]) {
        for king in plane(number) {
            count(attacks::knight_attacks(king), PLANES + 3 * side);
            for (line, attacks) in (0..).zip(lines) {
                let open = attacks(king, occupied);
                // As if the first pieces on the lines were gone.
                let beyond = attacks(king, occupied & !open) & !open;
                count(open, PLANES + 3 * side + 1 + line);
                count(beyond, PLANES + 6 + 2 * side + line);
            }
        }
    }
}
