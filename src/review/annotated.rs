//! A reviewed game as PGN, with glyphs, scores, lines and short comments beside those that its
//! author wrote. The format is Lichess's, which ChessBase and python-chess also read.

use super::report::{PlyReport, Report, written};
use super::source::Source;
use crate::chess::Game;
use crate::data::pgn::{AnnotatedGame, Movetext};
use shakmaty::Chess;

/// Maximum number of moves in a variation.
const LINE: usize = 8;
/// The tags of an opening.
const OPENING_TAGS: [&str; 4] = ["ECO", "Opening", "Variation", "SubVariation"];

/// Returns the game as PGN, which ends in an empty line.
pub fn annotated_pgn(source: &Source, report: &Report) -> String {
    let opening = [("ECO", &report.game.eco), ("Opening", &report.game.opening)];
    let opening = opening.into_iter();
    let opening = opening.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    // The report and its PGN name the same opening, even if the source has another name.
    let is_kept = |name: &str| report.game.eco.is_none() || !OPENING_TAGS.contains(&name);
    let tags = source.tags.iter().filter(|(name, _)| is_kept(name));
    let tags = tags.cloned();
    let annotator = ("Annotator".to_owned(), annotators(source, report));
    let game = AnnotatedGame {
        tags: [annotator].into_iter().chain(tags).chain(opening).collect(),
        ..AnnotatedGame::new(source.game.clone(), Vec::new(), source.result)
    };
    let result = source.result_text();
    let mut text = game.header(result);
    let mut movetext = Movetext::default();
    let first = source.remarks.first().cloned().unwrap_or_default();
    let after = source.remarks.get(1..).unwrap_or_default();
    comments(&mut movetext, &first.comments, false);
    let remarks = report.reliability.iter().chain(&report.game.warnings);
    let remarks = remarks.filter(|text| !contains(&first.comments, text));
    let remarks: Vec<&str> = remarks.map(String::as_str).collect();
    movetext.comment(&remarks.join(" "));
    let plies = source.game.plies();
    for ((ply, pair), theirs) in report.plies.iter().zip(plies.windows(2)).zip(after) {
        let Some(mv) = pair[1].played else { continue };
        movetext.mv(&mut pair[0].position.clone(), mv);
        let own = ply.mark.map(|mark| u16::from(mark.glyph()));
        let own = own.filter(|glyph| !theirs.glyphs.contains(glyph));
        for glyph in theirs.glyphs.iter().copied().chain(own) {
            movetext.word(format!("${glyph}"));
        }
        comments(&mut movetext, &theirs.comments, ply.evaluation.is_some());
        movetext.comment(&comment(ply, &theirs.comments));
        for line in &theirs.variations {
            movetext.variation(|text| text.written(line));
        }
        let is_new = |line: &String| theirs.variations.iter().all(|it| words(it) != words(line));
        if let Some(line) = best_line(&source.game, &pair[0].position, ply).filter(is_new) {
            movetext.variation(|text| text.written(&line));
        }
    }
    match &source.unread {
        Some(unread) if unread.is_null_move => movetext.written(&unread.text),
        Some(unread) => movetext.comment(&format!("Not read: {}", unread.text)),
        None => {}
    }
    movetext.word(result.to_owned());
    movetext.wrap(&mut text);
    text.push_str("\n\n");
    text
}

/// Returns the authors of the comments: those whom the source names, and Tessera.
fn annotators(source: &Source, report: &Report) -> String {
    let own = format!("Tessera, {}", annotator(report));
    match source.tag("Annotator") {
        Some(theirs) if theirs.contains(&own) => theirs.to_owned(),
        Some(theirs) => format!("{theirs}; {own}"),
        None => own,
    }
}

