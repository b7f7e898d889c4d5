//! Converts a game to one row of 64-bit words, the form in which networks receive positions, and
//! back.
//!
//! The first 104 words are Lc0's input format 1. They contain the last eight positions, newest
//! first. For each position there are bitboards of our pawns, knights, bishops, rooks, queens and
//! king, then of the opponent's. The position's last word is all ones if the position had occurred
//! before, otherwise zero. In all eight positions, "our" side is the current side to move. The
//! scalars follow.

use shakmaty::{
    Bitboard, Board, CastlingMode, Chess, Color, EnPassantMode, Piece, Position, PositionError,
    Role, Setup, Square,
};
use std::num::NonZeroU32;

use crate::chess::{Game, Ratings};

/// Number of positions in a row, including the current one.
pub const HISTORY: usize = 8;
/// Number of planes per position: twelve kinds of pieces and the repetition mark.
pub const PLANES_PER_BOARD: usize = 13;
/// Number of words that contain bitboards of positions.
pub const BOARDS: usize = HISTORY * PLANES_PER_BOARD;

/// Names of the words after the bitboards.
///
/// A castling right is the bitboard of its rook, or empty if the right is lost. `en_passant` is the
/// bitboard of the square that a pawn has just passed over, `black_to_move` is 0 or 1, and `rule50`
/// counts plies. `self_elo` is the rating of the side to move and `opponent_elo` that of the other
/// side; unknown ratings are 0.
pub const SCALARS: [&str; 9] = [
    "castling_us_queenside",
    "castling_us_kingside",
    "castling_them_queenside",
    "castling_them_kingside",
    "black_to_move",
    "rule50",
    "en_passant",
    "self_elo",
    "opponent_elo",
];

/// Number of words in a row.
pub const WIDTH: usize = BOARDS + SCALARS.len();

const CASTLING: usize = BOARDS;
const BLACK_TO_MOVE: usize = BOARDS + 4;
const RULE50: usize = BOARDS + 5;
/// Index of the word `en_passant`.
pub(crate) const EN_PASSANT: usize = BOARDS + 6;
/// Index of the word `self_elo`, which `opponent_elo` follows.
pub(crate) const RATINGS: usize = BOARDS + 7;

/// Why a row does not describe a position.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Two pieces share a square.
    #[error("two pieces on {0}")]
    Crowded(Square),
    /// No game can be played from this position.
    #[error("not a legal position: {0}")]
    Position(String),
}

/// A position with its history, as a network's input: [`WIDTH`] words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Input([u64; WIDTH]);

impl Input {
    /// Encodes the game's current position and the seven before it.
    ///
    /// If the game began at the initial position, boards before its first position are empty
    /// (zeros). Otherwise the past is unknown, and the oldest position fills it, as in Lc0. If that
    /// position has an en-passant square, the implied double push is taken back first.
    pub fn encode(game: &Game) -> Input {
        let position = game.position();
        let turn = position.turn();
        let mut row = [0; WIDTH];
        let (boards, scalars) = row.split_at_mut(BOARDS);
        let (mut slots, _) = boards.as_chunks_mut::<PLANES_PER_BOARD>();
        for ply in game.plies().iter().rev().take(HISTORY) {
            let (slot, rest) = slots.split_at_mut(1);
            write_board(&mut slot[0], ply.position.board(), turn);
            slot[0][PLANES_PER_BOARD - 1] = if ply.repetitions > 0 { u64::MAX } else { 0 };
            slots = rest;
        }
        if !slots.is_empty() && !game.from_initial_position() {
            let oldest = before_double_push(&game.plies()[0].position);
            for slot in slots {
                write_board(slot, &oldest, turn);
            }
        }
        scalars.copy_from_slice(&scalars_of(game));
        Input(row)
    }

    /// Returns a row from its words, as stored in a record. The words are checked only by
    /// [`Input::position`].
    pub fn from_words(words: [u64; WIDTH]) -> Input {
        Input(words)
    }

    /// Returns the row's words: [`BOARDS`] bitboards, then [`SCALARS`].
    pub fn words(&self) -> &[u64; WIDTH] {
        &self.0
    }

