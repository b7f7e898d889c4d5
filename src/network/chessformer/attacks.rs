//! Attacks between squares, computed by the rules, so that networks need not learn them from
//! samples.
//!
//! Networks that read only Lc0's planes must learn attacks. Czech, Blüml and Kersting
//! ("Representation Matters: The Game of Chess Poses a Challenge to Vision Transformers", 2023)
//! measured the gain from such rule-based features. The network computes attacks from its piece
//! planes, so neither the file format nor its users had to change.

mod boards;

pub(super) use boards::BoardAttacks;

use crate::encode;
use crate::network::bitboards;
use crate::network::encoder::AttackLogits;
use crate::network::parameters::{Builder, Initial, Slot, Weights};
use shakmaty::{Bitboard, Color, Square, attacks};
use tch::{Device, Kind, Tensor};

/// Number of attack features of a square, described at [`encode::ATTACKS`].
pub(super) const ATTACKS: i64 = encode::ATTACKS as i64;

/// Number of pairs of squares.
const PAIRS: i64 = 64 * 64;

/// Number of piece planes among the features: six of ours, then six of the opponent's.
const PLANES: i64 = 12;

/// Number of piece kinds, in the order pawns, knights, bishops, rooks, queens, kings.
const KINDS: i64 = 6;

/// Number of ways to attack, ignoring blockers: like our pawns, their pawns, knights and kings, and
/// along straight and diagonal lines.
const WAYS: i64 = 6;
const KNIGHT: i64 = 2;
const KING: i64 = 3;
const STRAIGHT: i64 = 4;
const DIAGONAL: i64 = 5;

/// Number of products of piece planes and tables that add up to the features: every plane with
/// every way, every plane with the open lines of both kinds, and the kings with the lines of both
/// kinds that one piece blocks.
const PRODUCTS: i64 = PLANES * WAYS + 2 * PLANES + 2 * 2;

/// Multiply–accumulates that [`Attacked`] needs per position, for the blockers between squares, the
/// ways, the open lines, the lines beyond a piece, and the features.
pub(super) const MACS: i64 = (64 + PLANES * WAYS + 2 * PLANES + 2 * 2) * PAIRS
    + 64 * PRODUCTS * ATTACKS
    + 64 * PLANES * WAYS
    + WAYS * PAIRS;

/// The board's geometry and the tables derived from it, as network buffers.
#[derive(Debug)]
pub(super) struct Attacks {
    /// u8 [6, 64, 64]: for each way, whether a piece on the first square attacks the second on an
    /// empty board.
    pub ways: Tensor,
    /// u8 [64, 4096]: whether a square lies between two others on a line.
    pub between: Tensor,
    /// u8 [PRODUCTS, ATTACKS]: whether a product is part of a feature's sum.
    pub features: Tensor,
    /// u8 [12, 6]: whether the pieces of a plane attack in a way.
    pub movers: Tensor,
}

/// The attack computation for B boards. The tensors are in the network's dtype.
#[derive(Debug)]
pub(super) struct Attacked<'a> {
    attacks: &'a Attacks,
    /// Planes of the pieces, [B, 64, 12].
    pieces: Tensor,
    /// [`Attacks::ways`] in the network's dtype.
    ways: Tensor,
    /// [B, 2, 64, 64], for straight and diagonal lines: 1 minus the number of pieces between two
    /// squares, or 0 if no such line connects them.
    clear: Tensor,
    /// 1 for unobstructed lines, otherwise 0.
    open: Tensor,
}

impl Attacks {
    pub fn new(device: Device) -> Attacks {
        let table = |holds: &dyn Fn(Square, Square) -> bool| -> Vec<u8> {
            let pairs = Square::ALL
                .into_iter()
                .flat_map(|from| Square::ALL.map(|to| (from, to)));
            pairs.map(|(from, to)| u8::from(holds(from, to))).collect()
        };
        let empty = Bitboard::EMPTY;
        let ways = [
            table(&|from, to| attacks::pawn_attacks(Color::White, from).contains(to)),
            table(&|from, to| attacks::pawn_attacks(Color::Black, from).contains(to)),
            table(&|from, to| attacks::knight_attacks(from).contains(to)),
            table(&|from, to| attacks::king_attacks(from).contains(to)),
            table(&|from, to| attacks::rook_attacks(from, empty).contains(to)),
            table(&|from, to| attacks::bishop_attacks(from, empty).contains(to)),
        ];
        let between = Square::ALL
            .map(|square| table(&|from, to| attacks::between(from, to).contains(square)));
        let buffer =
            |values: &[u8], shape: &[i64]| Tensor::from_slice(values).view(shape).to_device(device);
        Attacks {
            ways: buffer(&ways.concat(), &[WAYS, 64, 64]),
            between: buffer(&between.concat(), &[64, PAIRS]),
            features: buffer(&features(), &[PRODUCTS, ATTACKS]),
            movers: buffer(&movers(), &[PLANES, WAYS]),
        }
    }

