//! An author's remarks on a move: glyphs, comments and variations.

use super::token::{digits, word_length};

/// Signs that stand for a numeric glyph.
const SIGNS: [(u16, &[&str]); 17] = [
    (1, &["!"]),
    (2, &["?"]),
    (3, &["!!"]),
    (4, &["??"]),
    (5, &["!?"]),
    (6, &["?!"]),
    (7, &["□"]),
    (10, &["="]),
    (13, &["∞", "=∞"]),
    (14, &["⩲", "+=", "+/="]),
    (15, &["⩱", "=+", "=/+"]),
    (16, &["±", "+/-"]),
    (17, &["∓", "-/+"]),
    (18, &["+-", "+--"]),
    (19, &["-+", "--+"]),
    (140, &["⌓"]),
    (146, &["N", "TN"]),
];

/// An author's remarks between a move of the main line and the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Numeric glyphs, including those written as signs.
    pub glyphs: Vec<u16>,
    /// The comments, without their braces.
    pub comments: Vec<String>,
    /// The variations' texts, without their outer parentheses.
    pub variations: Vec<String>,
}

impl Remarks {
    /// Reads the text between two moves. Move numbers and results are ignored.
    pub(super) fn read(text: &str) -> Remarks {
        let mut remarks = Remarks::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '(' => {
                    let length = variation_length(rest);
                    let inner = rest[1..length].strip_suffix(')');
                    let inner = inner.unwrap_or(&rest[1..length]).trim();
                    remarks.variations.push(inner.to_owned());
                    length
                }
                _ => {
                    let (length, piece) = piece(rest);
                    match piece {
                        Piece::Comment(comment) if comment.trim().is_empty() => {}
                        Piece::Comment(comment) => remarks.comments.push(comment.trim().to_owned()),
                        Piece::Word(word) => remarks.glyphs.extend(glyph(word)),
                        Piece::Space | Piece::Parenthesis => {}
                    }
                    length
                }
            };
            rest = &rest[length..];
        }
        remarks
    }
}

/// A piece of movetext as its author wrote it.
pub(super) enum Piece<'a> {
    Space,
    Parenthesis,
    /// A comment, without its braces.
    Comment(&'a str),
    /// A move, a number, a glyph, a result, or a run of the characters `!` and `?`.
    Word(&'a str),
}

/// Returns the piece at the start of a text, which must not be empty, and its length in bytes.
pub(super) fn piece(text: &str) -> (usize, Piece<'_>) {
    let line = text.find('\n').unwrap_or(text.len());
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '{' => {
            let end = text.find('}').unwrap_or(text.len());
            let length = text.len().min(end + 1);
            (length, Piece::Comment(&text[1..end]))
        }
        ';' => (line, Piece::Comment(&text[1..line])),
        // PGN hides such lines from programs.
        '%' => (line, Piece::Space),
        '(' | ')' => (1, Piece::Parenthesis),
        '}' => (1, Piece::Space),
        _ if first.is_whitespace() || first.is_control() => (first.len_utf8(), Piece::Space),
        _ => {
            let length = match first {
                '!' | '?' => text.find(|it| it != '!' && it != '?').unwrap_or(text.len()),
                '$' => 1 + digits(&text.as_bytes()[1..]),
                _ => word_length(text.as_bytes()),
            };
            (length, Piece::Word(&text[..length]))
        }
    }
}

/// Returns the length in bytes of the variation at the start of a text, with its parentheses.
fn variation_length(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let (length, piece) = piece(&text[at..]);
        if matches!(piece, Piece::Parenthesis) {
            depth += if text[at..].starts_with('(') { 1 } else { -1 };
        }
        at += length;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Returns the numeric glyph that a word stands for.
fn glyph(word: &str) -> Option<u16> {
    if let Some(number) = word.strip_prefix('$') {
        return number[..digits(number.as_bytes())].parse().ok();
    }
    let mut signs = SIGNS.iter();
    let (number, _) = signs.find(|(_, signs)| signs.contains(&word))?;
    Some(*number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_comments_and_variations_are_told_apart() {
        let text = "!? $14 {first [%cal Ge2e4]} (1. d4 {in (a) bracket} (1. c4 $1) a8(Q) ;)\n 2. c4) \
                    ; to the end of the line\n% hidden\n{} ± 2.";
        let remarks = Remarks::read(text);
        assert_eq!(remarks.glyphs, [5, 14, 16]);
        assert_eq!(
            remarks.comments,
            ["first [%cal Ge2e4]", "to the end of the line"]
        );
        let line = "1. d4 {in (a) bracket} (1. c4 $1) a8(Q) ;)\n 2. c4";
        assert_eq!(remarks.variations, [line]);
        // An unclosed remark ends with the text.
        assert_eq!(Remarks::read("(1. d4 {").variations, ["1. d4 {"]);
        assert_eq!(Remarks::read("{1. d4").comments, ["1. d4"]);
        assert!(Remarks::read(" 3... } $ ").glyphs.is_empty());
    }
}
