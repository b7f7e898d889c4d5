//! A review as text for a terminal.

use super::marks::Mark;
use super::report::{PlyReport, Report, SideReport, written};
use shakmaty::Color;
use std::fmt::Write;

/// Returns the review as text: both sides, then the marked moves with their reasons.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let name = |side: Color| {
        let own = report.of(side);
        let name = own
            .name
            .as_deref()
            .unwrap_or(side.fold_wb("White", "Black"));
        let rating = own.rating.map(|rating| format!(" ({rating})"));
        format!("{name}{}", rating.unwrap_or_default())
    };
    let (white, black) = (name(Color::White), name(Color::Black));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{white} – {black}, {}", report.game.result);
    if let (Some(eco), Some(opening)) = (&report.game.eco, &report.game.opening) {
        let _ = writeln!(text, "{eco} {opening}");
    }
    let _ = writeln!(text, "{}", report.origin());
    for remark in report.reliability.iter().chain(&report.game.warnings) {
        let _ = writeln!(text, "{remark}");
    }
    for (side, name) in [(Color::White, white), (Color::Black, black)] {
        if report.is_for(side.into()) {
            let _ = writeln!(text, "{name}: {}", side_text(report.of(side)));
        }
    }
    for ply in &report.plies {
        if report.is_for(ply.side) && ply.mark.is_some() {
            move_text(&mut text, report, ply);
        }
        for draw in report.game.draws.iter().filter(|draw| draw.ply == ply.ply) {
            let _ = writeln!(text, "{} {}: {}", ply.number, ply.mv.san, draw.text);
        }
    }
    text
}

fn side_text(side: &SideReport) -> String {
    let mut parts = Vec::new();
    if let Some(accuracy) = side.accuracy {
        parts.push(format!("accuracy {accuracy:.0} %"));
    }
    for (count, one, many) in [
        (side.blunders, "blunder", "blunders"),
        (side.mistakes, "mistake", "mistakes"),
        (side.inaccuracies, "inaccuracy", "inaccuracies"),
    ] {
        parts.push(format!("{count} {}", if count == 1 { one } else { many }));
    }
    if let Some(rating) = side.estimate {
        parts.push(format!(
            "plays like {} ({} to {})",
            rating.estimate, rating.low, rating.high
        ));
    }
    parts.join(", ")
}

fn move_text(text: &mut String, report: &Report, ply: &PlyReport) {
    let mark = ply.mark.map_or("", Mark::symbol);
    let _ = write!(text, "{} {}{mark}", ply.number, ply.mv.san);
    if let Some(evaluation) = ply.evaluation {
        let _ = write!(text, " ({})", written(evaluation));
    }
    let best = ply
        .best
        .as_ref()
        .filter(|_| ply.mark.is_some_and(Mark::is_bad));
    if let Some(best) = best.and_then(|best| best.moves.first()) {
        let _ = write!(text, "; best was {}", best.mv.san);
    }
    text.push('\n');
    if let Some(fall) = report.fall(ply) {
        let _ = writeln!(text, "    {fall}");
    }
    let facts = ply.reasons.played.iter().chain(&ply.reasons.best);
    for line in facts.map(|fact| &fact.text).chain(&ply.words) {
        let _ = writeln!(text, "    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::testing::fools_mate;

    #[test]
    fn a_review_is_told() {
        let (_, report) = fools_mate();
        let text = text(&report);
        for part in [
            "Anna – Black (1440), 0-1\n",
            "Scores by Stockfish 15.1, 50 nodes a position.\n",
            "1 blunder, 0 mistakes, 1 inaccuracy",
            "2. g4?? (#-1); best was e4\n    White's winning chances fell from 43 % to 2 %.\n    Qh4# is mate.\n",
            "2... Qh4#!\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
