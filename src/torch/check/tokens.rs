//! Splits TorchScript code into lines of tokens.

use super::Refusal;

/// Maximum nesting depth of brackets, which bounds the recursion of our parser and of libtorch's.
/// Exporters write deeper expressions as several lines.
const MOST_NESTED: usize = 16;

/// A token of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// A number without its sign.
    Number,
    /// The text between quotation marks, including escapes.
    Text(&'a str),
    /// The arrow before a method's return type.
    Arrow,
    /// Any of `()[]:,=.-`.
    Symbol(u8),
}

/// A line of code, including continuation lines within brackets.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Number of leading spaces.
    pub indent: usize,
    pub tokens: Vec<Token<'a>>,
    /// The source text, for messages.
    pub source: &'a str,
}

impl Line<'_> {
    /// Returns the number of operator calls, lists and tuples.
    pub fn calls(&self) -> usize {
        let brackets = [Token::Symbol(b'('), Token::Symbol(b'[')];
        let is_call = |(at, token): &(usize, &Token)| {
            let before = at.checked_sub(1).map(|before| self.tokens[before]);
            brackets.contains(token) && before != Some(Token::Name("getattr"))
        };
        self.tokens.iter().enumerate().filter(is_call).count()
    }
}

/// The non-empty lines of the source code.
pub(super) struct Lines<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    /// Reads the lines of the source code.
    ///
    /// # Errors
    /// [`Refusal::Character`] unless all bytes are printable ASCII.
    pub fn new(source: &'a [u8]) -> Result<Lines<'a>, Refusal> {
        let odd = |byte: &&u8| !matches!(**byte, b'\n' | b' '..=b'~');
        match (source.iter().find(odd), std::str::from_utf8(source)) {
            (None, Ok(source)) => Ok(Lines { source, at: 0 }),
            (odd, _) => Err(Refusal::Character(odd.copied().unwrap_or_default())),
        }
    }

    /// Returns the next line, or `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<Line<'a>>, Refusal> {
        let bytes = self.source.as_bytes();
        let (indent, start) = loop {
            let indent = self.count(self.at, |byte| byte == b' ');
            match bytes.get(self.at + indent) {
                None => return Ok(None),
                Some(b'\n') => self.at += indent + 1,
                Some(_) => break (indent, self.at + indent),
            }
        };
        let (mut tokens, mut nested) = (Vec::new(), 0usize);
        self.at = start;
        while let Some(&byte) = bytes.get(self.at) {
            let length = match byte {
                b'\n' if nested == 0 => break,
                b'\n' | b' ' => {
                    self.at += 1;
                    continue;
                }
                b'(' | b'[' => {
                    nested += 1;
                    if nested > MOST_NESTED {
                        return Err(Refusal::Nested(MOST_NESTED));
                    }
                    1
                }
                b')' | b']' => {
                    nested = nested.saturating_sub(1);
                    1
                }
                _ => 0,
            };
            let (token, length) = match length {
                0 => self.token(byte)?,
                _ => (Token::Symbol(byte), length),
            };
            tokens.push(token);
            self.at += length;
        }
        Ok(Some(Line {
            indent,
            tokens,
            source: &self.source[start..self.at],
        }))
    }

    /// Returns the token that begins with `byte`, and its length.
    fn token(&self, byte: u8) -> Result<(Token<'a>, usize), Refusal> {
        let bytes = &self.source.as_bytes()[self.at..];
        let text = |length: usize| &self.source[self.at..self.at + length];
        Ok(match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                let length = self.count(self.at, is_part);
                (Token::Name(text(length)), length)
            }
            b'0'..=b'9' => (Token::Number, self.number()),
            b'"' => {
                let length = self.text().ok_or(Refusal::Character(byte))?;
                let inside = &self.source[self.at + 1..self.at + length - 1];
                (Token::Text(inside), length)
            }
            b'-' if bytes.get(1) == Some(&b'>') => (Token::Arrow, 2),
            b':' | b',' | b'=' | b'.' | b'-' => (Token::Symbol(byte), 1),
            _ => return Err(Refusal::Character(byte)),
        })
    }

    /// Returns the length in bytes of the number at the current position: digits, fraction and
    /// exponent.
    fn number(&self) -> usize {
        let digits = |from| self.count(from, |byte| byte.is_ascii_digit());
        let byte = |at| self.source.as_bytes().get(at).copied().unwrap_or_default();
        let mut end = self.at + digits(self.at);
        if byte(end) == b'.' {
            end += 1 + digits(end + 1);
        }
        if matches!(byte(end), b'e' | b'E') {
            let sign = usize::from(matches!(byte(end + 1), b'+' | b'-'));
            end += 1 + sign + digits(end + 1 + sign);
        }
        end - self.at
    }

    /// Returns the length in bytes of the string literal at the current position, including
    /// quotation marks. Returns `None` if the literal does not end on its line or is empty, as at
    /// the start of a multi-line string.
    fn text(&self) -> Option<usize> {
        let bytes = &self.source.as_bytes()[self.at..];
        let mut length = 1;
        loop {
            match bytes.get(length)? {
                b'\\' => length += 2,
                b'\n' => return None,
                b'"' if length == 1 => return None,
                b'"' => return Some(length + 1),
                _ => length += 1,
            }
        }
    }

    fn count(&self, from: usize, is_part: impl Fn(u8) -> bool) -> usize {
        let bytes = self.source.as_bytes().get(from..).unwrap_or_default();
        bytes.iter().take_while(|&&byte| is_part(byte)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_into_tokens() {
        let mut lines =
            Lines::new(b"\n  a.b = torch.x([-1,\n 2.5e-07],\n \"c\\\"\") -> 1.\nd\n").unwrap();
        let line = lines.next_line().unwrap().unwrap();
        let symbol = |symbol: char| Token::Symbol(symbol as u8);
        assert_eq!(line.indent, 2);
        assert_eq!(
            line.tokens,
            [
                Token::Name("a"),
                symbol('.'),
                Token::Name("b"),
                symbol('='),
                Token::Name("torch"),
                symbol('.'),
                Token::Name("x"),
                symbol('('),
                symbol('['),
                symbol('-'),
                Token::Number,
                symbol(','),
                Token::Number,
                symbol(']'),
                symbol(','),
                Token::Text("c\\\""),
                symbol(')'),
                Token::Arrow,
                Token::Number,
            ]
        );
        let line = lines.next_line().unwrap().unwrap();
        assert_eq!((line.indent, line.source), (0, "d"));
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn lines_of_spaces_end_nothing() {
        let mut lines = Lines::new(b"   \n \n\n  a\n    \nb\n  ").unwrap();
        for (indent, source) in [(2, "a"), (0, "b")] {
            let line = lines.next_line().unwrap().unwrap();
            assert_eq!((line.indent, line.source), (indent, source));
        }
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn odd_characters_are_refused() {
        for source in [
            "a\tb",
            "a\rb",
            "a # b",
            "a; b",
            "é",
            "'a'",
            "\"\"\"a\"\"\"",
            "\"a\nb\"",
            "\"\\",
        ] {
            let read = Lines::new(source.as_bytes()).and_then(|mut lines| lines.next_line());
            assert!(matches!(read, Err(Refusal::Character(_))), "{source}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "(".repeat(100_000);
        let read = Lines::new(deep.as_bytes()).unwrap().next_line();
        assert!(matches!(read, Err(Refusal::Nested(_))));
    }
}
