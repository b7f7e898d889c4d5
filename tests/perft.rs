//! Compares move generation with the counts of every perft suite in the shared data, up to depths
//! that take seconds. `cargo bench --bench perft` covers depth 5.

mod suite;

use proptest::prelude::*;
use rayon::prelude::*;
use shakmaty::CastlingMode;
use std::path::Path;
use suite::{Entry, Outcome, read};

const DEPTH: u32 = 4;
/// Positions with more leaves are left to the benchmark.
const LEAVES: u64 = 50_000;
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

fn check(name: &str, mode: CastlingMode, positions: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../shared/data/epd").join(name);
    if !path.exists() {
        crate::skip::skip(&path.display().to_string());
        return;
    }
    let entries = read(&path).unwrap();
    assert_eq!(entries.len(), positions, "{name}");
    let outcomes: Vec<Outcome> = entries
        .par_iter()
        .map(|entry| entry.check(mode, DEPTH, LEAVES))
        .collect();
    let mut leaves = 0;
    for (entry, outcome) in entries.iter().zip(outcomes) {
        match outcome {
            Outcome::Right(counted) => leaves += counted,
            Outcome::Refused(reason) => panic!("{name}: {} is refused: {reason}", entry.fen),
            wrong @ Outcome::Wrong { .. } => panic!("{name}: {}: {wrong:?}", entry.fen),
        }
    }
    println!("{name}: {positions} positions, {leaves} leaves");
    assert!(
        leaves > 1000 * positions as u64,
        "too few nodes were counted"
    );
}

#[test]
fn perftsuite() {
    check("perftsuite.epd", CastlingMode::Standard, 126);
}

#[test]
fn frcperftsuite() {
    check("frcperftsuite.epd", CastlingMode::Chess960, 960);
}

#[test]
fn marcel() {
    check("perft-marcel.epd.gz", CastlingMode::Standard, 6838);
}

#[test]
fn both_ways_of_writing_counts() {
    let expected = Entry {
        fen: START.to_owned(),
        counts: vec![(1, 20), (2, 400)],
    };
    for counts in [" ;D1 20 ;D2 400", "; D1 20; D2 400; "] {
        assert_eq!(
            Entry::parse(&format!("{START}{counts}")),
            Ok(expected.clone())
        );
    }
    for counts in ["", ";", ";D1", ";D0 1", ";D1 x", ";20"] {
        assert!(
            Entry::parse(&format!("{START}{counts}")).is_err(),
            "{counts}"
        );
    }
}

#[test]
fn outcomes() {
    let check = |fen: &str, counts: &[(u32, u64)], depth, leaves| {
        let entry = Entry {
            fen: fen.to_owned(),
            counts: counts.to_vec(),
        };
        entry.check(CastlingMode::Standard, depth, leaves)
    };
    let known = [(1, 20), (2, 400), (3, 1)];
    assert_eq!(check(START, &known, 2, 1000), Outcome::Right(420));
    assert_eq!(check(START, &known, 2, 100), Outcome::Right(20));
    let wrong = Outcome::Wrong {
        depth: 3,
        expected: 1,
        counted: 8902,
    };
    assert_eq!(check(START, &known, 3, 1000), wrong);
    let kings = "8/8/8/8/8/8/8/8 w - - 0 1";
    assert!(matches!(check(kings, &known, 1, 1000), Outcome::Refused(_)));
}

proptest! {
    #[test]
    fn parsing_never_panics(line in "\\PC*", counts in "(;D[0-9]{1,30} [0-9]{1,30} ?){0,4}") {
        let _ = Entry::parse(&line);
        let _ = Entry::parse(&format!("{START} {counts}"));
    }
}
