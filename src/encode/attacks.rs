//! Attacks between squares, computed from bitboards. Chessformers with the option `attacks` read
//! them in addition to the planes.

use shakmaty::{Bitboard, Color, Square, attacks};

/// Number of attack features per square. The first 12 count our pawns, knights, bishops, rooks,
/// queens and kings that attack the square, and then theirs. The next 6 state whether a knight, a
/// bishop or a rook on the square would attack our king, and then theirs. The last 4 state whether
/// a bishop or a rook would attack our king, and then theirs, if one piece between them were
/// removed (pins and discovered attacks).
pub(crate) const ATTACKS: usize = 12 + 6 + 4;

/// Number of piece planes with which a row begins: six of ours, then six of the opponent's.
const PLANES: usize = 12;

/// Number of piece kinds, in the order pawns, knights, bishops, rooks, queens, kings.
const KINDS: usize = 6;

/// Number of bits per attacker count in the words of [`slice_attacks`]. A square has at most eight
/// attackers of a kind.
pub(crate) const COUNT_BITS: usize = 4;

/// Number of words of [`slice_attacks`]: the bits of each count, lowest first, then one word for
/// each other feature.
pub(crate) const ATTACK_WORDS: usize = PLANES * COUNT_BITS + ATTACKS - PLANES;

/// Adds the features of one board's squares to `squares`, [64, ATTACKS], and sets `pairs`,
/// bitboards [2, 64], to the squares that the piece on each square attacks, then the squares whose
/// pieces attack each square. Both must initially be zero. `planes` begins with the twelve piece
/// planes.
pub(crate) fn look_up_attacks(planes: &[u64], squares: &mut [u8], pairs: &mut [u64]) {
    visit(planes, pairs, |reached, number| {
        for square in reached {
            squares[usize::from(square) * ATTACKS + number] += 1;
        }
    });
}

/// Computes the same features as bitboards, [`ATTACK_WORDS`], for boards on which each side has one
/// king.
pub(crate) fn slice_attacks(planes: &[u64], words: &mut [u64], pairs: &mut [u64]) {
    let (counts, others) = words.split_at_mut(PLANES * COUNT_BITS);
    visit(planes, pairs, |reached, number| match number {
        0..PLANES => {
            // Adds 1 to the counts of all reached squares at once.
            let mut carry = reached.0;
            for bit in &mut counts[number * COUNT_BITS..][..COUNT_BITS] {
                (*bit, carry) = (*bit ^ carry, *bit & carry);
            }
        }
        _ => others[number - PLANES] |= reached.0,
    });
}

/// For each feature and piece, calls `count` with the squares to which the feature applies and the
/// feature's index. Also sets the pairs.
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
                // The squares that are reached if the first pieces on the lines are removed.
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
