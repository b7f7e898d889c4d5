//! Who attacks which square: features that follow from the rules, so that no
//! network has to spend its samples on finding them out.
//!
//! Lc0's planes leave all of it to learning. Czech, Blüml and Kersting
//! ("Representation Matters: The Game of Chess Poses a Challenge to Vision
//! Transformers", 2023) measured how much is gained by telling a network what
//! the rules say. Attacks are computed inside the network, from the planes of
//! the pieces, so that neither a file nor its users know of them.

use super::parameters::{Builder, Initial, Slot, Weights};
use shakmaty::{Bitboard, Color, Square, attacks};
use tch::{Device, Kind, Tensor};

/// Features of a square: how many of our pawns, knights, bishops, rooks, queens
/// and kings attack it, and how many of theirs; whether a knight, a bishop, a rook
/// of theirs there would attack our king, and of ours theirs; whether the bishop
/// or the rook would if one piece were gone (pins and discovered attacks).
pub(super) const ATTACKS: i64 = 12 + 6 + 4;

/// Multiply–accumulates that [`Attacked`] spends on a position: what
/// stands between squares, sliders, leapers, lines beyond a piece.
pub(super) const MACS: i64 = (64 * 2 + 2 * 6 + 8 + 8) * PAIRS;

/// Pairs of squares.
const PAIRS: i64 = 64 * 64;

/// The planes of the pieces among the features, ours and theirs.
const PAWNS: [i64; 2] = [0, 6];
const KNIGHTS: [i64; 2] = [1, 7];
const BISHOPS: [i64; 2] = [2, 8];
const ROOKS: [i64; 2] = [3, 9];
const QUEENS: [i64; 2] = [4, 10];
const KINGS: [i64; 2] = [5, 11];

/// The geometry of the board; buffers of a network.
#[derive(Debug)]
pub(super) struct Attacks {
    /// u8 [4, 64, 64]: where our pawns, their pawns, knights and kings on the
    /// first square attack.
    pub leaps: Tensor,
    /// u8 [2, 4096]: whether two squares are on one rank or file, and on one
    /// diagonal.
    pub lines: Tensor,
    /// u8 [64, 4096]: whether a square lies between two others.
    pub between: Tensor,
}

/// B boards, looked at for attacks. The tensors are in the type of the network.
#[derive(Debug)]
pub(super) struct Attacked {
    /// Planes of the pieces, [B, 64, 12].
    pieces: Tensor,
    /// As in [`Attacks`].
    leaps: Tensor,
    lines: Tensor,
    /// [B, 2, 64, 64]: 1 for a line between two squares, less the pieces that
    /// stand between them; 0 where there is no line.
    clear: Tensor,
    /// The same for lines that nothing stands in, 0 for all else.
    open: Tensor,
}

impl Attacks {
    pub fn new(device: Device) -> Attacks {
        let pairs = || {
            Square::ALL
                .into_iter()
                .flat_map(|from| Square::ALL.map(|to| (from, to)))
        };
        let table = |holds: &dyn Fn(Square, Square) -> bool| -> Vec<u8> {
            pairs()
                .map(|(from, to)| u8::from(holds(from, to)))
                .collect()
        };
        let empty = Bitboard::EMPTY;
        let leaps = [
            table(&|from, to| attacks::pawn_attacks(Color::White, from).contains(to)),
            table(&|from, to| attacks::pawn_attacks(Color::Black, from).contains(to)),
            table(&|from, to| attacks::knight_attacks(from).contains(to)),
            table(&|from, to| attacks::king_attacks(from).contains(to)),
        ];
        let lines = [
            table(&|from, to| attacks::rook_attacks(from, empty).contains(to)),
            table(&|from, to| attacks::bishop_attacks(from, empty).contains(to)),
        ];
        let between = Square::ALL
            .map(|square| table(&|from, to| attacks::between(from, to).contains(square)));
        Attacks {
            leaps: Tensor::from_slice(&leaps.concat())
                .view([4, 64, 64])
                .to_device(device),
            lines: Tensor::from_slice(&lines.concat())
                .view([2, PAIRS])
                .to_device(device),
            between: Tensor::from_slice(&between.concat())
                .view([64, PAIRS])
                .to_device(device),
        }
    }

