//! `Hash` is a bound, however long a search goes on.

#[cfg(feature = "torch")]
mod memory_with_network;

use crate::uci::{Engine, PATIENCE, endurance, resident};
use std::time::{Duration, Instant};
use tessera::chess::Game;

/// How long it takes where nobody asked for more.
const BRIEFLY: Duration = Duration::from_secs(4);
/// MiB of `Hash`.
const HASH: usize = 16;
/// MiB that the engine may take beyond it: stacks of threads, batches, and what
/// an eviction writes down, a bit a node and the nodes still to be looked at.
const SLACK: usize = 16;
/// Bytes that no node of a tree, with all it owns, does without.
const NODE_BYTES: u64 = 40;
/// Fillings of the memory that the shortest run sees.
const FILLINGS: u64 = 4;
/// How long searches go on before they are stopped: evictions fall on any
/// moment of them.
const SEARCHES: [Duration; 4] = [
    Duration::from_millis(1300),
    Duration::from_millis(2700),
    Duration::from_millis(700),
    Duration::from_millis(13_900),
];
/// Most that a `stop` may take here, where tests share their machine.
const PROMPT: Duration = Duration::from_secs(5);

/// The number after a word of an info line.
fn number(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split(' ');
    words.find(|&other| other == word)?;
    words.next()?.parse().ok()
}

#[test]
fn endures_a_search_without_end_within_the_hash() {
    let duration = endurance(BRIEFLY);
    let mut engine = Engine::random();
    for option in ["Backend value uniform", "Threads value 2", "Hash value 1"] {
        engine.say(&format!("setoption name {option}"));
    }
    engine.say("go nodes 100");
    engine.best_move();
    let before = resident(&engine);
    let mut largest = before;
    engine.say(&format!("setoption name Hash value {HASH}"));
    let began = Instant::now();
    let (mut visits, mut fullest, mut stops) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    while began.elapsed() < duration || visits * NODE_BYTES < FILLINGS * (HASH << 20) as u64 {
        assert!(began.elapsed() < duration + PATIENCE, "{visits} visits");
        let searched = Instant::now();
        let mut nodes = visits;
        engine.say("go infinite");
        while searched.elapsed() < SEARCHES[stops % SEARCHES.len()].min(duration) {
            // News come once a second at least.
            let line = engine.wait_for("info depth ").pop().unwrap();
            let now = number(&line, "nodes").unwrap();
            assert!(now >= nodes, "{nodes} nodes, then `{line}`");
            nodes = now;
            largest = largest.max(resident(&engine));
            fullest = fullest.max(number(&line, "hashfull").unwrap());
        }
        let asked = Instant::now();
        engine.say("stop");
        let lines = engine.wait_for("bestmove ");
        slowest = slowest.max(asked.elapsed());
        stops += 1;
        let last = lines.iter().rev().find_map(|line| number(line, "nodes"));
        assert!(
            last.is_some_and(|last| last > visits),
            "{visits} visits, then {lines:?}"
        );
        visits = last.unwrap();
        let best = lines.last().unwrap().split(' ').nth(1).unwrap();
        assert!(Game::default().parse_move(best).is_ok(), "{best}");
    }
    println!(
        "{visits} visits; {stops} stops, each answered within {slowest:?}; \
         {before:?} MiB before and {largest:?} at most"
    );
    assert!(slowest < PROMPT, "{slowest:?}");
    assert!(fullest > 700, "never fuller than {fullest} thousandths");
    if let (Some(before), Some(largest)) = (before, largest) {
        assert!(
            largest <= before + HASH + SLACK,
            "{before} MiB have become {largest}"
        );
    }
}
