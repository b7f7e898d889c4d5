//! `Hash` limits the memory of a search of any length.

#[cfg(feature = "torch")]
mod with_network;

use crate::uci::{Engine, endurance, resident, worked};
use std::time::{Duration, Instant};
use tessera::chess::Game;

/// Duration of the test unless `TESSERA_ENDURANCE` is set.
const BRIEFLY: Duration = Duration::from_secs(4);
/// Number of search threads.
const THREADS: u32 = 2;
/// `Hash`, in MiB.
const HASH: usize = 16;
/// Number of MiB that the engine may use beyond `Hash`: thread stacks, batches, and the bookkeeping
/// of an eviction, which takes one bit per node and the queue of nodes to visit.
const SLACK: usize = 16;
/// Minimum size in bytes of a tree node with all its data.
const NODE_BYTES: u64 = 40;
/// Number of times that even the shortest run fills the memory.
const FILLINGS: u64 = 4;
/// Durations of the searches, chosen so that stops coincide with every phase of an eviction.
const SEARCHES: [Duration; 4] = [
    Duration::from_millis(1300),
    Duration::from_millis(2700),
    Duration::from_millis(700),
    Duration::from_millis(13_900),
];
/// Maximum CPU time of a `stop`.
const PROMPT: Duration = Duration::from_secs(2);
/// CPU time within which the memory must have been filled that many times; on a busy machine, this
/// may be a small part of the elapsed time.
const WORK: Duration = Duration::from_secs(120);

/// Returns the number after a word of an info line.
fn number(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split(' ');
    words.find(|&other| other == word)?;
    words.next()?.parse().ok()
}

#[test]
fn endures_an_infinite_search_within_the_hash() {
    let duration = endurance(BRIEFLY);
    let mut engine = Engine::random();
    engine.say("setoption name Backend value uniform");
    engine.say(&format!("setoption name Threads value {THREADS}"));
    engine.say("setoption name Hash value 1");
    engine.say("go nodes 100");
    engine.best_move();
    let before = resident(&engine);
    let mut largest = before;
    engine.say(&format!("setoption name Hash value {HASH}"));
    let began = Instant::now();
    let (mut visits, mut fullest, mut stops) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    while began.elapsed() < duration || visits * NODE_BYTES < FILLINGS * (HASH << 20) as u64 {
        let work = worked(&engine, began);
        assert!(
            work < THREADS * duration + WORK,
            "{visits} visits in {work:?}"
        );
        let searched = Instant::now();
        let mut nodes = visits;
        engine.say("go infinite");
        while searched.elapsed() < SEARCHES[stops % SEARCHES.len()].min(duration) {
            // Reports are sent at least once a second.
            let line = engine.wait_for("info depth ").pop().unwrap();
            let now = number(&line, "nodes").unwrap();
            assert!(now >= nodes, "{nodes} nodes, then `{line}`");
            nodes = now;
            largest = largest.max(resident(&engine));
            fullest = fullest.max(number(&line, "hashfull").unwrap());
        }
        let asked = worked(&engine, began);
        engine.say("stop");
        let lines = engine.wait_for("bestmove ");
        slowest = slowest.max(worked(&engine, began) - asked);
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
        "{visits} visits; {stops} stops, each answered after work of {slowest:?} at most; \
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
