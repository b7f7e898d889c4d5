//! Attacks between squares, from bitboards: an input of Chessformers with `attacks` in addition
//! to the planes.

use shakmaty::{Bitboard, Color, Square, attacks};

/// Features per square: how many of our pawns, knights, bishops, rooks, queens and kings attack
/// it, and how many of theirs; whether a knight, a bishop, a rook of theirs there would attack
/// our king, and of ours theirs; whether the bishop or the rook would if one piece were gone
/// (pins and discovered attacks).
pub(crate) const ATTACKS: usize = 12 + 6 + 4;

/// Planes of pieces that a row begins with, six of ours, then six of theirs.
const PLANES: usize = 12;

/// Pawns, knights, bishops, rooks, queens, kings among the six.
const KINDS: usize = 6;

/// Accumulates the features of one board's squares, [64, ATTACKS], and the pairs of attacking and
/// attacked squares, bitboards [2, 64]: the squares that the piece on each square attacks, then
/// those that attack it. Both must be zero before. `planes` begins with the twelve piece planes.
pub(crate) fn look_up_attacks(planes: &[u64], squares: &mut [u8], pairs: &mut [u64]) {
    let plane = |plane: usize| Bitboard(planes[plane]);
    let occupied = (0..PLANES).map(plane).fold(Bitboard::EMPTY, |a, b| a | b);
    let (attacked, attackers) = pairs.split_at_mut(64);
    let mut count = |reached: Bitboard, number: usize| {
        for square in reached {
            squares[usize::from(square) * ATTACKS + number] += 1;
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
            attacked[usize::from(from)] |= reached.0;
            for to in reached {
                attackers[usize::from(to)] |= Bitboard::from_square(from).0;
            }
        }
    }
    type Line = fn(Square, Bitboard) -> Bitboard;
    let lines: [Line; 2] = [attacks::bishop_attacks, attacks::rook_attacks];
    for (side, number) in [KINDS - 1, PLANES - 1].into_iter().enumerate() {
        for king in plane(number) {
            count(attacks::knight_attacks(king), PLANES + 3 * side);
            for (line, attacks) in lines.into_iter().enumerate() {
                let open = attacks(king, occupied);
                // With the first pieces on the lines removed.
                let beyond = attacks(king, occupied & !open) & !open;
                count(open, PLANES + 3 * side + 1 + line);
                count(beyond, PLANES + 6 + 2 * side + line);
            }
        }
    }
}