    /// Prepares the computation for boards with these piece planes, [B, 64, 12].
    pub fn on(&self, pieces: Tensor) -> Attacked<'_> {
        // The loader of an exported network chooses its dtype.
        let ways = self.ways.type_as(&pieces);
        let occupied = pieces.sum_dim_intlist([2i64].as_slice(), false, None::<Kind>);
        let blocking = occupied.matmul(&self.between.type_as(&pieces));
        let clear =
            (blocking - 1.0).neg().view([-1, 1, 64, 64]) * ways.unsqueeze(0).narrow(1, STRAIGHT, 2);
        Attacked {
            attacks: self,
            pieces,
            ways,
            open: clear.relu(),
            clear,
        }
    }
}

/// Returns [`Attacks::movers`].
fn movers() -> Vec<u8> {
    let mut movers = vec![0; (PLANES * WAYS) as usize];
    for plane in 0..PLANES {
        let ways: &[i64] = match plane % KINDS {
            0 => &[plane / KINDS],
            1 => &[KNIGHT],
            2 => &[DIAGONAL],
            3 => &[STRAIGHT],
            4 => &[STRAIGHT, DIAGONAL],
            _ => &[KING],
        };
        for way in ways {
            movers[(plane * WAYS + way) as usize] = 1;
        }
    }
    movers
}

/// Returns [`Attacks::features`].
fn features() -> Vec<u8> {
    let movers = movers();
    let way = |plane: i64, way: i64| plane * WAYS + way;
    let open = |plane: i64, line: i64| PLANES * (WAYS + line - STRAIGHT) + plane;
    let beyond = |side: i64, line: i64| PLANES * (WAYS + 2) + 2 * (line - STRAIGHT) + side;
    let product = |plane: i64, by: i64| match by {
        STRAIGHT | DIAGONAL => open(plane, by),
        _ => way(plane, by),
    };
    let attackers = (0..PLANES).map(|plane| {
        let ways = (0..WAYS).filter(|by| movers[way(plane, *by) as usize] == 1);
        ways.map(|by| product(plane, by)).collect::<Vec<_>>()
    });
    let kings = [KINDS - 1, PLANES - 1];
    let checks = kings
        .into_iter()
        .flat_map(|king| [KNIGHT, DIAGONAL, STRAIGHT].map(|by| vec![product(king, by)]));
    let lines = (0..2).flat_map(|side| [DIAGONAL, STRAIGHT].map(|line| vec![beyond(side, line)]));
    let mut features = vec![0; (PRODUCTS * ATTACKS) as usize];
    for (feature, products) in (0..).zip(attackers.chain(checks).chain(lines)) {
        for product in products {
            features[(product * ATTACKS + feature) as usize] = 1;
        }
    }
    features
}

impl Attacked<'_> {
    /// Returns the attack features of the squares, [B, 64, ATTACKS].
    pub fn squares(&self) -> Tensor {
        let planes = self.pieces.transpose(1, 2);
        // The shape [64, 6 · 64] makes one matrix multiplication of all boards and ways.
        let ways = self.ways.transpose(0, 1).flatten(1, 2);
        let in_ways = planes.matmul(&ways).view([-1, PLANES, WAYS, 64]);
        // One matrix multiplication per board and kind of line, [B, 2, 12, 64].
        let open = planes.unsqueeze(1).matmul(&self.open);
        let kings = |x: &Tensor| x.slice(1, KINDS - 1, PLANES, KINDS);
        let clear = kings(&planes).unsqueeze(1).matmul(&self.clear);
        let along = kings(&in_ways).narrow(2, STRAIGHT, 2).transpose(1, 2);
        let beyond = (clear.abs() - 1.0).neg().relu() * along;
        let products = [in_ways, open, beyond].map(|products| products.flatten(1, 2));
        let products = Tensor::cat(&products, 1).transpose(1, 2);
        products.matmul(&self.attacks.features.type_as(&products))
    }

    /// Returns [B, 2, 4096]: whether the piece on the first square of each pair attacks the second,
    /// and whether the piece on the second attacks the first.
    pub fn pairs(&self) -> Tensor {
        // The ways in which the piece on each square attacks, [B, 64, 6].
        let movers = self
            .pieces
            .matmul(&self.attacks.movers.type_as(&self.pieces));
        let attacked = (0..WAYS).map(|way| {
            let table = match way {
                STRAIGHT | DIAGONAL => self.open.select(1, way - STRAIGHT),
                _ => self.ways.select(0, way),
            };
            movers.narrow(2, way, 1) * table
        });
        let attacked: Tensor = attacked.reduce(|sum, way| sum + way).expect("six ways");
        Tensor::stack(&[&attacked, &attacked.transpose(1, 2)], 1).flatten(2, 3)
    }
}

