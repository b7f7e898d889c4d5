//! The tokens of a game's movetext. Move numbers, NAGs, dots, and comments that extend to the end
//! of the line are ignored.

use memchr::memchr;

use crate::chess::with_hyphens;
use crate::data::sample::Wdl;

/// A token of movetext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// The text between braces.
    Comment(&'a [u8]),
    /// An unclosed brace.
    OpenComment,
    /// The parenthesis before a variation.
    Begin,
    /// The parenthesis after a variation.
    End,
    /// The result for White; `None` is `*`.
    Result(Option<Wdl>),
    /// Any other word, normally a move.
    Word(&'a [u8]),
}

/// An iterator over the tokens of a game's movetext.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    /// The text after the tokens that have been read.
    pub(super) rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// Reads the tokens of `text`, which begins at the start of a line or follows tags.
    pub(super) fn new(text: &'a [u8]) -> Tokens<'a> {
        let mut tokens = Tokens { rest: text };
        tokens.skip_escape();
        tokens
    }

    /// Skips the current line if it starts with `%`.
    fn skip_escape(&mut self) {
        if self.rest.starts_with(b"%") {
            self.skip_line();
        }
    }

    /// Skips to the end of the line.
    fn skip_line(&mut self) {
        let end = memchr(b'\n', self.rest);
        self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
    }

    fn comment(&mut self) -> Token<'a> {
        let inside = &self.rest[1..];
        match memchr(b'}', inside) {
            Some(end) => {
                self.rest = &inside[end + 1..];
                Token::Comment(&inside[..end])
            }
            None => {
                self.rest = &[];
                Token::OpenComment
            }
        }
    }

    /// Reads the word at the current position. Returns `None` for a move number or a space.
    fn word(&mut self) -> Option<Token<'a>> {
        let (word, rest) = self.rest.split_at(word_length(self.rest));
        if let Some(length) = number(word).or_else(|| space(word)) {
            self.rest = &self.rest[length..];
            return None;
        }
        self.rest = rest;
        Some(result(word).map_or(Token::Word(word), Token::Result))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let &[byte, ref rest @ ..] = self.rest else {
                return None;
            };
            let token = match byte {
                b'\n' => {
                    self.rest = rest;
                    self.skip_escape();
                    continue;
                }
                b' ' | b'.' | b'!' | b'?' | b'\t' | b'\r' | b'\x1a' => {
                    self.rest = rest;
                    continue;
                }
                b';' => {
                    self.skip_line();
                    continue;
                }
                b'$' if rest.first().is_some_and(u8::is_ascii_digit) => {
                    self.rest = &rest[digits(rest)..];
                    continue;
                }
                b'{' => return Some(self.comment()),
                b'(' => Token::Begin,
                b')' => Token::End,
                b'*' => Token::Result(None),
                _ => match self.word() {
                    Some(token) => return Some(token),
                    None => continue,
                },
            };
            self.rest = rest;
            return Some(token);
        }
    }
}

/// Parses a result for White. The outer `None` means that `word` is not a result, and the inner
/// `None` that the game is undecided.
pub(super) fn result(word: &[u8]) -> Option<Option<Wdl>> {
    match word {
        b"1-0" => Some(Some(Wdl::Win)),
        b"0-1" => Some(Some(Wdl::Loss)),
        // Latin-1 encodes the character ½ as one byte.
        b"1/2-1/2" | b"1/2" | b"\xbd-\xbd" => Some(Some(Wdl::Draw)),
        b"*" => Some(None),
        _ if word.is_ascii() => None,
        _ => {
            let plain = with_hyphens(word)?.replace('½', "1/2");
            plain.is_ascii().then(|| result(plain.as_bytes())).flatten()
        }
    }
}