    /// Boards by the planes of the pieces that stand there now, [B, 64, 12].
    pub fn on(&self, pieces: &Tensor) -> Attacked {
        // In an exported network the type is that of whoever loads it.
        let constant = |tensor: &Tensor| tensor.type_as(pieces);
        let lines = constant(&self.lines);
        let closed = constant(&self.between).unsqueeze(1) * &lines;
        let occupied = pieces.sum_dim_intlist([2i64].as_slice(), false, None::<Kind>);
        let clear = lines.flatten(0, 1) - occupied.matmul(&closed.flatten(1, 2));
        let clear = clear.view([-1, 2, 64, 64]);
        Attacked {
            pieces: pieces.shallow_clone(),
            leaps: constant(&self.leaps),
            lines,
            open: clear.relu(),
            clear,
        }
    }
}

impl Attacked {
    /// The features of the squares, [B, 64, ATTACKS].
    pub fn squares(&self) -> Tensor {
        let (straight, diagonal) = (self.slide(ROOKS, 0), self.slide(BISHOPS, 1));
        let queens = &straight[1] + &diagonal[1];
        let pawns = [self.leap(&PAWNS[..1], 0), self.leap(&PAWNS[1..], 1)];
        let pawns = Tensor::cat(&pawns, 1);
        let knights = self.leap(&[KNIGHTS, KINGS].concat(), 2).split(2, 1);
        let kings = self.leap(&KINGS, 3);
        let attackers = [
            &pawns,
            &knights[0],
            &diagonal[0],
            &straight[0],
            &queens,
            &kings,
        ];
        let checks = [&knights[1], &diagonal[2], &straight[2]];
        let beyond = [&self.beyond(1), &self.beyond(0)];
        let of_each_side = |features: &[&Tensor]| {
            // [B, features, sides, 64], sides first.
            Tensor::stack(features, 1).transpose(1, 2).flatten(1, 2)
        };
        let parts = [
            of_each_side(&attackers),
            of_each_side(&checks),
            of_each_side(&beyond),
        ];
        Tensor::cat(&parts, 1).transpose(1, 2)
    }

    /// Of each pair of squares whether the piece on the first attacks the
    /// second, and the other way round, [B, 2, 4096].
    pub fn pairs(&self) -> Tensor {
        // Squares attack what the one piece on them does.
        let on = |planes: &[[i64; 2]]| {
            let planes = planes.iter().flatten();
            let planes: Vec<Tensor> = planes.map(|&p| self.pieces.narrow(2, p, 1)).collect();
            Tensor::cat(&planes, 2).sum_dim_intlist([2i64].as_slice(), true, None::<Kind>)
        };
        let (open, leaps, pieces) = (&self.open, &self.leaps, &self.pieces);
        let attacked = on(&[ROOKS, QUEENS]) * open.select(1, 0)
            + on(&[BISHOPS, QUEENS]) * open.select(1, 1)
            + on(&[KNIGHTS]) * leaps.select(0, 2)
            + on(&[KINGS]) * leaps.select(0, 3)
            + pieces.narrow(2, PAWNS[0], 1) * leaps.select(0, 0)
            + pieces.narrow(2, PAWNS[1], 1) * leaps.select(0, 1);
        Tensor::stack(&[&attacked, &attacked.transpose(1, 2)], 1).flatten(2, 3)
    }

    /// Pieces that attack alike, [B, kinds, 64].
    fn of(&self, planes: &[i64]) -> Tensor {
        let planes = planes.iter().map(|&plane| self.pieces.select(2, plane));
        Tensor::stack(&planes.collect::<Vec<_>>(), 1)
    }

    /// What leapers attack, [B, kinds, 64], by a row of the leaps.
    fn leap(&self, kinds: &[i64], row: i64) -> Tensor {
        self.of(kinds).matmul(&self.leaps.select(0, row))
    }

    /// What these pieces, queens and kings see along lines, [B, 2, 64] each.
    fn slide(&self, pieces: [i64; 2], line: i64) -> Vec<Tensor> {
        self.of(&[pieces, QUEENS, KINGS].concat())
            .matmul(&self.open.select(1, line))
            .split(2, 1)
    }

    /// What the kings would see along lines if one piece were gone, [B, 2, 64].
    fn beyond(&self, line: i64) -> Tensor {
        let kings = self.of(&KINGS);
        let clear = kings.matmul(&self.clear.select(1, line));
        let lines = kings.matmul(&self.lines.select(0, line).view([64, 64]));
        (clear.abs() - 1.0).neg().relu() * lines
    }
}

/// What attention makes of attacks: a bias to each head's logits for what its
/// square attacks and one for what attacks its square, the same in all layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttackBias {
    /// What attacks are worth to each head, [h, 2].
    worth: Slot,
}

