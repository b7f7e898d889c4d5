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

/// Bits of an attacker count among the words of [`slice_attacks`]: a square has at most eight
/// attackers of a kind.
pub(crate) const COUNT_BITS: usize = 4;

/// Words of [`slice_attacks`]: the bits of each count from the lowest, then each other feature.
pub(crate) const ATTACK_WORDS: usize = PLANES * COUNT_BITS + ATTACKS - PLANES;

/// Accumulates the features of one board's squares, [64, ATTACKS], and the pairs of attacking and
/// attacked squares, bitboards [2, 64]: the squares that the piece on each square attacks, then
/// those that attack it. Both must be zero before. `planes` begins with the twelve piece planes.
pub(crate) fn look_up_attacks(planes: &[u64], squares: &mut [u8], pairs: &mut [u64]) {
    visit(planes, pairs, |reached, number| {
        for square in reached {
            squares[usize::from(square) * ATTACKS + number] += 1;
        }
    });
}

/// Computes the same features as bitboards, [`ATTACK_WORDS`], for boards with one king a side.
pub(crate) fn slice_attacks(planes: &[u64], words: &mut [u64], pairs: &mut [u64]) {
    let (counts, others) = words.split_at_mut(PLANES * COUNT_BITS);
    visit(planes, pairs, |reached, number| match number {
        0..PLANES => {
            // An adder for all squares at once.
            let mut carry = reached.0;
            for bit in &mut counts[number * COUNT_BITS..][..COUNT_BITS] {
                (*bit, carry) = (*bit ^ carry, *bit & carry);
            }
        }
        _ => others[number - PLANES] |= reached.0,
    });
}

/// Calls `count` with the squares that each piece reaches and the number of the feature that
/// counts them, and accumulates the pairs.
#[inline]
fn visit(planes: &[u64], pairs: &mut [u64], mut count: impl FnMut(Bitboard, usize)) {
    let plane = |plane: usize| Bitboard(planes[plane]);
    let occupied = (0..PLANES).map(plane).fold(Bitboard::EMPTY, |a, b| a | b);
    let (attacked, attackers) = pairs.split_at_mut(64);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::tests::game_of_choices;
    use crate::encode::Input;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn sliced_counts_are_the_counts(choices in prop::collection::vec(any::<u32>(), 0..90)) {
            let game = game_of_choices(&choices);
            let input = Input::encode(&game);
            let planes = &input.words()[..PLANES];
            let (mut squares, mut pairs) = (vec![0; 64 * ATTACKS], vec![0; 128]);
            look_up_attacks(planes, &mut squares, &mut pairs);
            let (mut words, mut same_pairs) = (vec![0; ATTACK_WORDS], vec![0; 128]);
            slice_attacks(planes, &mut words, &mut same_pairs);
            prop_assert_eq!(pairs, same_pairs);
            let bit = |word: u64, square: usize| (word >> square & 1) as u8;
            for square in 0..64 {
                for number in 0..ATTACKS {
                    let found = match number {
                        0..PLANES => (0..COUNT_BITS)
                            .map(|at| bit(words[number * COUNT_BITS + at], square) << at)
                            .sum(),
                        _ => bit(words[PLANES * (COUNT_BITS - 1) + number], square),
                    };
                    prop_assert_eq!(found, squares[square * ATTACKS + number]);
                }
            }
        }
    }
}