    /// Returns whether Black is to move.
    pub fn turn(&self) -> Color {
        Color::from_white(self.0[BLACK_TO_MOVE] == 0)
    }

    /// Returns the number of pieces on the board, including kings and pawns.
    pub fn pieces(&self) -> u32 {
        let planes = &self.0[..PLANES_PER_BOARD - 1];
        planes.iter().map(|squares| squares.count_ones()).sum()
    }

    /// Returns the number of plies since the last capture or pawn move.
    pub fn rule50(&self) -> u32 {
        u32::try_from(self.0[RULE50]).unwrap_or(u32::MAX)
    }

    /// Returns whether the position had occurred before.
    pub fn is_repetition(&self) -> bool {
        self.0[PLANES_PER_BOARD - 1] != 0
    }

    /// Returns the ratings of the side to move and of the opponent, each `None` if unknown.
    pub fn ratings(&self) -> [Option<u16>; 2] {
        [self.0[RATINGS], self.0[RATINGS + 1]]
            .map(|word| u16::try_from(word).ok().filter(|&rating| rating > 0))
    }

    /// Returns the same position with both ratings unknown.
    #[must_use]
    pub fn without_ratings(mut self) -> Input {
        self.0[RATINGS..].fill(0);
        self
    }

    /// Returns whether neither side has castling rights. In such positions, mirroring the board
    /// left to right does not change the game.
    pub fn is_without_castling(&self) -> bool {
        self.0[CASTLING..CASTLING + 4]
            .iter()
            .all(|&right| right == 0)
    }

    /// Returns the position mirrored left to right. Castling rights are unchanged, so the two
    /// positions are equivalent only if [`Input::is_without_castling`] returns true.
    #[must_use]
    pub fn mirrored(mut self) -> Input {
        let (boards, scalars) = self.0.split_at_mut(BOARDS);
        let en_passant = &mut scalars[EN_PASSANT - BOARDS];
        for word in boards.iter_mut().chain([en_passant]) {
            *word = Bitboard(*word).flip_horizontal().0;
        }
        self
    }

    /// Returns the pieces `age` plies ago, from 0 (now) to 7, in their actual colours, or `None` if
    /// the game had not yet begun.
    ///
    /// # Errors
    /// [`InputError::Crowded`] if two pieces share a square.
    pub fn board(&self, age: usize) -> Result<Option<Board>, InputError> {
        let turn = self.turn();
        let planes = &self.0[age * PLANES_PER_BOARD..][..PLANES_PER_BOARD - 1];
        let mut board = Board::empty();
        for (plane, &squares) in planes.iter().enumerate() {
            let color = if plane < Role::ALL.len() { turn } else { !turn };
            let role = Role::ALL[plane % Role::ALL.len()];
            for square in Bitboard(orient(Bitboard(squares), turn)) {
                if board.piece_at(square).is_some() {
                    return Err(InputError::Crowded(square));
                }
                board.set_piece_at(square, Piece { color, role });
            }
        }
        Ok((!board.occupied().is_empty()).then_some(board))
    }

    /// Returns the position that the row describes.
    ///
    /// Rows do not contain the move number. If the row's `en_passant` is empty, the square is
    /// derived from the history, because some formats do not have this scalar.
    ///
    /// # Errors
    /// [`InputError`] if no game can be played from such a position.
    pub fn position(&self) -> Result<Chess, InputError> {
        let turn = self.turn();
        let mut setup = Setup::empty();
        setup.board = self.board(0)?.unwrap_or_else(Board::empty);
        setup.turn = turn;
        setup.halfmoves = self.rule50();
        setup.fullmoves = NonZeroU32::MIN;
        for &right in &self.0[CASTLING..CASTLING + 4] {
            setup.castling_rights |= Bitboard(orient(Bitboard(right), turn));
        }
        setup.ep_square = match Bitboard(orient(Bitboard(self.0[EN_PASSANT]), turn)).first() {
            Some(square) => Some(square),
            None => self
                .board(1)?
                .and_then(|before| passed_square(&before, &setup.board, !turn)),
        };
        let mode = CastlingMode::detect(&setup);
        setup
            .position::<Chess>(mode)
            .or_else(PositionError::ignore_too_much_material)
            .or_else(PositionError::ignore_impossible_check)
            .or_else(PositionError::ignore_invalid_ep_square)
            .map_err(|error| InputError::Position(error.to_string()))
    }
}

