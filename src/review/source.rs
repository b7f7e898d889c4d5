//! A game to be reviewed, as read from a PGN.

use crate::chess::Game;
use crate::data::pgn::{GameError, Remarks, Unread, read_playable, tags};
use crate::data::sample::Wdl;
use crate::review::facts::san;
use shakmaty::san::SanError;
use shakmaty::{Chess, Color, Position};
use std::cmp::Reverse;
use std::collections::HashMap;

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
    /// The author's remarks before the first move and after each move.
    pub remarks: Vec<Remarks>,
    /// Why the game was not read to its end, if that is the case.
    pub fault: Option<String>,
    /// The rest of such a game.
    pub unread: Option<Unread>,
}

impl Source {
    /// Parses the text of a game.
    ///
    /// # Errors
    /// [`GameError`] if none of its moves can be played.
    pub fn read(text: &[u8]) -> Result<Source, GameError> {
        let read = read_playable(text)?;
        let fault = read.fault.map(|fault| told(&fault, read.game.position()));
        Ok(Source {
            tags: tags(text),
            game: read.game,
            clocks: read.clocks,
            result: read.result,
            remarks: read.remarks,
            fault,
            unread: read.unread,
        })
    }

    /// Returns how far the game was read and why it was not read to its end, if that is the case.
    pub fn cut_off(&self) -> Option<String> {
        let fault = self.fault.as_ref()?;
        let last = self
            .game
            .plies()
            .iter()
            .rev()
            .nth(1)
            .zip(self.moves().pop());
        Some(match last {
            Some((ply, mv)) => {
                let (number, san) = (number(&ply.position), san(&ply.position, mv));
                format!("read up to {number} {san}: {fault}")
            }
            None => format!("not read beyond its first position: {fault}"),
        })
    }

    /// Returns the value of a tag, or `None` if it is missing or unknown.
    pub fn tag(&self, name: &str) -> Option<&str> {
        let mut tags = self.tags.iter();
        let (_, value) = tags.find(|(other, _)| other == name)?;
        (!value.trim_matches(['?', '.', ' ']).is_empty()).then_some(value)
    }

    /// Returns a player's name.
    pub fn player(&self, side: Color) -> Option<&str> {
        self.tag(side.fold_wb("White", "Black"))
    }

    /// Returns a player's rating.
    pub fn rating(&self, side: Color) -> Option<u16> {
        let ratings = self.game.ratings();
        side.fold_wb(ratings.white, ratings.black)
    }

    /// Returns the side of the player with this name, ignoring case.
    pub fn side_of(&self, name: &str) -> Option<Color> {
        let is_named = |&side: &Color| {
            let player = self.player(side).map(str::to_lowercase);
            player == Some(name.trim().to_lowercase())
        };
        Color::ALL.into_iter().find(is_named)
    }

    /// Returns the result in PGN notation.
    pub fn result_text(&self) -> &'static str {
        match self.result {
            Some(Wdl::Win) => "1-0",
            Some(Wdl::Draw) => "1/2-1/2",
            Some(Wdl::Loss) => "0-1",
            None => "*",
        }
    }

    /// Returns the moves that were played.
    pub fn moves(&self) -> Vec<shakmaty::Move> {
        self.game
            .plies()
            .iter()
            .filter_map(|ply| ply.played)
            .collect()
    }

    /// Returns the game before a move.
    pub fn before(&self, ply: usize) -> Game {
        let mut game = self.game.clone();
        game.truncate(ply + 1);
        game
    }
}

/// Maximum number of players that an error names.
const SHOWN_PLAYERS: usize = 10;

/// Returns an error for a player that none of the games names. It lists the players that they do
/// name, by their number of games.
pub fn no_game_of<'a>(player: &str, games: impl IntoIterator<Item = &'a Source>) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    let players = games
        .into_iter()
        .flat_map(|game| Color::ALL.map(|side| game.player(side)));
    let mut indices = HashMap::new();
    for name in players.flatten() {
        let index = *indices.entry(name).or_insert(names.len());
        match names.get_mut(index) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|&(_, count)| Reverse(count));
    let shown: Vec<&str> = names
        .iter()
        .map(|&(name, _)| name)
        .take(SHOWN_PLAYERS)
        .collect();
    let listed = match (shown.as_slice(), names.len() - shown.len()) {
        ([], _) => "the games name no players".to_owned(),
        ([only], _) => format!("the only player named is {only}"),
        (names, 0) => format!("the players are {}", names.join("; ")),
        (names, more) => format!("the players are {}; and {more} more", names.join("; ")),
    };
    format!("no game of {player} was found: {listed}")
}

/// Formats a move's number, as in `12.` or `12...`
pub(super) fn number(position: &Chess) -> String {
    let dots = position.turn().fold_wb(".", "...");
    format!("{}{dots}", position.fullmoves())
}

/// Returns why a game was not read beyond a position, as one says it to a player.
fn told(fault: &GameError, position: &Chess) -> String {
    let number = number(position);
    match fault {
        GameError::Move { place, source } => {
            let what = match source {
                SanError::IllegalSan => "not a legal move",
                SanError::AmbiguousSan => "ambiguous",
            };
            format!("{number} {} is {what}", place.token)
        }
        GameError::Token(place) => format!("{number} {} is not a move", place.token),
        GameError::OpenComment(_) => "a comment has no end".to_owned(),
        other => other.to_string(),
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
        assert_eq!(source.cut_off(), None);
        assert!(Source::read(b"").is_err());
    }

    #[test]
    fn a_player_of_no_game_is_answered_with_the_players_there_are() {
        let game = |white: &str, black: &str| {
            let text = format!("[White \"{white}\"]\n[Black \"{black}\"]\n\n1. e4 e5 *");
            Source::read(text.as_bytes()).unwrap()
        };
        let games = [
            game("Carlsen, M", "Anna"),
            game("?", ""),
            game("Bert", "Anna"),
        ];
        let said = "no game of Zoe was found: the players are Anna; Carlsen, M; Bert";
        assert_eq!(no_game_of("Zoe", &games), said);
        let said = "no game of Zoe was found: the only player named is Anna";
        assert_eq!(no_game_of("Zoe", &[game("?", "Anna")]), said);
        let said = "no game of Zoe was found: the games name no players";
        assert_eq!(no_game_of("Zoe", &games[1..2]), said);
        let many: Vec<_> = (0..13)
            .map(|number| game(&format!("P{number}"), "?"))
            .collect();
        assert!(no_game_of("Zoe", &many).ends_with("P8; P9; and 3 more"));
    }

    #[test]
    fn games_that_are_cut_off() {
        for (text, expected) in [
            (
                "1. e4 e5 2. Ke4 Nc6",
                "read up to 1... e5: 2. Ke4 is not a legal move",
            ),
            (
                "1. Nf3 d5 2. d3 d4 3. Nd2",
                "read up to 2... d4: 3. Nd2 is ambiguous",
            ),
            ("1. e4 what", "read up to 1. e4: 1... what is not a move"),
            (
                "1. e5",
                "not read beyond its first position: 1. e5 is not a legal move",
            ),
            ("1. e4 {no end", "read up to 1. e4: a comment has no end"),
        ] {
            let source = Source::read(text.as_bytes()).unwrap();
            assert_eq!(source.cut_off().as_deref(), Some(expected), "{text}");
        }
    }
}
