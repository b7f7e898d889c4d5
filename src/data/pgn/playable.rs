//! Reads a game's main line as far as it is playable. Many files contain games with an error, and
//! the moves before the error are still useful.

use shakmaty::CastlingMode;

use crate::chess::{Game, Notation};
use crate::data::sample::Wdl;

use super::error::{GameError, TokenPlace};
use super::game::{ANNOTATIONS, KnownTags, move_and_result};
use super::remarks::Remarks;
use super::tags::{decoded, tags};
use super::token::Token;

/// A game's main line.
#[derive(Debug)]
pub struct Playable {
    /// The game up to its end, or up to the first unplayable word.
    pub game: Game,
    /// For each move, the remaining seconds of the player who made it, if the file contains them.
    pub clocks: Vec<Option<f64>>,
    /// The result for White; `None` if the game has none.
    pub result: Option<Wdl>,
    /// The author's remarks before the first move and after each move.
    pub remarks: Vec<Remarks>,
    /// Why reading stopped before the end of the game; `None` if it did not.
    pub fault: Option<GameError>,
    /// The rest of a game that was not read to its end.
    pub unread: Option<Unread>,
}

/// The text of a game from the first word that could not be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The text, including the word.
    pub text: String,
    /// Whether the word is a null move, with which a player passes.
    pub is_null_move: bool,
}

/// Parses the main line of the game in `text`, without its variations, up to the first word that
/// is not a move or cannot be played.
///
/// # Errors
/// [`GameError`] if nothing can be played because the first position is invalid, the variant is not
/// chess, or the text contains no game.
pub fn read_playable(text: &[u8]) -> Result<Playable, GameError> {
    let (known, mut tokens) = KnownTags::read(text)?;
    let mode = castling_mode(text);
    let mut game = match &known.fen {
        Some(fen) => Game::from_fen(fen, mode)?,
        None => Game::new(shakmaty::Chess::default(), mode),
    };
    game.set_ratings(known.ratings);
    let mut read = Playable {
        game,
        clocks: Vec::new(),
        result: known.result,
        remarks: Vec::new(),
        fault: None,
        unread: None,
    };
    let text = tokens.rest;
    let mut depth = 0;
    // The end of the last move.
    let mut from = 0;
    while read.fault.is_none()
        && let Some(token) = tokens.next()
    {
        match token {
            Token::Begin => depth += 1,
            Token::End if depth == 0 => read.fault = Some(GameError::LateEnd),
            Token::End => depth -= 1,
            Token::OpenComment => {
                read.fault = Some(GameError::OpenComment(read.clocks.len()));
            }
            Token::Comment(comment) if depth == 0 => read.note(comment),
            Token::Result(result) if depth == 0 => {
                read.result = result.or(read.result);
                break;
            }
            Token::Word(word) if depth == 0 => {
                let end = text.len() - tokens.rest.len();
                let start = end - word.len();
                let moves = read.clocks.len();
                read.word(word);
                if read.clocks.len() > moves {
                    read.remark(&text[from..start]);
                    from = end;
                } else if read.fault.is_some() {
                    read.remark(&text[from..start]);
                    read.unread = Some(Unread {
                        text: decoded(&text[start..]),
                        is_null_move: Notation::parse(word) == Some(Notation::Null),
                    });
                }
            }
            Token::Comment(_) | Token::Result(_) | Token::Word(_) => {}
        }
    }
    if depth > 0 && read.fault.is_none() {
        read.fault = Some(GameError::OpenVariation);
    }
    if read.unread.is_none() {
        read.remark(&text[from..]);
    }
    Ok(read)
}

impl Playable {
    fn word(&mut self, word: &[u8]) {
        let (notation, result) = match (Notation::parse(word), move_and_result(word)) {
            (Some(notation), _) => (notation, None),
            (None, Some((notation, result))) => (notation, Some(result)),
            (None, None) => {
                if !ANNOTATIONS.iter().any(|known| known.as_bytes() == word) {
                    self.fault = Some(GameError::Token(self.place(word)));
                }
                return;
            }
        };
        match notation.to_move(self.game.position()) {
            Ok(mv) => {
                self.game.play(mv);
                self.clocks.push(None);
                self.result = result.or(self.result);
            }
            Err(source) => {
                let place = self.place(word);
                self.fault = Some(GameError::Move { place, source });
            }
        }
    }

    fn remark(&mut self, text: &[u8]) {
        self.remarks.push(Remarks::read(&decoded(text)));
    }

    fn place(&self, word: &[u8]) -> TokenPlace {
        TokenPlace::new(word, self.clocks.len(), 0)
    }

    fn note(&mut self, comment: &[u8]) {
        let seconds = clock(&String::from_utf8_lossy(comment));
        if let (Some(last), Some(seconds)) = (self.clocks.last_mut(), seconds) {
            *last = Some(seconds);
        }
    }
}

/// Returns the castling mode that the Variant tag implies.
fn castling_mode(text: &[u8]) -> CastlingMode {
    let all = tags(text);
    let variant = all.iter().find(|(name, _)| name == "Variant");
    let is_random = |(_, value): &(String, String)| {
        let value = value.to_ascii_lowercase();
        value.contains("960") || value.contains("fischer")
    };
    CastlingMode::from_chess960(variant.is_some_and(is_random))
}

