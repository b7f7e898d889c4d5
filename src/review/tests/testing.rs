//! A reviewed game for tests.

use super::analysis::Searched;
use super::cache::Analysis;
use super::curve::Evaluation;
use super::people::Shares;
use super::report::Report;
use super::reporter::{Setting, report};
use super::source::Source;

fn searched(line: &str, evaluation: Evaluation) -> Option<Searched> {
    Some(Searched {
        line: line.split_whitespace().map(str::to_owned).collect(),
        evaluation,
        second: Some(Evaluation::Centipawns(-500)),
    })
}

/// Returns the fool's mate with plausible search results.
pub(super) fn analysed() -> (Source, Analysis) {
    let text = "[White \"Anna\"]\n[BlackElo \"1440\"]\n\n\
                1. f3 e5 2. g4 {[%clk 0:01:00]} Qh4# 0-1";
    let source = Source::read(text.as_bytes()).unwrap();
    let centipawns = Evaluation::Centipawns;
    let shares = |share: f32| {
        Some(Shares {
            played: [share; 11],
            best: Some([0.5; 11]),
        })
    };
    let analysis = Analysis {
        searched: vec![
            searched("e2e4 e7e5", centipawns(30)),
            searched("e7e5 e2e4", centipawns(60)),
            searched("e2e4 b8c6", centipawns(-80)),
            searched("d8h4", Evaluation::Mate(1)),
            None,
        ],
        people: vec![shares(0.1), shares(0.2), shares(0.1), shares(0.3)],
    };
    (source, analysis)
}

/// The settings of a review by a judge.
pub(super) fn setting() -> Setting {
    Setting {
        judge: Some("Stockfish 15.1".to_owned()),
        people: Some("uniform".to_owned()),
        nodes: 50,
        ..Setting::default()
    }
}

/// Returns the report on the fool's mate.
pub(super) fn fools_mate() -> (Source, Report) {
    let (source, analysis) = analysed();
    let report = report(&source, &analysis, &setting());
    (source, report)
}