/// Writes the author's comments. If the review has a score, it replaces the author's.
fn comments(movetext: &mut Movetext, comments: &[String], has_score: bool) {
    for comment in comments {
        match comment.split_once("[%eval") {
            Some((before, rest)) if has_score => {
                let behind = rest.split_once(']').map_or("", |(_, behind)| behind);
                movetext.comment(&format!("{} {}", before.trim_end(), behind.trim_start()));
            }
            _ => movetext.comment(comment),
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Returns whether a text is part of one of the comments.
fn contains(comments: &[String], text: &str) -> bool {
    let text = words(text).join(" ");
    let mut comments = comments.iter();
    comments.any(|comment| words(comment).join(" ").contains(&text))
}

/// Returns the origin of the scores, as in `Stockfish 15.1 (50000 nodes a position)`.
fn annotator(report: &Report) -> String {
    let by = report.judge.as_ref().or(report.network.as_ref());
    let by = by.map_or("", String::as_str);
    format!("{by} ({} nodes a position)", report.nodes)
}

/// Returns a comment with the score, the clock and the reasons that the author's comments do not
/// contain.
fn comment(ply: &PlyReport, theirs: &[String]) -> String {
    let evaluation = ply.evaluation.map(|evaluation| {
        let score = written(evaluation);
        format!("[%eval {}]", score.trim_start_matches('+'))
    });
    let clock = ply.clock.filter(|_| !contains(theirs, "[%clk"));
    let facts = ply.reasons.played.iter().chain(&ply.reasons.best);
    let facts = facts.map(|fact| fact.text.clone());
    let facts = facts.filter(|text| !contains(theirs, text));
    let parts = evaluation.into_iter().chain(clock.map(self::clock));
    parts.chain(facts).collect::<Vec<_>>().join(" ")
}

/// Formats the time left, as in `[%clk 0:03:00]`.
fn clock(seconds: f64) -> String {
    let tenths = (10.0 * seconds).round() as u64;
    let (whole, tenths) = (tenths / 10, tenths % 10);
    let part = match tenths {
        0 => String::new(),
        tenths => format!(".{tenths}"),
    };
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    format!("[%clk {hours}:{minutes:02}:{seconds:02}{part}]")
}

/// Returns the best line, if the move has a bad mark.
fn best_line(game: &Game, before: &Chess, ply: &PlyReport) -> Option<String> {
    let best = ply.best.as_ref()?;
    ply.mark.filter(|mark| mark.is_bad())?;
    let mut line = Game::new(before.clone(), game.mode());
    let mut movetext = Movetext::default();
    for mv in best.moves.iter().take(LINE) {
        let Ok(mv) = line.parse_move(&mv.mv.uci) else {
            break;
        };
        movetext.mv(&mut line.position().clone(), mv);
        line.play(mv);
    }
    let mut text = String::new();
    movetext.wrap(&mut text);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pgn::read_game;
    use crate::review::testing::fools_mate;

    #[test]
    fn a_game_is_annotated() {
        let (source, report) = fools_mate();
        let text = annotated_pgn(&source, &report);
        let one_line = text.replace('\n', " ");
        for part in [
            "[White \"Anna\"]",
            "[Annotator \"Tessera, Stockfish 15.1 (50 nodes a position)\"]",
            "1. f3 $6 {[%eval -0.60]} (1. e4 e5)",
            "2. g4 $4 {[%clk 0:01:00]} {[%eval #-1] Qh4# is mate.} (2. e4 Nc6)",
            "2... Qh4# $1 0-1",
        ] {
            assert!(one_line.contains(part), "{part} in {one_line}");
        }
        let read = read_game(text.as_bytes()).unwrap().record;
        assert_eq!(read.main_line().count(), 4);
        assert_eq!(read.nodes.len(), 8);
    }

    const COMMENTED: &str = "[Annotator \"Bert\"]\n[Board \"3\"]\n\n{Before [%csl Gd4]} \
        1. f3 $13 {An odd {move [%cal Rd8h4] [%eval 0.10]} (1. -- e5 {passes} (1... d5!?)) e5!? \
        2. g4 ; never do this\n Qh4# {Mate} 0-1 {The end}";

    /// Returns the annotated game of the fool's mate with these tags and moves.
    fn reviewed(text: &str) -> String {
        let (_, report) = fools_mate();
        annotated_pgn(&Source::read(text.as_bytes()).unwrap(), &report)
    }

    #[test]
    fn keeps_the_authors_comments() {
        let text = reviewed(COMMENTED);
        let one_line = text.replace('\n', " ");
        for part in [
            "[Annotator \"Bert; Tessera, Stockfish 15.1 (50 nodes a position)\"]",
            "[Board \"3\"]",
            "{Before [%csl Gd4]}",
            "1. f3 $13 $6 {An odd  move [%cal Rd8h4]} {[%eval -0.60]} \
             (1. -- e5 {passes} (1... d5!?)) (1. e4 e5)",
            "1... e5 $5",
            "{never do this} {[%eval #-1] [%clk 0:01:00] Qh4# is mate.}",
            "Qh4# $1 {Mate} {The end} 0-1",
        ] {
            let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
            let one_line = one_line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(one_line.contains(&part), "{part} in {one_line}");
        }
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
        assert!(
            read_game(text.as_bytes())
                .unwrap()
                .bad_variations
                .is_empty()
        );
    }

    /// Reviewing a reviewed game repeats nothing.
    #[test]
    fn a_second_review_adds_nothing() {
        let twice = reviewed(&reviewed(COMMENTED));
        let sorted = |text: &str| {
            let mut words: Vec<String> = text
                .split(['{', '}', ' ', '\n'])
                .map(str::to_owned)
                .collect();
            words.sort();
            words.retain(|word| !word.is_empty());
            words
        };
        assert_eq!(sorted(&reviewed(&twice)), sorted(&twice));
        assert_eq!(twice.matches("Qh4# is mate.").count(), 1, "{twice}");
        assert_eq!(twice.matches("1. e4 e5").count(), 1, "{twice}");
    }

    #[test]
    fn the_rest_of_an_unread_game_is_kept() {
        let (_, report) = fools_mate();
        let read = |text: &str| {
            let source = Source::read(text.as_bytes()).unwrap();
            annotated_pgn(&source, &report).replace('\n', " ")
        };
        let passed = read("1. f3 e5 2. -- {a pass} d5 (2... d6) 1/2-1/2");
        assert!(passed.contains("-- {a pass} d5 (2... d6) *"), "{passed}");
        let broken = read("1. f3 e5 2. Ke4 Nc6 1-0");
        assert!(broken.contains("{Not read: Ke4 Nc6 1-0} *"), "{broken}");
    }

    #[test]
    fn clocks_are_written_as_they_are_read() {
        for (seconds, expected) in [(0.0, "0:00:00"), (61.5, "0:01:01.5"), (3723.0, "1:02:03")] {
            assert_eq!(clock(seconds), format!("[%clk {expected}]"));
        }
    }
}