/// The attack bias, which is the same in all layers. Each head adds one weight to the attention
/// logits of the squares that a token's piece attacks, and another to the logits of the squares
/// whose pieces attack the token's square.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttackBias {
    /// Each head's attack weights, [h, 2].
    worth: Slot,
}

/// The scale of the attack weights. A bias matters only once it reaches several units, and Adam
/// changes every weight by steps of about the same size, which would take long without this scale.
const ATTACK_GAIN: f64 = 8.0;

/// The initial attack weight, in logits, of a head that starts with a nonzero weight.
const INITIAL_ATTACK: f32 = 2.0;

/// Returns initial weights [h, 2]. Of every four heads, one starts with a bias towards the squares
/// that its token's piece attacks, and one with a bias towards the squares that attack its token.
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

    /// Computes the bias with matrix multiplications, on any device.
    pub fn forward(self, weights: &Weights, attacked: &Attacked) -> AttackLogits {
        let biases = self.worth(weights).matmul(&attacked.pairs());
        AttackLogits::Biases(biases.view([-1, PAIRS]))
    }

    /// Computes the bias from [`BoardAttacks::pairs`]. `shifts` is the tensor from
    /// [`bitboards::shifts`].
    pub fn of_bits(self, weights: &Weights, pairs: &Tensor, shifts: &Tensor) -> AttackLogits {
        let worth = self.worth(weights);
        let boards = pairs.flatten(1, 2);
        let bits = bitboards::squares(&boards, shifts, &worth).transpose(1, 2);
        let biases = worth.matmul(&bits.view([-1, 2, PAIRS]));
        AttackLogits::Biases(biases.view([-1, PAIRS]))
    }

    /// Prepares [`BoardAttacks::pairs`] for fused kernels.
    pub fn of_pairs(self, weights: &Weights, pairs: Tensor) -> AttackLogits {
        let worth = self.worth(weights);
        AttackLogits::Pairs { pairs, worth }
    }

    /// Returns each head's scaled attack weights, [h, 2].
    pub fn worth(self, weights: &Weights) -> Tensor {
        weights.made("worth", self.worth, || &weights[self.worth] * ATTACK_GAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::tests::game_of_choices;
    use crate::encode::{BOARDS, Input};
    use proptest::prelude::*;
    use shakmaty::{Position, Role};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Compares the attackers with shakmaty's along random games.
        #[test]
        fn attackers_are_those_of_the_rules(choices in prop::collection::vec(any::<u32>(), 0..90)) {
            let game = game_of_choices(&choices);
            let words = *Input::encode(&game).words();
            let row = Tensor::from_slice(bytemuck::cast_slice::<u64, i64>(&words[..BOARDS]));
            for kind in [Kind::Float, Kind::BFloat16] {
                let like = Tensor::zeros([1], (kind, Device::Cpu));
                let squares = bitboards::squares(&row.view([1, -1]), &bitboards::shifts(), &like);
                let attacks = Attacks::new(Device::Cpu);
                let attacked = attacks.on(squares.narrow(2, 0, 12));
                let (found, pairs) = (attacked.squares(), attacked.pairs());
                let looked_up = BoardAttacks::of(&row.view([1, -1]));
                prop_assert!(looked_up.squares.to_kind(kind).equal(&found));
                let bits = Tensor::arange(64, (Kind::Int64, Device::Cpu));
                let of_bits = looked_up.pairs.unsqueeze(3).bitwise_right_shift(&bits);
                let of_bits = of_bits.bitwise_and(1).flatten(2, 3).to_kind(kind);
                prop_assert!(of_bits.equal(&pairs));
                prop_assert_eq!(found.size(), [1, 64, ATTACKS]);
                let board = game.position().board();
                let turn = game.position().turn();
                let occupied = board.occupied();
                for square in Square::ALL {
                    // The encoded board is in the mover's view.
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
