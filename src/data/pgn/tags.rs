//! The tags before a game's moves.

use std::borrow::Cow;

use memchr::memchr;

/// An iterator over the tags at the start of a game's text; the rest of the text is the movetext.
pub(super) struct Tags<'a> {
    /// The text after the tags that have been read.
    pub(super) rest: &'a [u8],
}

impl<'a> Tags<'a> {
    /// Reads the tags at the start of `text`; comments may precede them.
    pub(super) fn new(text: &'a [u8]) -> Tags<'a> {
        Tags { rest: text }
    }

    /// Skips blanks, comments and lines that start with `%`, and returns whether a tag follows. If
    /// none does, the skipped text remains part of the movetext.
    fn skip_to_tag(&mut self) -> bool {
        let mut rest = self.rest;
        loop {
            let skipped = match rest {
                [b'{', ..] => memchr(b'}', rest).map(|end| end + 1),
                [b';' | b'%', ..] => memchr(b'\n', rest),
                [0xef, 0xbb, 0xbf, ..] => Some(3),
                [byte, ..] if byte.is_ascii_whitespace() => Some(1),
                [b'[', rest @ ..] => {
                    self.rest = rest;
                    return true;
                }
                _ => None,
            };
            match skipped {
                Some(length) => rest = &rest[length..],
                None => return false,
            }
        }
    }

    /// Returns the tag value at the current position, and moves past the closing bracket. A value
    /// ends at a quote followed by a bracket, because values may contain unescaped quotes.
    fn value(&mut self) -> Cow<'a, [u8]> {
        let text = self.rest;
        let line = &text[..memchr(b'\n', text).unwrap_or(text.len())];
        let Some(quoted) = line.strip_prefix(b"\"") else {
            let end = memchr(b']', line);
            self.rest = &text[end.map_or(line.len(), |end| end + 1)..];
            return Cow::Borrowed(line[..end.unwrap_or(line.len())].trim_ascii());
        };
        let mut ends = (0..quoted.len()).filter(|&at| {
            quoted[at] == b'"' && quoted[at + 1..].trim_ascii_start().starts_with(b"]")
        });
        // A backslash before the last quote is part of the value.
        let unescaped = ends.clone().find(|&at| !is_escaped(quoted, at));
        let (end, rest) = match unescaped.or_else(|| ends.next_back()) {
            Some(end) => {
                let bracket = memchr(b']', &quoted[end..]).unwrap_or(0);
                (end, 1 + end + bracket + 1)
            }
            None => {
                let end = quoted.iter().rposition(|&byte| byte == b'"');
                let whole = quoted.trim_ascii_end();
                let whole = whole.strip_suffix(b"]").unwrap_or(whole);
                (end.unwrap_or(whole.len()), line.len())
            }
        };
        self.rest = &text[rest..];
        unescape(&quoted[..end])
    }
}

impl<'a> Iterator for Tags<'a> {
    /// A tag's name and value.
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.skip_to_tag() {
            return None;
        }
        let text = self.rest.trim_ascii_start();
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b']');
        let (name, value) = text.split_at(text.iter().position(is_end).unwrap_or(text.len()));
        self.rest = value.trim_ascii_start();
        Some((name, self.value()))
    }
}

/// Returns the value of a tag.
pub fn tag(game: &str, name: &str) -> Option<String> {
    let mut tags = Tags::new(game.as_bytes());
    let value = tags.find(|&(other, _)| other == name.as_bytes());
    value.map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
}

/// Returns all tags of a game, in order. Text that is not valid UTF-8 is decoded as Latin-1,
/// following the PGN standard.
pub fn tags(game: &[u8]) -> Vec<(String, String)> {
    let tags = Tags::new(game);
    tags.map(|(name, value)| (decoded(name), decoded(&value)))
        .collect()
}

/// Decodes a text in UTF-8 or Latin-1.
pub(super) fn decoded(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => text.iter().copied().map(char::from).collect(),
    }
}

/// Returns whether an odd number of backslashes precedes position `at`.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let backslashes = text[..at].iter().rev().take_while(|&&byte| byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Returns a value after unescaping its quotes and backslashes.
fn unescape(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\\') {
        return Cow::Borrowed(value);
    }
    let mut plain = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = bytes.next_if(|next| byte == b'\\' && matches!(next, b'\\' | b'"'));
        plain.push(escaped.unwrap_or(byte));
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a text's tags and the rest of the text.
    fn read(text: &str) -> (Vec<(String, String)>, String) {
        let mut tags = Tags::new(text.as_bytes());
        let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs = tags.by_ref();
        let pairs = pairs.map(|(name, value)| (string(name), string(&value)));
        let pairs = pairs.collect();
        (pairs, string(tags.rest))
    }

    #[test]
    fn values_as_people_write_them() {
        for (text, value) in [
            ("[A \"plain\"]", "plain"),
            ("[A \"a \\\"b\\\" \\\\ c\"]", "a \"b\" \\ c"),
            ("[A \"a \"b\" c\"]", "a \"b\" c"),
            ("[A \"\"quoted\"\"]", "\"quoted\""),
            ("[A \"C:\\games\\\"]", "C:\\games\\"),
            ("[A \"[b] c\"]", "[b] c"),
            ("[A \"spaced\" ]", "spaced"),
            ("[ A\t\"tab\"]", "tab"),
            ("[A\"close\"]", "close"),
            ("[A \"\"]", ""),
            ("[A bare value]", "bare value"),
            ("[A]", ""),
            ("[A \"no bracket\"", "no bracket"),
            ("[A \"no quote", "no quote"),
            ("[A \"no quote]", "no quote"),
            ("[A no end", "no end"),
        ] {
            let after = [
                ("A".to_owned(), value.to_owned()),
                ("B".to_owned(), "b".to_owned()),
            ];
            let text = format!("{text}\r\n[B \"b\"]\n\n1. e4");
            assert_eq!(
                read(&text),
                (after.into(), "\n\n1. e4".to_owned()),
                "{text}"
            );
            assert_eq!(tag(&text, "A").as_deref(), Some(value));
        }
    }

    #[test]
    fn tags_stand_on_lines_of_their_own_or_not() {
        let text = "\u{feff}% escaped\n{a [comment \"\"]}\n; [another \"\"]\n \
                    [A \"1\"] [B \"2\"][C \"3\"]\n\n%[D \"4\"]\n  [E \"5\"]1. e4";
        let names: Vec<_> = read(text).0.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "C", "E"]);
        assert_eq!(read(text).1, "1. e4");
        assert_eq!(
            read("{a comment} 1. e4"),
            (vec![], "{a comment} 1. e4".to_owned())
        );
        assert_eq!(tag(text, "E").as_deref(), Some("5"));
        assert_eq!(tag(text, "D"), None);
    }

    #[test]
    fn all_tags_are_read_in_either_encoding() {
        let game = b"[White \"M\xfcller\"]\n[Black \"M\xc3\xbcller\"]\n\n1. e4";
        let names = ["White", "Black"].map(|name| (name.to_owned(), "Müller".to_owned()));
        assert_eq!(tags(game), names);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]\"\\\\{};% \na]{0,60}") {
            let (tags, rest) = read(&text);
            prop_assert!(text.ends_with(&rest) && tags.len() <= text.len());
        }
    }
}