/// Returns the [`SCALARS`] of a game's current position.
pub(super) fn scalars_of(game: &Game) -> [u64; SCALARS.len()] {
    use shakmaty::CastlingSide::{KingSide, QueenSide};
    let position = game.position();
    let turn = position.turn();
    let rook = |color: Color, side| {
        let rook = position.castles().rook(color, side);
        rook.map_or(0, |rook| orient(rook.into(), turn))
    };
    let en_passant = position.ep_square(EnPassantMode::PseudoLegal);
    let Ratings { white, black } = game.ratings();
    let [ours, theirs] = turn.fold_wb([white, black], [black, white]);
    let elo = |rating: Option<u16>| rating.map_or(0, u64::from);
    [
        rook(turn, QueenSide),
        rook(turn, KingSide),
        rook(!turn, QueenSide),
        rook(!turn, KingSide),
        u64::from(turn.is_black()),
        u64::from(position.halfmoves()),
        en_passant.map_or(0, |square| orient(square.into(), turn)),
        elo(ours),
        elo(theirs),
    ]
}

/// Converts a bitboard to the mover's view, or back.
pub(super) fn orient(squares: Bitboard, turn: Color) -> u64 {
    match turn {
        Color::White => squares.0,
        Color::Black => squares.0.swap_bytes(),
    }
}

/// Writes the pieces of a board in the view of `turn`.
pub(super) fn write_board(slot: &mut [u64; PLANES_PER_BOARD], board: &Board, turn: Color) {
    let (ours, theirs) = (board.by_color(turn), board.by_color(!turn));
    for (plane, role) in Role::ALL.into_iter().enumerate() {
        let pieces = board.by_role(role);
        slot[plane] = orient(pieces & ours, turn);
        slot[plane + Role::ALL.len()] = orient(pieces & theirs, turn);
    }
}

/// Returns the board before the double push that an en-passant square implies, or the current board
/// if there is no such square.
fn before_double_push(position: &Chess) -> Board {
    let mut board = position.board().clone();
    if let Some(square) = position.maybe_ep_square() {
        let mover = !position.turn();
        let (from, to) = mover.fold_wb((-8, 8), (8, -8));
        if let (Some(from), Some(to)) = (square.offset(from), square.offset(to))
            && let Some(pawn) = board.remove_piece_at(to)
        {
            board.set_piece_at(from, pawn);
        }
    }
    board
}

