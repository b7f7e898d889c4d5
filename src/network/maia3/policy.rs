//! Translates Maia-3's moves to the 1858 policy entries of [`crate::encode`].
//!
//! Maia-3's encoding follows the notation of moves. There are 64 · 64 pairs of squares. In
//! addition, there are four promotions (queen, rook, bishop, knight) from each file on the seventh
//! rank to each file on the eighth. The 1858 entries differ in two ways: a knight promotion has no
//! suffix, and castling is the king taking its rook. A policy entry without a suffix may therefore
//! stand for either of two Maia-3 moves, and the board determines which.

use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::network::config::maia3::PROMOTIONS;
use shakmaty::{File, Rank, Role, Square};
use tch::{Device, Tensor};

/// The order of Maia-3's promotions.
const ORDER: [Role; PROMOTIONS as usize] = [Role::Queen, Role::Rook, Role::Bishop, Role::Knight];

/// The index of the first promotion in Maia-3's moves.
const PAIRS: usize = 64 * 64;
/// Number of Maia-3's moves.
pub(super) const MOVES: usize = PAIRS + 64 * PROMOTIONS as usize;

/// A policy entry that can stand for either of two Maia-3 moves, depending on the board.
struct Choice {
    entry: usize,
    /// The role of our piece that must stand on `square` for the move `there`.
    role: Role,
    /// The square on which the piece must stand.
    square: usize,
    there: usize,
    otherwise: usize,
}

/// Index tensors of the translation, i64.
#[derive(Debug)]
pub(super) struct Translation {
    /// [1858]: indices into the concatenation of Maia-3's moves and the choices.
    pub gather: Tensor,
    /// [4, choices]: the row word that decides the choice, the deciding bit in that word, the move
    /// if the bit is set, and the move if it is clear.
    pub choices: Tensor,
    /// [choices]: the index of each deciding bit among the bits of all words.
    places: Tensor,
}

impl Translation {
    pub fn new(device: Device) -> Translation {
        let choices = choices();
        let mut gather: Vec<i64> = (0..POLICY_SIZE)
            .map(|entry| written(entry) as i64)
            .collect();
        for (number, choice) in choices.iter().enumerate() {
            gather[choice.entry] = (MOVES + number) as i64;
        }
        let row = |value: fn(&Choice) -> usize| choices.iter().map(move |c| value(c) as i64);
        let place = |choice: &Choice| (choice.role as i64 - 1) * 64 + choice.square as i64;
        let places: Vec<i64> = choices.iter().map(place).collect();
        // A row starts with the planes of our pieces, in the order of roles.
        let numbers: Vec<i64> = row(|choice| choice.role as usize - 1)
            .chain(row(|choice| choice.square))
            .chain(row(|choice| choice.there))
            .chain(row(|choice| choice.otherwise))
            .collect();
        Translation {
            gather: Tensor::from_slice(&gather).to_device(device),
            choices: Tensor::from_slice(&numbers).view([4, -1]).to_device(device),
            places: Tensor::from_slice(&places).to_device(device),
        }
    }

    /// Returns whether each choice's deciding bit is set in `rows`, as bool [B, choices].
    pub fn seen(&self, rows: &Tensor) -> Tensor {
        let row = |index| self.choices.get(index);
        rows.index_select(1, &row(0))
            .bitwise_right_shift(&row(1))
            .bitwise_and(1)
            .ne(0)
    }

    /// Returns the same as [`Translation::seen`], given the bits of the rows' bitboards, [B, 104,
    /// 64].
    pub fn seen_in_planes(&self, boards: &Tensor) -> Tensor {
        boards.flatten(1, 2).index_select(1, &self.places).gt(0)
    }

    /// Returns logits [B, 1858], given the logits of Maia-3's moves [B, 4352] and the result of
    /// [`Translation::seen`].
    pub fn policy(&self, moves: &Tensor, seen: &Tensor) -> Tensor {
        let row = |index| self.choices.get(index);
        let there = moves.index_select(1, &row(2));
        let chosen = there.where_self(seen, &moves.index_select(1, &row(3)));
        Tensor::cat(&[moves, &chosen], 1).index_select(1, &self.gather)
    }
}

/// Returns the Maia-3 move with the same squares and suffix as a policy entry.
fn written(entry: usize) -> usize {
    let (from, to, promotion) = from_square_to_square(entry).expect("an entry");
    promotion.map_or(from * 64 + to, |role| promoting(from, to, role))
}

fn promoting(from: usize, to: usize, role: Role) -> usize {
    let piece = ORDER.iter().position(|&other| other == role);
    let files = (from % 8) * 8 + to % 8;
    PAIRS + files * ORDER.len() + piece.expect("pawns become no kings or pawns")
}

fn choices() -> Vec<Choice> {
    let entries = (0..POLICY_SIZE).map(|entry| (entry, from_square_to_square(entry)));
    entries
        .filter_map(|(entry, squares)| {
            let (from, to, None) = squares? else {
                return None;
            };
            let otherwise = written(entry);
            let choice = |role, square, there| Choice {
                entry,
                role,
                square,
                there,
                otherwise,
            };
            if is_promotion(from, to) {
                let there = promoting(from, to, Role::Knight);
                return Some(choice(Role::Pawn, from, there));
            }
            // Castling is the only move whose destination is a square with one's own rook.
            let there = castling(from, to)?;
            (there != otherwise).then(|| choice(Role::Rook, to, there))
        })
        .collect()
}