/// Parses the seconds in a comment's `[%clk 1:02:03.4]`. A time below zero, as in `-0:00:01`, is 0:
/// the player has no time left.
fn clock(comment: &str) -> Option<f64> {
    let (_, rest) = comment.split_once("[%clk")?;
    let (time, _) = rest.split_once(']')?;
    let time = time.trim();
    let (time, is_negative) = time
        .strip_prefix('-')
        .map_or((time, false), |time| (time, true));
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let parts: Vec<&str> = whole.split(':').collect();
    if parts.len() > 3 || !parts.iter().chain([&fraction]).all(|part| is_number(part)) {
        return None;
    }
    let number = |text: &str| text.parse::<f64>().ok();
    let mut seconds = number(&format!("0.{fraction}"))?;
    for (part, unit) in parts.iter().rev().zip([1.0, 60.0, 3600.0]) {
        seconds += unit * number(part)?;
    }
    let seconds = if is_negative { 0.0 } else { seconds };
    seconds.is_finite().then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (usize, String) {
        let read = read_playable(text.as_bytes()).unwrap();
        let fault = read.fault.map(|fault| fault.to_string());
        (read.game.plies().len() - 1, fault.unwrap_or_default())
    }

    #[test]
    fn games_are_read_as_far_as_they_go() {
        for (text, plies, fault) in [
            ("1. e4 e5 2. Nf3 (2. f4 exf4 (2... d5)) Nc6 1-0", 4, ""),
            ("1. e4 e5 2. Nf3", 3, ""),
            (
                "1. e4 e5 2. Ke4 Nc6 *",
                2,
                "`Ke4` at ply 3 is not a legal move",
            ),
            ("1. e4 e5 2. what *", 2, "`what` at ply 3 is not a move"),
            ("1. e4 (1. d4 -- 2. Zz9) e5 *", 2, ""),
            ("1. e4 (1. d4", 1, "a variation has no end"),
            ("1. e4) e5", 1, "a variation ends without having begun"),
            ("1. e4 {never closed", 1, "a comment after ply 1 has no end"),
            ("1. e4 -- 2. d4", 1, "`--` at ply 2 is not a legal move"),
            ("1. e4 e51-0", 2, ""),
            ("1. e4 e5 1-0 2. d4", 2, ""),
            ("[White \"a\"]\n\n*", 0, ""),
        ] {
            assert_eq!(read(text), (plies, fault.to_owned()), "{text}");
        }
        for text in [
            "",
            "[FEN \"nonsense\"]\n\n1. e4",
            "[Variant \"Atomic\"]\n\n1. e4",
        ] {
            assert!(read_playable(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn remarks_stand_with_their_moves() {
        let text = "{before} 1. e4 $1 {Straße} (1. d4) e5?! 2. -- {pass} d5 1-0 {after}";
        let text: Vec<u8> = text.chars().map(|it| it as u8).collect();
        let read = read_playable(&text).unwrap();
        let comments: Vec<_> = read.remarks.iter().map(|it| it.comments.clone()).collect();
        assert_eq!(comments, [vec!["before"], vec!["Straße"], vec![]]);
        assert_eq!(read.remarks[1].variations, ["1. d4"]);
        assert_eq!(read.remarks[2].glyphs, [6]);
        let unread = read.unread.unwrap();
        assert_eq!(unread.text, "-- {pass} d5 1-0 {after}");
        assert!(unread.is_null_move);
        let read = read_playable(b"1. e4 1-0 {after}").unwrap();
        assert_eq!(read.remarks[1].comments, ["after"]);
        assert_eq!(read.unread, None);
    }

    #[test]
    fn clocks_results_ratings_and_modes_are_read() {
        let text = "[WhiteElo \"1500\"]\n[Result \"0-1\"]\n\n\
                    1. e4 {[%clk 0:03:00.5]} e5 {hm [%eval 0.1] [%clk 1:00:01]} 2. d4 {[%clk x]}";
        let game = read_playable(text.as_bytes()).unwrap();
        assert_eq!(game.clocks, [Some(180.5), Some(3601.0), None]);
        assert_eq!(game.result, Some(Wdl::Loss));
        assert_eq!(game.game.ratings().white, Some(1500));
        for (time, seconds) in [
            ("0:00:01", Some(1.0)),
            ("-0:00:01", Some(0.0)),
            ("-1:00:00", Some(0.0)),
            (" 1:30 ", Some(90.0)),
            ("7.25", Some(7.25)),
            ("0:-1:00", None),
            ("+0:00:01", None),
            ("--0:00:01", None),
            ("0:00:1e3", None),
            ("0:00:inf", None),
            ("0:00:", None),
            ("1:2:3:4", None),
            ("", None),
        ] {
            assert_eq!(clock(&format!("[%clk {time}]")), seconds, "{time}");
        }
        let text = "[Variant \"Chess960\"]\n\n1. e4";
        let game = read_playable(text.as_bytes()).unwrap();
        assert_eq!(game.game.mode(), CastlingMode::Chess960);
    }
}
