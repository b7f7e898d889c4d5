//! Compares move generation with the counts of every perft suite in the shared data, up to depths
//! that take seconds. `cargo bench --bench perft` covers depth 5.

use rayon::prelude::*;
use shakmaty::CastlingMode;
use std::path::Path;
use tessera::eval::perft::{Outcome, read};

const DEPTH: u32 = 4;
/// Positions with more leaves are left to the benchmark.
const LEAVES: u64 = 50_000;

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
