//! Exchanges: what a sequence of captures on one square wins.
//!
//! The sides capture in turn, each with its least valuable attacker, and either may stop. Pieces
//! behind an attacker join in when it opens their line. A king captures only what nothing defends.
//! Pins, checks, promotions and captures en passant are ignored.

use super::material::value;
use shakmaty::{Bitboard, Board, Color, Role, Square, attacks};

/// The maximum number of captures on one square, by sixteen pieces of each side.
const LONGEST: usize = 32;

/// The roles in the order in which they capture.
const ORDER: [Role; 6] = [
    Role::Pawn,
    Role::Knight,
    Role::Bishop,
    Role::Rook,
    Role::Queen,
    Role::King,
];

/// Returns the material that `side` wins, in centipawns, if it may begin to capture on a square. It
/// is 0 if there is nothing to win.
pub fn exchange(board: &Board, square: Square, side: Color) -> i32 {
    let Some(mut victim) = board.role_at(square) else {
        return 0;
    };
    let mut captured = [0; LONGEST];
    let mut count = 0;
    let mut occupied = board.occupied();
    let mut turn = side;
    while count < LONGEST {
        let own = attackers(board, square, occupied) & board.by_color(turn);
        let Some((from, role)) = least_valuable(board, own) else {
            break;
        };
        occupied ^= Bitboard::from_square(from);
        if role == Role::King {
            // It hides no attacker on the far side, because it leaves its square.
            let defenders = attackers(board, square, occupied) & board.by_color(!turn);
            if defenders.any() {
                break;
            }
        }
        captured[count] = value(victim);
        count += 1;
        (victim, turn) = (role, !turn);
    }
    // Each side captures only if that wins more than the opponent wins back.
    let worth = |won: i32, captured: &i32| (captured - won).max(0);
    captured[..count].iter().rev().fold(0, worth)
}

/// Returns the largest and the second largest exchange that `side` wins on any square.
pub fn largest_two(board: &Board, side: Color) -> [i32; 2] {
    let mut largest = [0; 2];
    let victims = board.by_color(!side) & !board.kings() & attacked(board, side);
    for square in victims {
        let won = exchange(board, square, side);
        if won > largest[0] {
            largest = [won, largest[0]];
        } else if won > largest[1] {
            largest[1] = won;
        }
    }
    largest
}

/// Returns the squares that a side's pieces attack.
fn attacked(board: &Board, side: Color) -> Bitboard {
    let occupied = board.occupied();
    let mut squares = Bitboard::EMPTY;
    for (square, piece) in board.clone() {
        if piece.color == side {
            squares |= attacks::attacks(square, piece, occupied);
        }
    }
    squares
}

/// Returns the pieces of both sides that attack a square, among those that are still on the board.
fn attackers(board: &Board, square: Square, occupied: Bitboard) -> Bitboard {
    let pawns = |color: Color| attacks::pawn_attacks(!color, square) & board.by_color(color);
    let diagonal = attacks::bishop_attacks(square, occupied) & board.bishops_and_queens();
    let straight = attacks::rook_attacks(square, occupied) & board.rooks_and_queens();
    let near = (pawns(Color::White) | pawns(Color::Black)) & board.pawns()
        | attacks::knight_attacks(square) & board.knights()
        | attacks::king_attacks(square) & board.kings();
    (near | diagonal | straight) & occupied
}

/// Returns the least valuable of these pieces.
fn least_valuable(board: &Board, pieces: Bitboard) -> Option<(Square, Role)> {
    ORDER.into_iter().find_map(|role| {
        let square = (pieces & board.by_role(role)).first()?;
        Some((square, role))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::chess::tests::game_of_choices;
    use proptest::prelude::*;
    use shakmaty::{CastlingMode, Piece, Position};

    /// Computes the exchange by moving the pieces.
    fn by_captures(board: &Board, square: Square, side: Color) -> i32 {
        let Some(victim) = board.role_at(square) else {
            return 0;
        };
        let own = board.attacks_to(square, side, board.occupied());
        let Some((from, role)) = least_valuable(board, own) else {
            return 0;
        };
        let mut after = board.clone();
        after.discard_piece_at(from);
        after.set_piece_at(square, Piece { color: side, role });
        let reply = after.attacks_to(square, !side, after.occupied());
        if role == Role::King && reply.any() {
            return 0;
        }
        (value(victim) - by_captures(&after, square, !side)).max(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn exchanges_are_those_of_captures_on_the_board(
            choices in prop::collection::vec(any::<u32>(), 0..90),
        ) {
            let game = game_of_choices(&choices);
            let board = game.position().board();
            for side in Color::ALL {
                let mut all: Vec<i32> = Vec::new();
                for square in board.by_color(!side) & !board.kings() {
                    let won = exchange(board, square, side);
                    prop_assert_eq!(won, by_captures(board, square, side), "{}", square);
                    all.push(won);
                }
                all.extend([0, 0]);
                all.sort_unstable_by(|a, b| b.cmp(a));
                prop_assert_eq!(&largest_two(board, side)[..], &all[..2]);
            }
        }
    }

    #[test]
    fn exchanges_of_every_kind() {
        for (fen, square, expected) in [
            // A piece that nothing defends.
            ("4k3/8/8/4n3/8/8/8/4R1K1 w - - 0 1", Square::E5, 310),
            // A defended knight is not worth a rook.
            ("4k3/8/3p4/4n3/8/8/8/4R1K1 w - - 0 1", Square::E5, 0),
            // A second rook behind the first one takes part.
            ("4k3/8/3p4/4n3/8/8/4R3/4R1K1 w - - 0 1", Square::E5, 0),
            ("4k3/8/3p4/4r3/8/8/4R3/4R1K1 w - - 0 1", Square::E5, 100),
            // A king takes only what nothing defends.
            ("8/8/8/8/8/1k6/8/r1K5 w - - 0 1", Square::A1, 0),
            ("8/8/8/8/8/4k3/1r6/2K5 w - - 0 1", Square::B2, 500),
            ("8/8/8/8/1r6/4k3/1r6/2K5 w - - 0 1", Square::B2, 0),
            // A king that is in check along the line of its capture does not leave the line.
            ("4k3/8/8/8/8/8/8/5bKr w - - 0 1", Square::F1, 0),
            // Nothing to capture.
            ("7k/8/8/8/8/8/8/4R1K1 w - - 0 1", Square::E5, 0),
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let board = game.position().board();
            assert_eq!(exchange(board, square, Color::White), expected, "{fen}");
        }
    }
}
