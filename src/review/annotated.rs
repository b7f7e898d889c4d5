//! A reviewed game as PGN, with glyphs, scores, lines and short comments. The format is Lichess's,
//! which ChessBase and python-chess also read.

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
#[must_use]
pub fn annotated_pgn(source: &Source, report: &Report) -> String {
    let opening = [("ECO", &report.game.eco), ("Opening", &report.game.opening)];
    let opening = opening.into_iter();
    let opening = opening.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    // The report and its PGN name the same opening, even if the source has another name.
    let is_kept = |name: &str| report.game.eco.is_none() || !OPENING_TAGS.contains(&name);
    let tags = source.tags.iter().filter(|(name, _)| is_kept(name));
    let tags = tags.cloned();
    let annotator = (
        "Annotator".to_owned(),
        format!("Tessera, {}", annotator(report)),
    );
    let game = AnnotatedGame {
        tags: [annotator].into_iter().chain(tags).chain(opening).collect(),
        ..AnnotatedGame::new(source.game.clone(), Vec::new(), source.result)
    };
    let result = source.result_text();
    let mut text = game.header(result);
    let mut movetext = Movetext::default();
    let remarks = report.reliability.iter().chain(&report.game.warnings);
    let remarks: Vec<&str> = remarks.map(String::as_str).collect();
    movetext.comment(&remarks.join(" "));
    let plies = source.game.plies();
    for (ply, pair) in report.plies.iter().zip(plies.windows(2)) {
        let Some(mv) = pair[1].played else { continue };
        movetext.mv(&mut pair[0].position.clone(), mv);
        if let Some(mark) = ply.mark {
            movetext.word(format!("${}", mark.glyph()));
        }
        movetext.comment(&comment(ply));
        variation(&mut movetext, &source.game, &pair[0].position, ply);
    }
    movetext.word(result.to_owned());
    movetext.wrap(&mut text);
    text.push_str("\n\n");
    text
}

/// Returns the origin of the scores, as in `Stockfish 15.1 (50000 nodes a position)`.
fn annotator(report: &Report) -> String {
    let by = report.judge.as_ref().or(report.network.as_ref());
    let by = by.map_or("", String::as_str);
    format!("{by} ({} nodes a position)", report.nodes)
}

/// Returns a comment with the score, the clock and the reasons.
fn comment(ply: &PlyReport) -> String {
    let evaluation = ply.evaluation.map(|evaluation| {
        let score = written(evaluation);
        format!("[%eval {}]", score.trim_start_matches('+'))
    });
    let clock = ply.clock.map(clock);
    let facts = ply.reasons.played.iter().chain(&ply.reasons.best);
    let facts = facts.map(|fact| fact.text.clone());
    let parts = evaluation.into_iter().chain(clock).chain(facts);
    parts.collect::<Vec<_>>().join(" ")
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

/// Writes the best line as a variation, if the move has a bad mark.
fn variation(movetext: &mut Movetext, game: &Game, before: &Chess, ply: &PlyReport) {
    let Some(best) = &ply.best else { return };
    if !ply.mark.is_some_and(super::marks::Mark::is_bad) {
        return;
    }
    let mut line = Game::new(before.clone(), game.mode());
    movetext.variation(|text| {
        for mv in best.moves.iter().take(LINE) {
            let Ok(mv) = line.parse_move(&mv.mv.uci) else {
                break;
            };
            text.mv(&mut line.position().clone(), mv);
            line.play(mv);
        }
    });
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
            "2. g4 $4 {[%eval #-1] [%clk 0:01:00] Qh4# is mate.} (2. e4 Nc6)",
            "2... Qh4# $1 0-1",
        ] {
            assert!(one_line.contains(part), "{part} in {one_line}");
        }
        let read = read_game(text.as_bytes()).unwrap().record;
        assert_eq!(read.main_line().count(), 4);
        assert_eq!(read.nodes.len(), 8);
    }

    #[test]
    fn clocks_are_written_as_they_are_read() {
        for (seconds, expected) in [(0.0, "0:00:00"), (61.5, "0:01:01.5"), (3723.0, "1:02:03")] {
            assert_eq!(clock(seconds), format!("[%clk {expected}]"));
        }
    }
}
