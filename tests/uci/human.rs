//! `UCI_LimitStrength` and `HumanTime` in the real program.

use crate::uci::Engine;
use std::thread;
use std::time::{Duration, Instant};

/// Additional time for answers, because other tests share the machine.
const SLACK: Duration = Duration::from_millis(500);

/// Starts an engine with limited strength and `HumanTime`, without a network.
fn person(seed: u32) -> Engine {
    let mut engine = Engine::random();
    for (name, value) in [
        ("UCI_LimitStrength", "true"),
        ("UCI_Elo", "1400"),
        ("HumanTime", "true"),
        ("Move Overhead", "20"),
        ("Seed", &seed.to_string()),
    ] {
        engine.say(&format!("setoption name {name} value {value}"));
    }
    engine.say("isready");
    engine.wait_for("readyok");
    engine
}

/// Sends `go` with a clock; returns the move and the time that it took.
fn think(engine: &mut Engine, go: &str) -> (String, Duration) {
    let began = Instant::now();
    engine.say(go);
    (engine.best_move(), began.elapsed())
}

#[test]
fn human_play_respects_tiny_clocks() {
    let mut engine = person(1);
    engine.say("position startpos");
    for (clock, increment) in [(1, 0), (20, 0), (50, 50), (300, 0), (1000, 10), (2000, 0)] {
        for _ in 0..4 {
            let go = format!("go wtime {clock} btime {clock} winc {increment} binc {increment}");
            let (_, took) = think(&mut engine, &go);
            assert!(
                took < Duration::from_millis(clock / 10) + SLACK,
                "{go}: {took:?}"
            );
        }
    }
    // With more time on the clock, the engine does think.
    let times = (0..3).map(|_| think(&mut engine, "go wtime 20000 btime 20000").1);
    assert!(times.sum::<Duration>() > Duration::from_millis(100));
}

#[test]
fn human_thinking_can_be_interrupted() {
    let long = "go wtime 3600000 btime 3600000";
    let prompt = Duration::from_secs(2);
    let mut engine = person(2);
    engine.say("position startpos");
    engine.say(long);
    thread::sleep(Duration::from_millis(100));
    let (_, took) = think(&mut engine, "stop");
    assert!(took < prompt, "{took:?}");
    // `ponderhit` starts the thinking, which `stop` then ends.
    engine.say("go ponder wtime 3600000 btime 3600000");
    engine.say("ponderhit");
    assert!(
        engine
            .settle()
            .iter()
            .all(|line| !line.starts_with("bestmove"))
    );
    let (_, took) = think(&mut engine, "stop");
    assert!(took < prompt, "{took:?}");
    engine.say(long);
    engine.say("quit");
    let (took, said) = engine.ends();
    assert!(took < prompt, "{took:?}");
    assert!(
        said.iter().any(|line| line.starts_with("bestmove ")),
        "{said:?}"
    );
}

#[test]
fn a_seed_fixes_the_moves_and_no_seed_varies_them() {
    let play = |seed| {
        let mut engine = person(seed);
        let mut moves = String::new();
        for _ in 0..10 {
            engine.say(&format!("position startpos moves {moves}"));
            let (mv, _) = think(&mut engine, "go nodes 1");
            moves = format!("{moves} {mv}");
        }
        moves
    };
    assert_eq!(play(3), play(3));
    assert_ne!(play(3), play(4));
    assert_ne!(play(0), play(0));
}
