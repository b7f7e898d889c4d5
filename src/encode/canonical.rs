//! Lc0's canonical view of a game (input formats 3 and later), in which equivalent boards look the
//! same.
//!
//! The rules are those of Lc0's encoder. If the king's square does not determine whether to
//! transpose the board, the pieces' bitboards are compared as integers, as in Lc0.

use super::input::{
    BOARDS, EN_PASSANT, HISTORY, Input, PLANES_PER_BOARD, WIDTH, scalars_of, write_board,
};
use super::transform::Transform;
use crate::chess::{Game, Ply};
use shakmaty::{EnPassantMode, Position, Role};

/// Encodes the game's current position and at most seven earlier positions, as far back as play
/// could return. With `repetitions_only`, earlier positions are included only if they were
/// repetitions.
pub(super) fn encode(game: &Game, repetitions_only: bool) -> (Input, Transform) {
    let mut words = [0; WIDTH];
    let (boards, scalars) = words.split_at_mut(BOARDS);
    let (slots, _) = boards.as_chunks_mut::<PLANES_PER_BOARD>();
    let turn = game.position().turn();
    for (slot, ply) in slots.iter_mut().zip(seen(game, repetitions_only)) {
        write_board(slot, ply.position.board(), turn);
        slot[PLANES_PER_BOARD - 1] = if ply.repetitions > 0 { u64::MAX } else { 0 };
    }
    scalars.copy_from_slice(&scalars_of(game));
    let transform = choose(&words);
    if !transform.is_identity() {
        for word in (0..BOARDS).chain([EN_PASSANT]) {
            words[word] = transform.squares(words[word]);
        }
    }
    (Input::from_words(words), transform)
}

/// Returns the positions that the network sees, newest first. History ends at a capture, a pawn
/// move, a change of castling rights, or an earlier position with a possible en passant capture,
/// because play cannot return beyond any of these.
fn seen(game: &Game, repetitions_only: bool) -> impl Iterator<Item = &Ply> {
    let rights = |ply: &Ply| ply.position.castles().castling_rights();
    let current = rights(game.current());
    let en_passant = |ply: &Ply| ply.position.ep_square(EnPassantMode::PseudoLegal).is_some();
    // The past of a game that did not start from the initial position is unknown. The oldest
    // position takes its place.
    let padding = if game.from_initial_position() || repetitions_only {
        0
    } else {
        HISTORY
    };
    let oldest = std::iter::repeat_n(&game.plies()[0], padding);
    let mut past_irreversible = false;
    game.plies()
        .iter()
        .rev()
        .chain(oldest)
        .enumerate()
        .take_while(move |&(age, ply)| {
            let goes_on =
                !past_irreversible && rights(ply) == current && (age == 0 || !en_passant(ply));
            past_irreversible = ply.position.halfmoves() == 0;
            goes_on
        })
        .filter(move |&(age, ply)| age == 0 || !repetitions_only || ply.repetitions > 0)
        .map(|(_, ply)| ply)
}

