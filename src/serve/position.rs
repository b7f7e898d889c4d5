//! Positions in requests: a FEN, moves, or both.

use super::problem::Problem;
use crate::chess::Game;
use shakmaty::CastlingMode;

/// A position in a request.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) fen: Option<&'a str>,
    pub(super) moves: &'a [String],
    pub(super) chess960: bool,
}

impl Written<'_> {
    /// Returns the game, which may have at most this many moves.
    pub(super) fn game(self, most: usize) -> Result<Game, Problem> {
        let mode = CastlingMode::from_chess960(self.chess960);
        let mut game = match self.fen {
            Some(fen) => Game::from_fen(fen, mode)
                .map_err(|error| Problem::field("fen", error.to_string()))?,
            None => Game::new(shakmaty::Chess::default(), mode),
        };
        if self.moves.len() > most {
            return Err(Problem::field(
                "moves",
                format!("{} moves are more than {most}", self.moves.len()),
            ));
        }
        for (number, text) in self.moves.iter().enumerate() {
            let mv = game
                .read_move(text)
                .map_err(|error| Problem::field(format!("moves[{number}]"), error.to_string()))?;
            game.play(mv);
        }
        Ok(game)
    }
}
