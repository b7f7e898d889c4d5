//! Parses the scores and lines that programs write into comments.
//!
//! | source | format | view of the score |
//! |---|---|---|
//! | Lichess and many more | `[%eval 0.24,17]`, `[%eval #-3]` | White's |
//! | TCEC's archive | `d=43, …, pv=Qd2 Bxg5, …, wv=0.86,` | White's |
//! | Cute Chess, fastchess, `tools/match` | `+0.86/43 1.2s`, `-M5/12 0.1s` | the side that moved |
//! | OpenBench | `+0.57 17/28 583 363004` | the side that moved |

use shakmaty::Color;

use crate::data::record::Eval;

/// The score and the line in a comment after a move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Said<'a> {
    /// The score; `None` if it is a mate in 0 that does not name the winner.
    pub eval: Option<Eval>,
    /// The expected line in SAN, starting with the move itself.
    pub line: Option<&'a str>,
}

/// Parses the comment after a move by `mover`.
pub(super) fn read(comment: &str, mover: Color) -> Said<'_> {
    if let Some((_, rest)) = comment.split_once("[%eval") {
        let score = rest.split_once(']').map(|(score, _)| score);
        let score = score.and_then(|score| score.split(',').next());
        let eval = score.and_then(|score| eval(score.trim(), '#'));
        return Said { eval, line: None };
    }
    if let Some(score) = field(comment, "wv") {
        return Said {
            eval: eval(score, 'M'),
            line: field(comment, "pv"),
        };
    }
    Said {
        eval: movers_score(comment)
            .and_then(|score| eval(score, 'M'))
            .map(|eval| mover.fold_wb(eval, eval.reversed())),
        line: None,
    }
}

/// Returns the score before the depth at the start of a comment, as in `+0.86/43`, or in `+0.86
/// 43/50` with the selective depth.
fn movers_score(comment: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let mut words = comment.split_ascii_whitespace();
    let first = words.next()?;
    let score = match first.split_once('/') {
        Some((score, depth)) => depth
            .starts_with(|it: char| it.is_ascii_digit())
            .then_some(score),
        None => {
            let (depth, selective) = words.next()?.split_once('/')?;
            (is_number(depth) && is_number(selective)).then_some(first)
        }
    };
    score.filter(|score| score.starts_with(['+', '-']) || *score == "0.00")
}

/// Returns the value of `name=value,` in a list of such fields.
fn field<'a>(comment: &'a str, name: &str) -> Option<&'a str> {
    comment.split(',').find_map(|part| {
        let (key, value) = part.trim_start().split_once('=')?;
        (key == name).then(|| value.trim_end())
    })
}

/// Parses a score in pawns or, if it starts with `mark`, the number of moves to mate. Scores out of
/// range are clamped.
fn eval(score: &str, mark: char) -> Option<Eval> {
    let unsigned = score.trim_start_matches(['+', '-']);
    if let Some(mate) = score
        .strip_prefix(mark)
        .or_else(|| unsigned.strip_prefix(mark))
    {
        // A second sign contradicts the first.
        let is_signed_twice = score.starts_with(['+', '-']) && mate.starts_with(['+', '-']);
        let moves: i16 = mate.parse().ok().filter(|_| !is_signed_twice)?;
        let moves = match score.starts_with('-') {
            true => moves.checked_neg()?,
            false => moves,
        };
        return (moves != 0).then_some(Eval::Mate(moves));
    }
    let pawns: f64 = score.parse().ok()?;
    // A cast from float to integer saturates.
    pawns
        .is_finite()
        .then(|| Eval::Centipawns((pawns * 100.0).round() as i16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scores_in_all_their_forms() {
        let centipawns = |value| Some(Eval::Centipawns(value));
        for (comment, expected) in [
            ("[%eval 0.24,17]", centipawns(24)),
            ("[%eval -1.5]", centipawns(-150)),
            (
                "good [%clk 0:01:00] [%eval 128.00,33] move",
                centipawns(12_800),
            ),
            ("[%eval 9999.0]", centipawns(i16::MAX)),
            ("[%eval #-3,28]", Some(Eval::Mate(-3))),
            ("[%eval #12]", Some(Eval::Mate(12))),
            ("[%eval #0]", None),
            ("[%eval NaN]", None),
            ("[%eval 0.1", None),
            ("[%clk 0:01:00]", None),
            ("d=8, mt=5901, wv=1.80, R50=46,", centipawns(180)),
            ("d=8, wv=-M12,", Some(Eval::Mate(-12))),
            ("d=8, wv=M7, R50=46", Some(Eval::Mate(7))),
            ("book, mb=+0+0+0+0+0,", None),
            ("+0.86/43 1.2s", centipawns(-86)),
            ("-0.25/5 0.001s, n=12", centipawns(25)),
            ("0.00/1 0s", centipawns(0)),
            ("+M5/12 0.1s", Some(Eval::Mate(-5))),
            ("-M2/12 0.1s", Some(Eval::Mate(2))),
            ("-M-32768/1", None),
            ("-M-5/1", None),
            ("+0.86/43\n1.2s", centipawns(-86)),
            (" +0.86/43 1.2s ", centipawns(-86)),
            ("+0.57 17/28 583 363004", centipawns(-57)),
            ("-1.05 9/14 12 9034", centipawns(105)),
            ("0.00 1/1 0 20", centipawns(0)),
            ("+M5 17/28 583 363004", Some(Eval::Mate(-5))),
            ("-M2 17/28\n583 363004", Some(Eval::Mate(2))),
            ("+0.57 17 583 363004", None),
            ("+0.57 a/28 583", None),
            ("0.57 17/28 583 363004", None),
            ("+0.57", None),
            ("/1", None),
            ("White 1/2", None),
            ("1/2-1/2 was offered", None),
            ("+/- for White", None),
            ("", None),
        ] {
            assert_eq!(read(comment, Color::Black).eval, expected, "{comment}");
        }
        assert_eq!(read("+0.86/43 1.2s", Color::White).eval, centipawns(86));
    }

    #[test]
    fn the_expected_line() {
        let comment = "d=22, pd=Nf3, pv=Nb4 Bf1 d5, tb=0, wv=0.42,";
        assert_eq!(read(comment, Color::White).line, Some("Nb4 Bf1 d5"));
    }

    proptest! {
        #[test]
        fn no_comment_panics(text in "(\\[%eval |wv=|pv=|[-+M#,./ ]|[0-9]{1,6}|e4|\\PC){0,20}") {
            read(&text, Color::Black);
        }
    }
}
