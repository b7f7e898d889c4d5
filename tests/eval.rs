//! Players, measured on the real suites in the shared data.

use shakmaty::Position;
use std::path::PathBuf;
use std::sync::Arc;
use tessera::agent::{AgentKind, Options};
use tessera::backend::Uniform;
use tessera::eval::runner::{self, Player, Task};
use tessera::eval::{epd, puzzles};
use tessera::play::{Choice, Limits};

fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    crate::skip::skip(&path.display().to_string());
    None
}

#[test]
fn puzzles_are_solved_only_by_their_solutions() {
    let Some(path) = shared("puzzles/dev.csv") else {
        return;
    };
    let puzzles = puzzles::read(&path).unwrap().0;
    assert_eq!(puzzles.len(), 12_343);
    let mut attempts: Vec<_> = puzzles.into_iter().map(puzzles::Attempt::new).collect();
    for attempt in &mut attempts {
        let solution = attempt.puzzle.solution.clone();
        let moves = solution.len().div_ceil(2);
        for (index, mv) in solution.into_iter().step_by(2).enumerate() {
            assert!(!attempt.solved);
            let choice = Choice {
                best: Some(mv),
                ..Choice::default()
            };
            assert_eq!(attempt.answer(&choice), index + 1 < moves);
        }
        assert!(attempt.solved, "{}", attempt.puzzle.id);
    }
    let summary = puzzles::summarise(&attempts);
    assert_eq!(summary.score.solved, 12_343);
    for band in summary.bands {
        let puzzles = if band.to.is_some() { 1000 } else { 343 };
        assert_eq!(band.score.total, puzzles, "{}", band.from);
    }
}

#[test]
fn a_sample_has_equally_many_puzzles_of_every_band() {
    let Some(path) = shared("puzzles/dev.csv") else {
        return;
    };
    let sample = puzzles::sample(puzzles::read(&path).unwrap().0, 1200);
    assert_eq!(sample.len(), 1200);
    let attempts: Vec<_> = sample.into_iter().map(puzzles::Attempt::new).collect();
    for band in puzzles::summarise(&attempts).bands {
        assert!((92..=93).contains(&band.score.total), "{band:?}");
    }
}

#[test]
fn looking_one_move_ahead_finds_every_mate_in_one() {
    let Some(path) = shared("puzzles/dev.csv") else {
        return;
    };
    let mates = puzzles::read(&path)
        .unwrap()
        .0
        .into_iter()
        .filter(|puzzle| {
            let mut game = puzzle.game.clone();
            game.play(puzzle.solution[0]);
            game.position().is_checkmate()
        });
    let attempts: Vec<_> = mates.map(puzzles::Attempt::new).collect();
    assert!(attempts.len() > 500, "{}", attempts.len());
    let backend = Arc::new(Uniform::default());
    let player = Player {
        agent: AgentKind::Value.build(backend, &Options::default()),
        limits: Limits::default(),
    };
    let attempts = runner::run(attempts, vec![player], &|_| {}).unwrap();
    let score = puzzles::summarise(&attempts).score;
    assert_eq!(score.solved, score.total);
}

#[test]
fn every_suite_is_read() {
    // Each entry has the suite's name, the number of usable positions, and the unusable lines:
    // those with an illegal best move or an illegal position.
    for (name, positions, refused) in [
        ("arasan2024", 200, 0),
        ("bratko-kopec", 24, 0),
        ("bt2630", 30, 0),
        ("eet", 100, 0),
        ("kaufman", 24, 1),
        ("lct2", 35, 0),
        ("mates2000", 2000, 0),
        ("matetrack", 6554, 0),
        ("sts1-15", 1500, 0),
        ("tbtest", 434, 0),
        ("wac", 300, 0),
        ("zugts", 30, 0),
    ] {
        let Some(path) = shared(&format!("epd/{name}.epd")) else {
            continue;
        };
        let (entries, faults) = epd::read(&path).unwrap();
        assert_eq!(
            (entries.len(), faults.len()),
            (positions, refused),
            "{name}: {faults:?}"
        );
        let mates = entries.iter().filter(|entry| entry.mate.is_some()).count();
        let graded = entries
            .iter()
            .filter(|entry| entry.most_points() > 0)
            .count();
        assert_eq!(
            mates,
            if name.starts_with("mate") {
                positions
            } else {
                0
            },
            "{name}"
        );
        assert_eq!(graded, if name == "sts1-15" { 1500 } else { 0 }, "{name}");
    }
}
