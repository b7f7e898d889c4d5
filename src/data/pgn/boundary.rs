//! Splits a text into games.
//!
//! A game starts at a tag that follows moves, or at an Event tag if the current game already has
//! one. An Event tag at the start of a line starts a game even within a comment, because it shows
//! that the comment was never closed. A game without tags starts
//!
//! - after a result and an empty line;
//! - at move number 1 after a result, after an empty line or after two moves;
//! - at a word without a number after a result, if the current game has no move numbers.
//!
//! The games may stand on lines of their own or share a line.

use memchr::memchr;

use super::tags::Tags;
use super::token::{digits, number, result, space, word_length};

/// The byte-order mark.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Results that may be joined to the last move without a space.
const JOINED: [&[u8]; 3] = [b"1-0", b"0-1", b"1/2-1/2"];

/// The state of scanning a game's text line by line.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    /// Whether a line has any content, including comments.
    has_text: bool,
    has_event: bool,
    has_moves: bool,
    has_numbers: bool,
    in_comment: bool,
    is_behind_blank: bool,
    /// Number of open variations.
    depth: usize,
    /// Number of words on the main line that may be moves.
    moves: usize,
    /// Whether the last word, on the main line or in the current variation, is a result.
    is_over: bool,
    /// Within a variation, whether the main line's last word is a result.
    was_over: bool,
}

impl Boundary {
    /// Returns whether the text so far contains nothing that belongs to a game.
    pub(super) fn is_blank(&self) -> bool {
        !self.has_text
    }

    /// Adds a line to the current game, up to the start of another game. Returns the index in the
    /// line at which the other game starts, if one does.
    pub(super) fn add(&mut self, line: &[u8]) -> Option<usize> {
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let is_event = text.starts_with(b"[Event ");
        if !self.in_comment && text.starts_with(b"%") {
            return None;
        }
        let text = text.trim_ascii_start();
        let before = line.len() - text.len();
        let text = text.trim_ascii_end();
        if text.is_empty() {
            self.is_behind_blank = !self.in_comment;
            return None;
        }
        let is_tag = is_event || text.starts_with(b"[") && !self.in_comment;
        if is_tag {
            if self.has_moves || is_event && self.has_event {
                return Some(0);
            }
            self.in_comment = false;
            self.has_event |= is_event;
        } else if !self.in_comment && self.ends_before(text) {
            return Some(0);
        }
        self.has_text = true;
        self.is_behind_blank = false;
        self.scan(text, is_tag).map(|at| before + at)
    }

    /// Returns whether a line of movetext outside comments starts another game because of the line
    /// before it.
    fn ends_before(&self, text: &[u8]) -> bool {
        let is_behind = matches!(text[0], b'{' | b'(' | b')' | b';');
        let is_apart = self.is_over && !is_behind;
        self.is_behind_blank && (is_apart || self.has_moves && is_first_number(text))
    }

    /// Processes a line. Returns the index of the first byte of another game.
    fn scan(&mut self, text: &[u8], mut in_tags: bool) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let rest = &text[at..];
            if self.in_comment {
                at += memchr(b'}', rest)? + 1;
                self.in_comment = false;
                continue;
            }
            at += match byte {
                b' ' | b'\t' | b'.' | b'!' | b'?' | b'}' | b'\x1a' => 1,
                b'{' => {
                    self.in_comment = true;
                    1
                }
                b';' => return None,
                b'[' if in_tags || is_tag_pair(rest) => {
                    if self.has_moves {
                        return Some(at);
                    }
                    in_tags = true;
                    let mut tags = Tags::new(rest);
                    tags.next();
                    rest.len() - tags.rest.len()
                }
                b'$' => 1 + digits(&rest[1..]),
                b'(' => {
                    if self.depth == 0 {
                        self.was_over = self.is_over;
                    }
                    self.depth += 1;
                    self.is_over = false;
                    1
                }
                b')' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_over = self.depth == 0 && self.was_over;
                    1
                }
                b'*' => {
                    in_tags = false;
                    self.has_moves = true;
                    self.is_over = true;
                    1
                }
                _ => {
                    in_tags = false;
                    match self.word(rest) {
                        Some(length) => length,
                        None => return Some(at),
                    }
                }
            };
        }
        None
    }

    /// Processes the word or move number at the start of `rest`, and returns its length. Returns
    /// `None` if it starts another game.
    fn word(&mut self, rest: &[u8]) -> Option<usize> {
        let length = word_length(rest);
        let word = &rest[..length];
        if let Some(length) = space(word) {
            return Some(length);
        }
        if result(word).is_some() {
            self.has_moves = true;
            self.is_over = true;
            return Some(length);
        }
        let is_main = self.depth == 0;
        if let Some(length) = number(word) {
            let may_restart = self.is_over || is_main && self.moves > 1;
            if may_restart && is_first_number(rest) {
                return None;
            }
            self.has_numbers = true;
            return Some(length);
        }
        let is_move = word[0].is_ascii_alphanumeric();
        if is_move && is_main && self.is_over && !self.has_numbers {
            return None;
        }
        self.has_moves = true;
        self.moves += usize::from(is_move && is_main);
        self.is_over = JOINED.iter().any(|result| word.ends_with(result));
        Some(length)
    }
}

/// Returns whether a text starts with a tag's name and a quoted value.
fn is_tag_pair(text: &[u8]) -> bool {
    let name = text[1..].trim_ascii_start();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = name.iter().take_while(|byte| is_name(byte)).count();
    length > 0 && name[length..].trim_ascii_start().starts_with(b"\"")
}

/// Returns whether a text starts with the number of White's first move.
fn is_first_number(text: &[u8]) -> bool {
    let word = &text[..word_length(text)];
    let is_number = word[0] == b'1' && number(word) == Some(1);
    let rest = text[1..].strip_prefix(b".").unwrap_or(&text[1..]);
    let rest = rest.trim_ascii_start();
    is_number && !rest.starts_with(b".") && !rest.starts_with("…".as_bytes())
}
