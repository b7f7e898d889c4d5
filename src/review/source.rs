//! A game to be reviewed, as read from a PGN.

use crate::chess::Game;
use crate::data::pgn::{GameError, read_playable, tags};
use crate::data::sample::Wdl;
use shakmaty::Color;

/// A game to be reviewed.
#[derive(Clone, Debug)]
pub struct Source {
    /// The game's tags, in order.
    pub tags: Vec<(String, String)>,
    /// The game, up to the first move that cannot be played.
    pub game: Game,
    /// The seconds that the player had left after each move, if known.
    pub clocks: Vec<Option<f64>>,
    /// The result for White.
    pub result: Option<Wdl>,
    /// Why the game was not read to its end, if that is the case.
    pub fault: Option<String>,
}

impl Source {
    /// Parses the text of a game.
    ///
    /// # Errors
    /// [`GameError`] if none of its moves can be played.
    pub fn read(text: &[u8]) -> Result<Source, GameError> {
        let read = read_playable(text)?;
        Ok(Source {
            tags: tags(text),
            game: read.game,
            clocks: read.clocks,
            result: read.result,
            fault: read.fault.map(|fault| fault.to_string()),
        })
    }

    /// Returns how far the game was read and why it was not read to its end, if that is the case.
    #[must_use]
    pub fn cut_off(&self) -> Option<String> {
        let fault = self.fault.as_ref()?;
        Some(format!("read up to ply {}: {fault}", self.moves().len()))
    }

    /// Returns the value of a tag, or `None` if it is missing or unknown.
    #[must_use]
    pub fn tag(&self, name: &str) -> Option<&str> {
        let mut tags = self.tags.iter();
        let (_, value) = tags.find(|(other, _)| other == name)?;
        (!value.trim_matches(['?', '.', ' ']).is_empty()).then_some(value)
    }

    /// Returns a player's name.
    #[must_use]
    pub fn player(&self, side: Color) -> Option<&str> {
        self.tag(side.fold_wb("White", "Black"))
    }

    /// Returns a player's rating.
    #[must_use]
    pub fn rating(&self, side: Color) -> Option<u16> {
        let ratings = self.game.ratings();
        side.fold_wb(ratings.white, ratings.black)
    }

    /// Returns the side of the player with this name, ignoring case.
    #[must_use]
    pub fn side_of(&self, name: &str) -> Option<Color> {
        let is_named = |&side: &Color| {
            let player = self.player(side).map(str::to_lowercase);
            player == Some(name.trim().to_lowercase())
        };
        Color::ALL.into_iter().find(is_named)
    }

    /// Returns the result in PGN notation.
    #[must_use]
    pub fn result_text(&self) -> &'static str {
        match self.result {
            Some(Wdl::Win) => "1-0",
            Some(Wdl::Draw) => "1/2-1/2",
            Some(Wdl::Loss) => "0-1",
            None => "*",
        }
    }

    /// Returns the moves that were played.
    #[must_use]
    pub fn moves(&self) -> Vec<shakmaty::Move> {
        self.game
            .plies()
            .iter()
            .filter_map(|ply| ply.played)
            .collect()
    }

    /// Returns the game before a move.
    #[must_use]
    pub fn before(&self, ply: usize) -> Game {
        let mut game = self.game.clone();
        game.truncate(ply + 1);
        game
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_say_who_played() {
        let text = "[White \"Anna\"]\n[Black \"?\"]\n[WhiteElo \"1500\"]\n\n1. e4 e5 1/2-1/2";
        let source = Source::read(text.as_bytes()).unwrap();
        assert_eq!(source.player(Color::White), Some("Anna"));
        assert_eq!(source.player(Color::Black), None);
        assert_eq!(source.side_of(" anna "), Some(Color::White));
        assert_eq!(source.side_of("Bert"), None);
        assert_eq!(source.rating(Color::White), Some(1500));
        assert_eq!(source.result_text(), "1/2-1/2");
        assert_eq!(source.moves().len(), 2);
        assert_eq!(source.before(1).plies().len(), 2);
        assert!(Source::read(b"").is_err());
    }
}
