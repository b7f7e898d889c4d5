//! Splits a file into the texts of its games, which can then be parsed in parallel.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::Deref;
use std::path::Path;

use super::boundary::Boundary;
use crate::bounded;
use crate::packed::{self, Stream};

/// Maximum size of a game in bytes, including comments and variations. A longer text is not PGN or
/// is an attempt to exhaust memory.
const LONGEST_GAME: usize = 16 << 20;

/// Opens a PGN file or a pipe for reading. Its first bytes show whether it is plain or compressed
/// with gzip or zstd. The file is passed to `wrap` before decompression, for example to show a
/// progress bar.
///
/// # Errors
/// The system's error, or an error if the file is a folder or in UTF-16.
pub fn open<R: Read + Send + 'static>(
    path: &Path,
    wrap: impl FnOnce(File) -> R,
) -> io::Result<Games<Stream>> {
    packed::open(path, wrap).map(Games::new)
}

/// Opens a PGN file like [`open`], and converts UTF-16 to UTF-8.
///
/// # Errors
/// The system's error, or an error if the file is a folder.
pub fn open_converted(path: &Path) -> io::Result<Games<Stream>> {
    packed::open_converted(path).map(Games::new)
}

/// The text of a game, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameText {
    /// The text.
    pub text: Vec<u8>,
    /// The game's place in its stream.
    pub place: GamePlace,
}

impl Deref for GameText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

/// The place of a game in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GamePlace {
    /// The game's number, from 1.
    pub number: usize,
    /// The number of the line on which the game starts, from 1.
    pub line: usize,
}

impl fmt::Display for GamePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "game {}, line {}", self.number, self.line)
    }
}

/// An iterator over the texts of a stream's games. Together, the texts contain the entire stream.
pub struct Games<R> {
    reader: R,
    line: Vec<u8>,
    /// Number of bytes of the line that belong to earlier games.
    used: usize,
    /// Number of lines read.
    lines: usize,
    /// Number of games returned.
    games: usize,
}

impl<R: BufRead> Games<R> {
    /// Returns the games of `reader`.
    pub fn new(reader: R) -> Games<R> {
        Games {
            reader,
            line: Vec::new(),
            used: 0,
            lines: 0,
            games: 0,
        }
    }

    /// Reads the game that starts with the rest of the current line.
    fn read_game(&mut self) -> io::Result<Option<GameText>> {
        let mut text = Vec::new();
        let mut first_line = self.lines;
        let mut boundary = Boundary::default();
        loop {
            let room = (LONGEST_GAME - text.len()) as u64;
            if self.used == self.line.len() {
                self.line.clear();
                self.used = 0;
                let length = bounded::read_line(&mut self.reader, &mut self.line, room);
                if length.map_err(too_long)? == 0 {
                    return Ok((!boundary.is_blank()).then(|| self.found(text, first_line)));
                }
                self.lines += 1;
            }
            if boundary.is_blank() {
                first_line = self.lines;
            }
            let line = &self.line[self.used..];
            let end = boundary.add(line);
            let length = end.unwrap_or(line.len());
            if text.len() + length > LONGEST_GAME {
                return Err(too_long(ErrorKind::FileTooLarge.into()));
            }
            text.extend_from_slice(&line[..length]);
            self.used += length;
            if end.is_some() {
                return Ok(Some(self.found(text, first_line)));
            }
        }
    }

    /// Counts and returns a game.
    fn found(&mut self, text: Vec<u8>, line: usize) -> GameText {
        self.games += 1;
        let number = self.games;
        GameText {
            text,
            place: GamePlace { number, line },
        }
    }
}

/// Replaces the error for a line that exceeds the limit with an error about the game's length.
fn too_long(error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::FileTooLarge {
        return error;
    }
    let text = format!("a game is longer than {} MiB", LONGEST_GAME >> 20);
    io::Error::new(ErrorKind::FileTooLarge, text)
}

impl<R: BufRead> Iterator for Games<R> {
    type Item = io::Result<GameText>;

    fn next(&mut self) -> Option<io::Result<GameText>> {
        self.read_game().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        Games::new(text.as_bytes())
            .map(|game| String::from_utf8(game.unwrap().text).unwrap())
            .collect()
    }

    #[test]
    fn games_are_cut_where_tags_follow_moves() {
        let first = "\n[Event \"a\"]\n[White \"[b]\"]\n\n1. e4 {a comment\n[%eval 0.1]\n} e5\n";
        let second = "[Event \"c\"]\n\n1. d4 *";
        assert_eq!(split(&format!("{first}{second}")), [first, second]);
        let unclosed = "[Event \"a\"]\n1. e4 {never closed\n\n";
        assert_eq!(split(&format!("{unclosed}{second}")), [unclosed, second]);
        let marked = format!("\u{feff}{}", first.trim_start());
        assert_eq!(split(&format!("{marked}{second}")), [&marked, second]);
        assert_eq!(split(" \n\n"), [""; 0]);
        // Indented tags, tags after comments, and tags that form a game without moves.
        let indented = "{of\n1. e4}\n; 1. e4\n [White \"a\"]\n\n\t[Black \"b\"]\n\n1. e4\n\n";
        assert_eq!(split(&format!("{indented}{second}")), [indented, second]);
        let forfeited = "[Event \"a\"]\n[Result \"1-0\"]\n\n";
        assert_eq!(split(&format!("{forfeited}{second}")), [forfeited, second]);
    }

