use super::*;
use crate::review::testing::{analysed, setting};

fn source(text: &str) -> Source {
    Source::read(text.as_bytes()).unwrap()
}

#[test]
fn moves_are_marked_and_explained() {
    let (source, analysis) = analysed();
    let report = report(&source, &analysis, &setting());
    let marks: Vec<_> = report.plies.iter().map(|ply| ply.mark).collect();
    let expected = [
        Some(Mark::Inaccuracy),
        Some(Mark::Good),
        Some(Mark::Blunder),
        Some(Mark::Good),
    ];
    assert_eq!(marks, expected);
    let blunder = &report.plies[2];
    assert_eq!(blunder.number, "2.");
    assert_eq!(blunder.clock, Some(60.0));
    assert_eq!(blunder.mate, Some(MateEvent::Allowed));
    assert_eq!(blunder.evaluation, Some(Evaluation::Mate(-1)));
    assert_eq!(blunder.reasons.played[0].text, "Qh4# is mate.");
    assert_eq!(blunder.best.as_ref().unwrap().moves[0].mv.san, "e4");
    assert_eq!(blunder.reply.as_ref().unwrap().moves[0].number, "2...");
    assert_eq!(blunder.words.len(), 2);
    let mate = &report.plies[3];
    assert_eq!(
        (mate.evaluation, mate.win),
        (None, Some(percent(Evaluation::Mate(0).chances())))
    );
    assert!(mate.best.is_none() && mate.reply.is_none());
    assert_eq!(report.game.ending.as_deref(), Some("checkmate"));
    assert_eq!(report.white.blunders, 1);
    assert_eq!(report.white.allowed_mates, 1);
    assert_eq!(report.white.name.as_deref(), Some("Anna"));
    assert_eq!(report.black.accuracy, Some(100.0));
    assert!(report.white.accuracy.unwrap() < 60.0);
    assert_eq!(report.black.rating, Some(1440));
    // Words refer to the player's rating, or to the requested one.
    assert!(
        report.plies[1].words[0].contains("rated 1400"),
        "{:?}",
        report.plies[1].words
    );
    assert!(
        report.plies[0].words[0].contains("rated 1500"),
        "{:?}",
        report.plies[0].words
    );
    let setting = Setting {
        elo: Some(2222),
        ..setting()
    };
    let asked = super::report(&source, &analysis, &setting);
    assert!(asked.plies[0].words[0].contains("rated 2200"));
}

#[test]
fn unknown_scores_stay_open() {
    let (source, mut analysis) = analysed();
    analysis.searched[2] = None;
    analysis.people = vec![None; 4];
    let report = report(&source, &analysis, &setting());
    let losses: Vec<_> = report.plies.iter().map(|ply| ply.loss.is_some()).collect();
    assert_eq!(losses, [true, false, false, true]);
    assert!(report.plies.iter().all(|ply| ply.words.is_empty()));
    assert!(report.game.warnings[0].contains("1 of 5 positions"));
    assert!(report.white.estimate.is_none() && report.white.log_likelihood.is_none());
    assert!(report.white.accuracy.is_some());
    let text = serde_json::to_string(&report).unwrap();
    assert!(serde_json::from_str::<Report>(&text).is_ok());
}

#[test]
fn a_game_without_moves_has_a_report() {
    let source = source("[White \"Anna\"]\n\n*");
    let report = report(&source, &Analysis::new(&source.game), &setting());
    assert!(report.plies.is_empty());
    let broken = self::source("1. e4 e5 2. Ke4");
    let report = super::report(&broken, &Analysis::new(&broken.game), &setting());
    assert!(
        report.game.warnings[0].contains("read up to 1... e5: 2. Ke4 is not"),
        "{:?}",
        report.game.warnings
    );
    // Before the searches, the outline is complete.
    let outline = outline(&broken, &setting());
    assert_eq!(outline.game.warnings, report.game.warnings[..1]);
    assert_eq!(outline.plies.len(), 2);
}

#[test]
fn castling_is_shown_by_the_king() {
    let source = source("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O *");
    let report = report(&source, &Analysis::new(&source.game), &setting());
    let castling = &report.plies[6].mv;
    assert_eq!(
        (&castling.from[..], &castling.to[..], &castling.san[..]),
        ("e1", "g1", "O-O")
    );
    assert!(report.game.opening.unwrap().starts_with("Italian Game"));
    assert!(report.game.book_plies >= 6);
}
