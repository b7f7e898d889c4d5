//! Positions as clients write them: a FEN, moves, or both.

use super::problem::Problem;
use crate::chess::Game;
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, EnPassantMode, Move, fen::Fen};

/// A position as a request has it.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) fen: Option<&'a str>,
    pub(super) moves: &'a [String],
    pub(super) chess960: bool,
}

impl Written<'_> {
    /// The game, with at most so many moves.
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
            let mv = read_move(&game, text)
                .map_err(|error| Problem::field(format!("moves[{number}]"), error))?;
            game.play(mv);
        }
        Ok(game)
    }
}

/// A move in UCI notation or SAN; else what is wrong with it.
pub(super) fn read_move(game: &Game, text: &str) -> Result<Move, String> {
    if let Ok(mv) = game.parse_move(text) {
        return Ok(mv);
    }
    let excerpt: String = text.chars().take(20).collect();
    let san = SanPlus::from_ascii(text.as_bytes())
        .map_err(|_| format!("`{excerpt}` is no move in UCI notation (e2e4) or SAN (e4)"))?;
    san.san
        .to_move(game.position())
        .map_err(|error| format!("`{excerpt}`: {error}"))
}

/// The FEN of the game's last position.
pub(super) fn fen(game: &Game) -> String {
    Fen::from_position(game.position(), EnPassantMode::Legal).to_string()
}
