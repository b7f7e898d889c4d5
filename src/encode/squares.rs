//! The contents of a board as one class per square.

use super::input::{PLANES_PER_BOARD, orient, write_board};
use shakmaty::{Bitboard, Board, Color, Piece, Role};

/// Number of square classes: empty, six kinds of our pieces from pawn to king, and six kinds of
/// theirs.
pub const SQUARE_CLASSES: usize = 13;
/// Number of kinds of pieces per side.
const KINDS: usize = 6;
/// Number of piece planes: ours, then theirs.
const PIECE_PLANES: usize = 2 * KINDS;

/// The classes of a board's squares in one side's view, as bit planes. The first three words
/// contain the bits of the kind of piece, counted from 1, lowest bit first. The last word marks the
/// opponent's pieces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Squares([u64; 4]);

impl Squares {
    /// Returns a board in the view of `turn`.
    pub fn of_board(board: &Board, turn: Color) -> Squares {
        let mut planes = [0; PLANES_PER_BOARD];
        write_board(&mut planes, board, turn);
        Squares::of_planes(&planes)
    }

    /// Returns a board from bitboards of our pawns, knights, bishops, rooks, queens and king, then
    /// of the opponent's. Further bitboards are ignored.
    pub fn of_planes(planes: &[u64]) -> Squares {
        let mut words = [0; 4];
        for (plane, &squares) in planes.iter().take(PIECE_PLANES).enumerate() {
            let kind = plane % KINDS + 1;
            for (bit, word) in words[..3].iter_mut().enumerate() {
                if kind >> bit & 1 != 0 {
                    *word |= squares;
                }
            }
            if plane >= KINDS {
                words[3] |= squares;
            }
        }
        Squares(words)
    }

    /// Returns the board whose view for `turn` is this one.
    pub fn board(&self, turn: Color) -> Board {
        let mut board = Board::empty();
        for (plane, squares) in self.planes().into_iter().enumerate() {
            let color = if plane < KINDS { turn } else { !turn };
            let role = Role::ALL[plane % KINDS];
            for square in Bitboard(orient(Bitboard(squares), turn)) {
                board.set_piece_at(square, Piece { color, role });
            }
        }
        board
    }

    /// Returns the bitboards of the pieces, in the order of [`Squares::of_planes`].
    pub fn planes(&self) -> [u64; 12] {
        let [bits @ .., theirs] = self.0;
        std::array::from_fn(|plane| {
            let kind = plane % KINDS + 1;
            let of_kind = bits
                .iter()
                .enumerate()
                .fold(u64::MAX, |squares, (bit, &word)| {
                    squares & if kind >> bit & 1 != 0 { word } else { !word }
                });
            of_kind & if plane >= KINDS { theirs } else { !theirs }
        })
    }

    /// Returns the same board in the other side's view.
    pub fn reversed(&self) -> Squares {
        let [bits @ .., theirs] = self.0;
        let [low, middle, high] = bits.map(u64::swap_bytes);
        let ours = (low | middle | high) & !theirs.swap_bytes();
        Squares([low, middle, high, ours])
    }

    /// Returns this board with the contents of the given squares replaced by those of another
    /// board.
    pub fn with(&self, squares: u64, other: &Squares) -> Squares {
        Squares(std::array::from_fn(|word| {
            self.0[word] & !squares | other.0[word] & squares
        }))
    }

    /// Returns the squares whose contents differ from those of another board.
    pub fn difference(&self, other: &Squares) -> u64 {
        (0..4).fold(0, |squares, word| squares | self.0[word] ^ other.0[word])
    }

    /// Returns the class of a square (a1 = 0 … h8 = 63): 0 if it is empty, 1 to 6 for our pieces,
    /// and 7 to 12 for theirs.
    pub fn class(&self, square: usize) -> usize {
        let bit = |word: u64| (word >> square & 1) as usize;
        let [low, middle, high, theirs] = self.0.map(bit);
        low + 2 * middle + 4 * high + KINDS * theirs
    }

    /// Sets the class of a square.
    pub fn set(&mut self, square: usize, class: usize) {
        let theirs = usize::from(class > KINDS);
        let code = class - KINDS * theirs + 8 * theirs;
        for (bit, word) in self.0.iter_mut().enumerate() {
            *word = *word & !(1 << square) | ((code >> bit & 1) as u64) << square;
        }
    }

    /// Returns four bit planes of the square classes. Their bits have the weights 1, 2, 4 and 6.
    pub fn words(&self) -> &[u64; 4] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use proptest::prelude::*;
    use shakmaty::{CastlingMode, Position};

    fn board() -> Board {
        let fen = "r1bqk2r/pp2bppp/2n1pn2/3p4/3P4/2N2N2/PP2BPPP/R1BQK2R b KQkq - 0 9";
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        game.position().board().clone()
    }

    #[test]
    fn a_board_is_its_pieces_from_either_side() {
        let board = board();
        for turn in Color::ALL {
            let squares = Squares::of_board(&board, turn);
            for square in shakmaty::Square::ALL {
                let seen = if turn.is_white() {
                    square
                } else {
                    square.flip_vertical()
                };
                let expected = match board.piece_at(square) {
                    None => 0,
                    Some(piece) => {
                        let kind = Role::ALL
                            .iter()
                            .position(|&role| role == piece.role)
                            .unwrap();
                        1 + kind + if piece.color == turn { 0 } else { 6 }
                    }
                };
                assert_eq!(squares.class(seen.into()), expected, "{square}");
            }
            let mut planes = [0; PLANES_PER_BOARD];
            write_board(&mut planes, &board, turn);
            assert_eq!(squares.planes(), planes[..PIECE_PLANES]);
            assert_eq!(squares.reversed(), Squares::of_board(&board, !turn));
            assert_eq!(squares.board(turn), board);
        }
    }

    proptest! {
        #[test]
        fn squares_are_set_one_by_one(classes in proptest::collection::vec(0..13usize, 64)) {
            let mut squares = Squares::of_board(&board(), Color::White);
            let before = squares;
            for (square, &class) in classes.iter().enumerate() {
                squares.set(square, class);
            }
            for (square, &class) in classes.iter().enumerate() {
                prop_assert_eq!(squares.class(square), class);
                let differs = squares.difference(&before) >> square & 1 != 0;
                prop_assert_eq!(differs, before.class(square) != class);
                prop_assert_eq!(before.with(1 << square, &squares).class(square), class);
            }
            prop_assert_eq!(Squares::of_planes(&squares.planes()), squares);
        }
    }
}