/// Returns the square that a pawn of `mover` passed over between two boards, or `None` unless the
/// boards differ only by a double push of this pawn.
fn passed_square(before: &Board, after: &Board, mover: Color) -> Option<Square> {
    let pawns = |board: &Board| {
        board.by_piece(Piece {
            color: mover,
            role: Role::Pawn,
        })
    };
    let left = (pawns(before) & !pawns(after)).single_square()?;
    let arrived = (pawns(after) & !pawns(before)).single_square()?;
    let double = left.file() == arrived.file() && left.rank().distance(arrived.rank()) == 2;
    double.then(|| left.offset(mover.fold_wb(8, -8)))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{mirrored_index, policy_index};
    use proptest::prelude::*;

    fn play(game: &mut Game, moves: &str) {
        for mv in moves.split_whitespace() {
            let mv = game.parse_move(mv).unwrap();
            game.play(mv);
        }
    }

    #[test]
    fn the_mover_always_plays_upwards() {
        let mut game = Game::default();
        let white = Input::encode(&game);
        assert_eq!(white.words()[0], 0xff00);
        assert_eq!(white.words()[6], 0xff_0000_0000_0000);
        assert_eq!(
            white.words()[PLANES_PER_BOARD..BOARDS],
            [0; BOARDS - PLANES_PER_BOARD]
        );
        play(&mut game, "e2e4");
        let black = Input::encode(&game);
        assert_eq!(black.words()[0], 0xff00);
        assert_eq!(black.turn(), Color::Black);
        assert_eq!(black.words()[PLANES_PER_BOARD], 0xff00);
    }

    #[test]
    fn a_bare_fen_fills_its_past_before_the_double_push() {
        let fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1";
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let input = Input::encode(&game);
        let start = Input::encode(&Game::default());
        for age in 1..HISTORY {
            assert_eq!(input.board(age).unwrap(), start.board(0).unwrap());
        }
    }

    #[test]
    fn encoding_and_back_is_the_identity() {
        let mut game = Game::default();
        play(
            &mut game,
            "e2e4 a7a6 e4e5 d7d5 g1f3 b8c6 f1e2 g8h6 e1g1 c6b8 f1e1 b8c6",
        );
        while game.plies().len() > 1 {
            let input = Input::encode(&game);
            let position = input.position().unwrap();
            assert_eq!(position.legal_moves(), game.position().legal_moves());
            assert_eq!(
                position.castles().castling_rights(),
                game.position().castles().castling_rights()
            );
            assert_eq!(&input.board(1).unwrap().unwrap(), {
                game.undo();
                game.position().board()
            });
        }
    }

    #[test]
    fn repetitions_are_marked_where_they_happened() {
        let mut game = Game::default();
        play(&mut game, "g1f3 g8f6 f3g1 f6g8 e2e4");
        let input = Input::encode(&game);
        let marks: Vec<bool> = (0..HISTORY)
            .map(|age| input.words()[age * PLANES_PER_BOARD + 12] != 0)
            .collect();
        assert_eq!(marks[..6], [false, true, false, false, false, false]);
    }

    #[test]
    fn pieces_of_both_sides_are_counted() {
        let mut game = Game::default();
        assert_eq!(Input::encode(&game).pieces(), 32);
        play(&mut game, "e2e4 d7d5 e4d5");
        assert_eq!(Input::encode(&game).pieces(), 31);
    }

    #[test]
    fn a_mirrored_position_has_the_mirrored_moves() {
        let fens = [
            "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
            "5k2/8/8/3pP2r/K7/8/1p4P1/R7 w - d6 0 2",
            "2n2n2/1P4P1/8/8/k3K3/8/1p4p1/2N5 b - - 0 1",
        ];
        for fen in fens {
            let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            for _ in 0..6 {
                let input = Input::encode(&game);
                assert!(input.is_without_castling());
                let mirrored = input.mirrored();
                assert_eq!(mirrored.mirrored(), input);
                let turn = game.position().turn();
                let indices = |moves: &[shakmaty::Move]| {
                    let mut indices: Vec<u16> =
                        moves.iter().map(|&mv| policy_index(mv, turn)).collect();
                    indices.sort_unstable();
                    indices
                };
                let moves = game.position().legal_moves();
                let mut expected = indices(&moves)
                    .into_iter()
                    .map(mirrored_index)
                    .collect::<Vec<_>>();
                expected.sort_unstable();
                assert_eq!(
                    indices(&mirrored.position().unwrap().legal_moves()),
                    expected
                );
                game.play(moves[moves.len() / 2]);
            }
        }
    }

    #[test]
    fn crowded_squares_are_named() {
        let mut words = *Input::encode(&Game::default()).words();
        words[1] |= 1 << 8;
        let error = Input::from_words(words).position().unwrap_err();
        assert_eq!(error.to_string(), "two pieces on a2");
    }

    proptest! {
        #[test]
        fn ratings_go_with_the_players_and_not_with_the_board(
            white in proptest::option::of(1u16..),
            black in proptest::option::of(1u16..),
            plies in 0usize..8,
        ) {
            let mut game = Game::default();
            game.set_ratings(Ratings { white, black });
            let mut unrated = Game::default();
            for _ in 0..plies {
                let mv = game.position().legal_moves()[plies];
                game.play(mv);
                unrated.play(mv);
            }
            let input = Input::encode(&game);
            let expected = input.turn().fold_wb([white, black], [black, white]);
            prop_assert_eq!(input.ratings(), expected);
            prop_assert_eq!(Input::from_words(*input.words()).ratings(), expected);
            prop_assert_eq!(input.without_ratings(), Input::encode(&unrated));
        }
    }
}