/// What the weights of attacks are multiplied by: a bias must come to several
/// units to matter, and Adam's steps are of one size.
const ATTACK_GAIN: f64 = 8.0;

/// What an attack is worth at the start to a head that looks for them, in logits.
const INITIAL_ATTACK: f32 = 2.0;

/// Of four heads one starts by seeing what its square attacks, one by what
/// attacks its square: weights [h, 2].
fn initial_attacks(heads: i64) -> Vec<f32> {
    let start = INITIAL_ATTACK / ATTACK_GAIN as f32;
    let of = |head| match head % 4 {
        0 => [start, 0.0],
        1 => [0.0, start],
        _ => [0.0, 0.0],
    };
    (0..heads).flat_map(of).collect()
}

impl AttackBias {
    pub fn build(builder: &mut Builder, heads: i64) -> AttackBias {
        builder.count_macs(2 * PAIRS * heads);
        let start = Initial::Around(initial_attacks(heads), 0.0);
        AttackBias {
            worth: builder.add("attacks", &[heads, 2], start),
        }
    }

    /// Biases [B · h, 4096].
    pub fn forward(self, weights: &Weights, attacked: &Attacked) -> Tensor {
        let worth = &weights[self.worth] * ATTACK_GAIN;
        worth.matmul(&attacked.pairs()).view([-1, PAIRS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::encode::{BOARDS, Input};
    use crate::model::bitboards;
    use proptest::prelude::*;
    use shakmaty::{Position, Role};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// The attackers as the rules have them, along random games.
        #[test]
        fn attackers_are_those_of_the_rules(choices in prop::collection::vec(any::<u32>(), 0..90)) {
            let mut game = Game::default();
            for choice in choices {
                let moves = game.position().legal_moves();
                if moves.is_empty() {
                    break;
                }
                game.play(moves[choice as usize % moves.len()]);
            }
            let words = *Input::encode(&game).words();
            let row = Tensor::from_slice(bytemuck::cast_slice::<u64, i64>(&words[..BOARDS]));
            for kind in [Kind::Float, Kind::BFloat16] {
                let like = Tensor::zeros([1], (kind, Device::Cpu));
                let squares = bitboards::squares(&row.view([1, -1]), &bitboards::shifts(), &like);
                let attacked = Attacks::new(Device::Cpu).on(&squares.narrow(2, 0, 12));
                let (found, pairs) = (attacked.squares(), attacked.pairs());
                prop_assert_eq!(found.size(), [1, 64, ATTACKS]);
                let board = game.position().board();
                let turn = game.position().turn();
                let occupied = board.occupied();
                for square in Square::ALL {
                    // The mover plays upwards.
                    let real = turn.fold_wb(square, square.flip_vertical());
                    let mut expected = Vec::new();
                    for color in [turn, !turn] {
                        for role in Role::ALL {
                            let attackers = board.attacks_to(real, color, occupied);
                            expected.push((attackers & board.by_role(role)).count());
                        }
                    }
                    let kings = [turn, !turn].map(|color| board.king_of(color).unwrap());
                    let on = |squares: Bitboard| usize::from(squares.contains(real));
                    for king in kings {
                        expected.push(on(attacks::knight_attacks(king)));
                        expected.push(on(attacks::bishop_attacks(king, occupied)));
                        expected.push(on(attacks::rook_attacks(king, occupied)));
                    }
                    for king in kings {
                        let between = attacks::between(king, real) & occupied;
                        let beyond = |lines: Bitboard| on(lines) * usize::from(between.count() == 1);
                        expected.push(beyond(attacks::bishop_attacks(king, Bitboard::EMPTY)));
                        expected.push(beyond(attacks::rook_attacks(king, Bitboard::EMPTY)));
                    }
                    let found = found.get(0).get(i64::from(square));
                    let found = Vec::<f64>::try_from(found.to_kind(Kind::Double)).unwrap();
                    let expected: Vec<f64> = expected.into_iter().map(|n| n as f64).collect();
                    prop_assert_eq!(found, expected, "{}", real);
                    let attacked = board.attacks_from(real);
                    for other in Square::ALL {
                        let seen = turn.fold_wb(other, other.flip_vertical());
                        let expected = f64::from(u8::from(attacked.contains(other)));
                        let (from, to) = (i64::from(square), i64::from(seen));
                        let found = |half, pair| pairs.double_value(&[0, half, pair]);
                        prop_assert_eq!(found(0, from * 64 + to), expected);
                        prop_assert_eq!(found(1, to * 64 + from), expected);
                    }
                }
            }
        }
    }
}
