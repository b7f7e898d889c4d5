//! Maia-3's view of a game: each position is in the view of its own mover, without repetition
//! marks.

use super::input::{BOARDS, HISTORY, Input, PLANES_PER_BOARD, WIDTH, scalars_of, write_board};
use crate::chess::Game;
use shakmaty::Position;

/// Encodes the game's current position and the seven before it, newest first. If there are fewer
/// positions, the oldest is repeated.
pub(super) fn encode(game: &Game) -> Input {
    let mut words = [0; WIDTH];
    let (boards, scalars) = words.split_at_mut(BOARDS);
    let (slots, _) = boards.as_chunks_mut::<PLANES_PER_BOARD>();
    let newest = game.plies().len() - 1;
    for (age, slot) in slots.iter_mut().enumerate().take(HISTORY) {
        let position = &game.plies()[newest.saturating_sub(age)].position;
        write_board(slot, position.board(), position.turn());
    }
    scalars.copy_from_slice(&scalars_of(game));
    Input::from_words(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;

    #[test]
    fn every_board_is_its_movers() {
        let mut game = Game::default();
        for mv in ["e2e4", "c7c5"] {
            game.play(game.parse_move(mv).unwrap());
        }
        let input = encode(&game);
        let pawns = |age: usize| {
            let board = &input.words()[age * PLANES_PER_BOARD..];
            [board[0], board[6]]
        };
        let home = [0xff00, 0xff_0000_0000_0000];
        // The current position with White to move, then the one with Black to move, then the
        // initial position in all earlier slots.
        assert_eq!(pawns(0), [0x1000_ef00, 0xfb_0004_0000_0000]);
        assert_eq!(pawns(1), [0xff00, 0xef_0010_0000_0000]);
        assert!((2..HISTORY).all(|age| pawns(age) == home));
        let marks = input.words()[..BOARDS].iter().skip(PLANES_PER_BOARD - 1);
        assert!(marks.step_by(PLANES_PER_BOARD).all(|&mark| mark == 0));
    }

    #[test]
    fn the_start_of_a_fen_is_seen_by_its_mover() {
        let fen = "4k3/8/8/8/8/8/P7/4K3 b - - 0 1";
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let input = encode(&game);
        for age in 0..HISTORY {
            assert_eq!(input.words()[age * PLANES_PER_BOARD + 6], 1 << 48);
        }
    }
}
