//! Splits a text into games.
//!
//! A game starts at a tag that follows moves, or at an Event tag if the current game already has
//! one. A game without tags starts after a result and an empty line, or at move number 1 after a
//! result or an empty line. An Event tag starts a game even within a comment, because it shows that
//! the comment was never closed.

use memchr::{memchr, memchr2};

use super::token::result;

/// The byte-order mark.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The state of scanning a game's text line by line.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    /// Whether a line has any content, including comments.
    has_text: bool,
    has_event: bool,
    has_moves: bool,
    in_comment: bool,
    /// Whether the last word is a result.
    is_over: bool,
    is_behind_blank: bool,
}

impl Boundary {
    /// Returns whether the text so far contains nothing that belongs to a game.
    pub(super) fn is_blank(&self) -> bool {
        !self.has_text
    }

    /// Returns whether `line` starts another game. If not, the line is added to the current game.
    pub(super) fn stands_before(&mut self, line: &[u8]) -> bool {
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let is_event = text.starts_with(b"[Event ");
        if !self.in_comment && text.starts_with(b"%") {
            return false;
        }
        let text = text.trim_ascii();
        if is_event || text.starts_with(b"[") && !self.in_comment {
            if self.has_moves || is_event && self.has_event {
                return true;
            }
            self.in_comment = false;
            self.has_event |= is_event;
        } else if text.is_empty() {
            self.is_behind_blank = !self.in_comment;
            return false;
        } else {
            if !self.in_comment && self.ends_before(text) {
                return true;
            }
            self.scan(text);
        }
        self.has_text = true;
        self.is_behind_blank = false;
        false
    }

    /// Returns whether a line of movetext outside comments starts another game.
    fn ends_before(&self, text: &[u8]) -> bool {
        let is_behind = matches!(text[0], b'{' | b'(' | b')' | b';');
        let is_apart = self.is_behind_blank && self.is_over && !is_behind;
        let may_restart = self.is_over || self.is_behind_blank && self.has_moves;
        is_apart || may_restart && is_first_number(text)
    }

    /// Processes a line of movetext.
    fn scan(&mut self, mut line: &[u8]) {
        loop {
            if self.in_comment {
                let Some(end) = memchr(b'}', line) else {
                    return;
                };
                self.in_comment = false;
                line = &line[end + 1..];
            }
            let end = memchr2(b'{', b';', line);
            let words = line[..end.unwrap_or(line.len())].trim_ascii_end();
            let last = words.rsplit(u8::is_ascii_whitespace).next();
            if let Some(last) = last.filter(|last| !last.is_empty()) {
                self.has_moves = true;
                self.is_over = result(last).is_some();
            }
            match end {
                Some(at) if line[at] == b'{' => {
                    self.in_comment = true;
                    line = &line[at + 1..];
                }
                _ => return,
            }
        }
    }
}

/// Returns whether a line starts with the number of White's first move.
fn is_first_number(line: &[u8]) -> bool {
    let first = line.strip_prefix(b"1.").map(<[u8]>::trim_ascii_start);
    first.is_some_and(|rest| !rest.starts_with(b".") && !rest.starts_with("…".as_bytes()))
}
