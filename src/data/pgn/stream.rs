//! A file of games as a sequence of texts, one a game, so that they can be
//! parsed in parallel.

use crate::bounded;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Bytes read ahead of the decompressors and of the line splitter.
const BUFFER: usize = 1 << 18;
/// Bytes of the longest game, comments and variations included. What is longer
/// is no PGN, or was packed to fill the memory.
const LONGEST_GAME: usize = 16 << 20;
/// The byte-order mark.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Opens a PGN file for reading: plain, or compressed with gzip or zstd, told
/// apart by their first bytes. `wrap` sees the file before decompression, for
/// a progress bar's sake.
///
/// # Errors
/// Whatever the system says of the file.
pub fn open<R: Read + Send + 'static>(
    path: &Path,
    wrap: impl FnOnce(File) -> R,
) -> io::Result<Games<Box<dyn BufRead + Send>>> {
    let mut file = BufReader::with_capacity(BUFFER, wrap(File::open(path)?));
    let magic = file.fill_buf()?;
    let reader: Box<dyn BufRead + Send> = if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let text = zstd::Decoder::with_buffer(file)?;
        Box::new(BufReader::with_capacity(BUFFER, text))
    } else if magic.starts_with(&[0x1f, 0x8b]) {
        let text = flate2::bufread::MultiGzDecoder::new(file);
        Box::new(BufReader::with_capacity(BUFFER, text))
    } else {
        Box::new(file)
    };
    Ok(Games::new(reader))
}

/// The texts of a stream's games.
///
/// A game ends where a tag line follows moves, outside comments. An Event tag ends it
/// even in a comment, which was then never closed. Nothing else of the text is parsed
/// here.
pub struct Games<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: BufRead> Games<R> {
    /// The games of `reader`.
    pub fn new(reader: R) -> Games<R> {
        Games {
            reader,
            line: Vec::new(),
        }
    }

    /// The rest of the game that begins with the line at hand.
    fn read_game(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut game = Vec::new();
        let mut has_moves = false;
        let mut in_comment = false;
        loop {
            let room = (LONGEST_GAME - game.len()) as u64;
            if self.line.is_empty()
                && bounded::read_line(&mut self.reader, &mut self.line, room).map_err(too_long)?
                    == 0
            {
                let blank = game.iter().all(u8::is_ascii_whitespace);
                return Ok((!blank).then_some(game));
            }
            let text = self
                .line
                .strip_prefix(BYTE_ORDER_MARK)
                .unwrap_or(&self.line);
            let is_tag = text.starts_with(b"[") && !in_comment || text.starts_with(b"[Event ");
            in_comment &= !is_tag;
            if is_tag && has_moves {
                return Ok(Some(game));
            }
            if !is_tag {
                has_moves |= !self.line.iter().all(u8::is_ascii_whitespace);
                for byte in &self.line {
                    match byte {
                        b'{' => in_comment = true,
                        b'}' => in_comment = false,
                        b';' if !in_comment => break,
                        _ => {}
                    }
                }
            }
            if game.len() + self.line.len() > LONGEST_GAME {
                return Err(too_long(ErrorKind::FileTooLarge.into()));
            }
            game.append(&mut self.line);
        }
    }
}

/// Says it of the game where a line did not fit into it.
fn too_long(error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::FileTooLarge {
        return error;
    }
    let text = format!("a game is longer than {} MiB", LONGEST_GAME >> 20);
    io::Error::new(ErrorKind::FileTooLarge, text)
}

impl<R: BufRead> Iterator for Games<R> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.read_game().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        Games::new(text.as_bytes())
            .map(|game| String::from_utf8(game.unwrap()).unwrap())
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
        fn nothing_is_lost(text in "[\\[\\]{};a \n]{0,200}") {
            let whole = split(&text).concat();
            prop_assert!(text.starts_with(&whole));
            prop_assert!(text[whole.len()..].trim().is_empty());
        }
    }
}