    #[test]
    fn games_without_tags_are_cut_behind_results_and_before_first_moves() {
        for games in [
            &["1. e4 e5 1-0\n\n", "1. d4 d5 0-1\n"][..],
            &["1. e4 e5 1-0\r\n \t\r\n", "1. d4 d5 0-1"],
            &[
                "1. e4 e5 1-0\n",
                "1. d4 d5\n1/2-1/2\n",
                "1.c4 *\n\n\n",
                "1. f4",
            ],
            &["1. e4 e5\n\n", "1. d4 d5\n\n2. c4\n\n", "1. c4\n"],
            &["1. e4 e5 1–0 ; White won\n\n", "e2e4 *\n"],
            &["1. e4 e5 *{\n\n} {a}\n\n{b\n\n1. d4}\n\n; c\n\n", "1. d4\n"],
            &["1. e4 e5 1-0\n\n%\n\n", "1. d4 d5 0-1\n% 1. c4\n"],
            &["1. e4 {a\n\n1. d4} e5\n2. Nf3\n\n2... Nc6\n\n1... e5\n\n1. ... c5 1-0"],
            &["{a}\n\n1. e4 e5 1-0\n", "[Event \"c\"]\n\n1. d4"],
            &["1. e4 1-0\n\n", "prose about it\n\n", "1. d4"],
        ] {
            assert_eq!(split(&games.concat()), games);
        }
        assert_eq!(split("\n% nothing\n%\n"), [""; 0]);
    }

    #[test]
    fn games_may_share_a_line() {
        for games in [
            &["1. e4 e5 1-0 ", "1. d4 d5 0-1 ", "1. c4 *"][..],
            &[
                "1.e4 e51-0 ",
                "1.d4 d5*",
                "1 c4 c5 1/2-1/2 ",
                "1.f4 f5\n",
                "1. g4 *",
            ],
            // Without results, a restart shows only after two moves.
            &[
                "1. e4 e5 ",
                "1. d4 1. d5 ",
                "1. c4 c5 (1... e5 2. g3) 2. g3",
            ],
            &["1. e4 e5\n", "1. d4 d5\n2. c4\n", "1. c4\n"],
            &[
                "[Event \"a\"] [White \"b\"] 1. e4 e5 1-0 ",
                "[Event \"c\"] 1. d4 *",
            ],
            &[
                "[White \"[a] 1-0 1. e4\"] *",
                "[White \"b\"] 1. d4 ",
                "[White \"c\"]\n1. c4",
            ],
            &[
                "1. e4 {a 1-0 1. d4} (1. d4 d5 1-0) (1. c4) e5 1-0 {b} (1... c5 *) ",
                "1. d4",
            ],
            &["1. e4 (1. d4 d5 1-0 ", "1. c4 c5 0-1 ", "1. f4 *"],
            &["e2e4 e7e5 1-0 ", "d2d4 0-1 {a} ", "O-O *"],
            &["1. e4 e5 1-0 0-1 $1 +- 2. d4 1... d5 1. ... c5 ; 1-0 1. d4\n"],
            &["1. e4 e5 [%clk 0:01] 2. d4 $1 d5 !! 1-0\u{a0}", "1. d4 *"],
        ] {
            assert_eq!(split(&games.concat()), games);
        }
    }

    #[test]
    fn games_are_numbered_and_start_on_a_line() {
        let text = "\n% a\n1. e4 e5 1-0 1. d4\nd5 0-1\n\n\n1. c4 *\n[Event \"a\"]\n\n1. f4";
        let games = Games::new(text.as_bytes()).map(|game| game.unwrap().place);
        let places: Vec<_> = games.map(|it| (it.number, it.line)).collect();
        assert_eq!(places, [(1, 3), (2, 3), (3, 7), (4, 8)]);
        let place = GamePlace { number: 3, line: 7 };
        assert_eq!(place.to_string(), "game 3, line 7");
    }

    #[test]
    fn games_without_end_are_refused() {
        for filling in ["a", "\n", "{a}\n"] {
            let endless = filling.repeat((LONGEST_GAME + 1).div_ceil(filling.len()));
            let mut games = Games::new(endless.as_bytes());
            let error = games.next().unwrap().unwrap_err();
            assert_eq!(error.to_string(), "a game is longer than 16 MiB");
        }
        let long = format!("1. e4 {{{}}} *\n", "a".repeat(15 << 20));
        assert_eq!(split(&long), std::slice::from_ref(&long));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "([\\[\\]{}();a \n\"]|1\\.|1-0|\\[Event |e4 ){0,200}") {
            let whole = split(&text).concat();
            prop_assert!(text.starts_with(&whole));
            prop_assert!(text[whole.len()..].trim().is_empty());
        }
    }
}