/// Returns the length in bytes of the word at the start of a text, which must not be empty. A stray
/// brace is a word.
pub(super) fn word_length(text: &[u8]) -> usize {
    let end = text.iter().position(|&byte| ends_word(byte));
    let mut end = end.unwrap_or(text.len()).max(1);
    if !text[..end].is_ascii() {
        let cut = (1..end).find(|&at| space(&text[at..end]).is_some());
        end = cut.unwrap_or(end);
    }
    // A promotion piece in parentheses, as in `e8(Q)`.
    if let [b'(', b'Q' | b'R' | b'B' | b'N', b')', ..] = text[end..]
        && let b'1' | b'8' | b'=' = text[end - 1]
    {
        end += 3;
    }
    end
}

/// Returns the length in bytes of the move number at the start of `word`. The dot may be missing.
pub(super) fn number(word: &[u8]) -> Option<usize> {
    let length = digits(word);
    let is_number = match &word[length..] {
        // Four zeros are a null move.
        [] => word != b"0000",
        rest => rest[0] == b'.' || rest[0].is_ascii_alphabetic() || space(rest).is_some(),
    };
    (length > 0 && is_number).then_some(length)
}

/// Returns the number of digits at the start of a text.
pub(super) fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length in bytes of an ignored non-ASCII character at the start of `word`: a no-break
/// space, a byte-order mark or an ellipsis.
pub(super) fn space(word: &[u8]) -> Option<usize> {
    let spaces = ["\u{a0}", "\u{feff}", "…"];
    let space = spaces
        .iter()
        .find(|space| word.starts_with(space.as_bytes()));
    space.map(|space| space.len())
}

fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b'\x1a'
            | b'{'
            | b'}'
            | b'('
            | b')'
            | b'!'
            | b'?'
            | b'$'
            | b';'
            | b'*'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use Token::{Begin, Comment, End, OpenComment, Result, Word};
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        Tokens::new(text.as_bytes()).collect()
    }

    #[test]
    fn tokens_of_all_kinds() {
        let text = "% escaped\n1.e4! {a (b) ; c}e5?!$14 $1\r\n%2. d4\n2 Nf3 (2. f4; the {king's\n\
                    2... exf4 ( ) )2...Nc6 3.\u{a0}Bb5…a6\u{a0}4e5 ... 1-0\u{1a}";
        let expected = [
            Word(b"e4"),
            Comment(b"a (b) ; c"),
            Word(b"e5"),
            Word(b"Nf3"),
            Begin,
            Word(b"f4"),
            Word(b"exf4"),
            Begin,
            End,
            End,
            Word(b"Nc6"),
            Word(b"Bb5"),
            Word(b"a6"),
            Word(b"e5"),
            Result(Some(Wdl::Win)),
        ];
        assert_eq!(tokens(text), expected);
        assert_eq!(tokens("e4 {never"), [Word(b"e4"), OpenComment]);
    }

    #[test]
    fn results_in_all_their_forms() {
        for (text, result) in [
            ("1-0 1–0 1—0", Some(Wdl::Win)),
            ("0-1 0–1", Some(Wdl::Loss)),
            ("1/2-1/2 1/2 ½-½ ½–½ ½ 1/2–1/2", Some(Wdl::Draw)),
            ("* * **", None),
        ] {
            assert!(
                tokens(text).iter().all(|&token| token == Result(result)),
                "{text}"
            );
        }
        let latin: Vec<_> = Tokens::new(b"\xbd-\xbd").collect();
        assert_eq!(latin, [Result(Some(Wdl::Draw))]);
    }

    #[test]
    fn other_text_is_a_word() {
        for word in [
            "a8(Q)", "a8=(Q)", "a8/Q", "exd6e.p.", "e.p.", "0-0", "0-0-0", "0000", "--", "@@@@",
            "}", "$", "1-1", "12,", "2-0", "[%clk", "<1>", "é", "+-", "=", "\0",
        ] {
            assert_eq!(tokens(word), [Word(word.as_bytes())], "{word}");
        }
        assert_eq!(tokens("a8(Qxb7)"), [Word(b"a8"), Begin, Word(b"Qxb7"), End]);
    }

    proptest! {
        #[test]
        fn no_text_panics_or_hangs(text in "[-{}();%$!?*.01e4O\\n\u{a0}½…=+/ ]{0,60}") {
            let _ = tokens(&text);
        }
    }
}