/// Returns the transform that makes a row's board canonical. It moves our king to the right half of
/// the board. Without pawns, it also moves the king to the lower half and below the diagonal.
fn choose(words: &[u64; WIDTH]) -> Transform {
    let mut transform = Transform::default();
    let castling = &words[BOARDS..BOARDS + 4];
    // With castling rights, the two wings are not equivalent.
    if castling.iter().any(|&right| right != 0) {
        return transform;
    }
    let plane = |role: Role| role as usize - 1;
    let of = |role: Role| words[plane(role)] | words[plane(role) + Role::ALL.len()];
    let king = words[plane(Role::King)];
    const LEFT: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    transform.flip = king & LEFT != 0;
    if of(Role::Pawn) != 0 {
        return transform;
    }
    transform.mirror = king & UPPER != 0;
    let king = transform.squares(king);
    /// Squares of the lower right quarter that are above the diagonal from h1, and squares on the
    /// diagonal.
    const ABOVE: u64 = 0xe0c0_8000;
    const DIAGONAL: u64 = 0x1020_4080;
    transform.transpose = if king & DIAGONAL != 0 {
        let ours = words[..Role::ALL.len()]
            .iter()
            .fold(0, |all, plane| all | plane);
        let theirs = &words[Role::ALL.len()..2 * Role::ALL.len()];
        let all = theirs.iter().fold(ours, |all, plane| all | plane);
        let roles = [
            Role::King,
            Role::Queen,
            Role::Rook,
            Role::Knight,
            Role::Bishop,
        ];
        let transposed = Transform {
            transpose: true,
            ..Transform::default()
        };
        [all, ours]
            .into_iter()
            .chain(roles.map(of))
            .map(|squares| transform.squares(squares))
            .map(|squares| squares.cmp(&transposed.squares(squares)))
            .find(|order| order.is_ne())
            .is_some_and(|order| order.is_gt())
    } else {
        king & ABOVE != 0
    };
    transform
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;

    fn game(fen: &str, moves: &str) -> Game {
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        for mv in moves.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
        }
        game
    }

    /// Returns the number of history positions that contain pieces.
    fn boards(input: &Input) -> usize {
        (0..HISTORY)
            .filter(|age| input.words()[age * PLANES_PER_BOARD + 5] != 0)
            .count()
    }

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    #[test]
    fn history_ends_where_nothing_can_be_repeated() {
        let cases = [
            (START, "", 1),
            (START, "g1f3 g8f6 f3g1", 4),
            (START, "e2e4", 1),
            (START, "e2e4 g8f6 g1f3", 3),
            // The king's move gave up castling rights, so all earlier positions have other rights.
            (START, "e2e4 e7e5 e1e2", 1),
            (START, "e2e4 e7e5 e1e2 g8f6 g1f3", 3),
            // The history before a FEN is unknown, so the same position fills it …
            ("4k3/8/8/8/8/8/8/R3K3 w - - 5 9", "", 8),
            // … unless the last move was irreversible.
            ("4k3/8/8/8/8/8/8/R3K3 w - - 0 9", "", 1),
            ("4k3/8/8/8/8/8/8/R3K3 w - - 0 9", "a1a2", 2),
        ];
        for (fen, moves, expected) in cases {
            let (input, _) = encode(&game(fen, moves), false);
            assert_eq!(boards(&input), expected, "{fen} {moves}");
        }
    }

    #[test]
    fn only_repetitions_are_seen_if_asked_for() {
        let shuffle = "g1f3 g8f6 f3g1 f6g8";
        let cases = [
            (String::new(), 1),
            ("g1f3 g8f6 f3g1".to_owned(), 1),
            (format!("{shuffle} g1f3"), 2),
            (format!("{shuffle} {shuffle}"), 5),
            (format!("{shuffle} g1f3 e7e5"), 1),
        ];
        for (moves, expected) in cases {
            let (input, _) = encode(&game(START, &moves), true);
            assert_eq!(boards(&input), expected, "{moves}");
        }
        let known = game("4k3/8/8/8/8/8/8/R3K3 w - - 5 9", "");
        assert_eq!(boards(&encode(&known, true).0), 1);
    }

    /// Returns the king's square and the transform that Lc0's rules yield for a position.
    fn turned(fen: &str) -> (u64, [bool; 3]) {
        let (input, transform) = encode(&game(fen, ""), false);
        let Transform {
            flip,
            mirror,
            transpose,
        } = transform;
        let king = input.words()[5].trailing_zeros();
        (u64::from(king), [flip, mirror, transpose])
    }

    #[test]
    fn the_king_comes_to_the_lower_right() {
        const G1: u64 = 6;
        let cases = [
            // With castling rights, the board is unchanged.
            ("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1", 4, [false; 3]),
            ("4k3/8/8/8/8/8/P7/6K1 w - - 0 1", G1, [false; 3]),
            ("4k3/8/8/8/8/8/P7/1K6 w - - 0 1", G1, [true, false, false]),
            // With pawns, the board must not be flipped vertically.
            ("6K1/8/8/8/8/8/P7/k7 w - - 0 1", 62, [false; 3]),
            ("6K1/8/8/8/8/8/1R6/3k4 w - - 0 1", G1, [false, true, false]),
            // h2 lies above the diagonal from h1 to e4, and g1 lies below it.
            ("8/8/8/8/8/4k3/R6K/8 w - - 0 1", G1, [false, false, true]),
            ("8/8/8/8/8/4k3/K6R/8 w - - 0 1", G1, [true, false, true]),
            ("8/8/8/8/8/4k3/R7/6K1 w - - 0 1", G1, [false; 3]),
        ];
        for (fen, king, transform) in cases {
            assert_eq!(turned(fen), (king, transform), "{fen}");
        }
    }

    #[test]
    fn games_that_are_the_same_look_the_same() {
        let fens = [
            "8/8/2k5/8/3q4/5N2/1K6/8 w - - 0 1",
            "8/8/8/3B4/4n3/8/6k1/K6R w - - 0 1",
            "8/8/8/8/4k3/8/7r/K7 w - - 0 1",
        ];
        for fen in fens {
            let original = game(fen, "");
            let expected = encode(&original, false).0;
            let (roles, colors) = original.position().board().clone().into_bitboards();
            for transform in Transform::all() {
                let turned =
                    |squares: shakmaty::Bitboard| shakmaty::Bitboard(transform.squares(squares.0));
                let mut setup = shakmaty::Setup::empty();
                let board =
                    shakmaty::Board::try_from_bitboards(roles.map(turned), colors.map(turned));
                setup.board = board.unwrap();
                let position: shakmaty::Chess = setup.position(CastlingMode::Standard).unwrap();
                let found = encode(&Game::new(position, CastlingMode::Standard), false).0;
                assert_eq!(found, expected, "{fen} {transform:?}");
            }
        }
    }

    #[test]
    fn en_passant_squares_are_turned_too() {
        let fen = "4k3/8/8/1pP5/8/8/8/1K6 w - b6 0 2";
        let (input, transform) = encode(&game(fen, ""), false);
        assert!(transform.flip);
        assert_eq!(input.words()[EN_PASSANT], 1 << 46);
    }
}