/// Returns whether a pawn that moves between these squares promotes.
fn is_promotion(from: usize, to: usize) -> bool {
    let [from, to] = [from, to].map(|square| Square::new(square as u32));
    from.rank() == Rank::Seventh
        && to.rank() == Rank::Eighth
        && from.file().distance(to.file()) <= 1
}

/// Returns Maia-3's move for castling with the king on `from` and the rook on `to`, which is the
/// king's two-square move. In Maia-3's training data, kings castle only from e1. When a king
/// castles from another square in Chess960, the logit is therefore that of the pair `from`, `to`.
fn castling(from: usize, to: usize) -> Option<usize> {
    let [king, rook] = [from, to].map(|square| Square::new(square as u32));
    let file = if rook > king { File::G } else { File::C };
    let castles = king == Square::E1 && rook.rank() == Rank::First;
    castles.then(|| from * 64 + usize::from(Square::from_coords(file, Rank::First)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::encode::{Input, WIDTH, policy_index};
    use rand::Rng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;
    use shakmaty::{CastlingMode, Position};
    use tch::{Device, Kind};

    /// Returns the names of Maia-3's moves in the order of the program published with it.
    fn listed() -> Vec<String> {
        let mut names = Vec::new();
        for from in Square::ALL {
            names.extend(Square::ALL.map(|to| format!("{from}{to}")));
        }
        for from in 'a'..='h' {
            for to in 'a'..='h' {
                names.extend(['q', 'r', 'b', 'n'].map(|piece| format!("{from}7{to}8{piece}")));
            }
        }
        names
    }

    /// Returns each legal move with the index of its Maia-3 move.
    fn moves_of(game: &Game) -> Vec<(shakmaty::Move, usize)> {
        let words = *Input::encode(game).words();
        let rows = Tensor::from_slice(bytemuck::cast_slice::<u64, i64>(&words));
        let numbers = Tensor::arange(MOVES as i64, (Kind::Float, Device::Cpu));
        let rows = rows.view([1, WIDTH as i64]);
        let translation = Translation::new(Device::Cpu);
        let seen = translation.seen(&rows);
        let policy = translation.policy(&numbers.unsqueeze(0), &seen);
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let of = |mv| policy.double_value(&[0, policy_index(mv, turn).into()]);
        moves.into_iter().map(|mv| (mv, of(mv) as usize)).collect()
    }

    #[test]
    fn every_legal_move_is_the_one_that_maia_writes() {
        let names = listed();
        assert_eq!(names.len(), MOVES);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut seen = [0; 4];
        for fen in [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1",
            "1n2k1n1/P1P3P1/8/8/8/8/p1p3p1/1N2K1N1 b - - 0 1",
            "6k1/1P6/8/2pP4/8/8/1p4K1/4R3 w - c6 0 2",
            "2r1r2k/8/8/8/8/8/1K6/4Q3 w - - 0 1",
            "8/P2P2QR/8/8/1k6/8/2p1p3/1N1N2K1 w - - 0 1",
        ] {
            for _ in 0..12 {
                let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
                for _ in 0..12 {
                    let moves = moves_of(&game);
                    for &(mv, place) in &moves {
                        // The names are in UCI notation, but in the mover's view.
                        let written = game.format_move(mv);
                        let mirrored = |letter: char| match letter.to_digit(10) {
                            Some(rank) if game.position().turn().is_black() => {
                                char::from(b'9' - rank as u8)
                            }
                            _ => letter,
                        };
                        let written: String = written.chars().map(mirrored).collect();
                        assert_eq!(names[place], written);
                        let kinds = [
                            mv.is_castle(),
                            mv.promotion() == Some(Role::Knight),
                            mv.is_promotion(),
                            mv.is_en_passant(),
                        ];
                        for (seen, kind) in seen.iter_mut().zip(kinds) {
                            *seen += u32::from(kind);
                        }
                    }
                    if moves.is_empty() {
                        break;
                    }
                    game.play(moves[random.random_range(0..moves.len())].0);
                }
            }
        }
        assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
    }

    #[test]
    fn a_king_on_e1_castles_in_two_steps_wherever_its_rooks_are() {
        let names = listed();
        let castling = |fen: &str| {
            let game = Game::from_fen(fen, CastlingMode::Chess960).unwrap();
            let moves = moves_of(&game).into_iter();
            let castling = moves.filter(|(mv, _)| mv.is_castle());
            let mut castling: Vec<&str> =
                castling.map(|(_, place)| names[place].as_str()).collect();
            castling.sort_unstable();
            castling.join(" ")
        };
        assert_eq!(castling("4k3/8/8/8/8/8/8/R3K2R w HA - 0 1"), "e1c1 e1g1");
        assert_eq!(castling("4k3/8/8/8/8/8/8/1R2K1R1 w GB - 0 1"), "e1c1 e1g1");
        assert_eq!(castling("4k3/8/8/8/8/8/8/3RKR2 w FD - 0 1"), "e1c1 e1g1");
        assert_eq!(castling("3rkr2/8/8/8/8/8/8/4K3 b fd - 0 1"), "e1c1 e1g1");
        // Maia-3's training data does not contain such castling, so the move is the king taking its
        // rook.
        assert_eq!(castling("1k6/8/8/8/8/8/8/R4KR1 w GA - 0 1"), "f1a1 f1g1");
    }
}
