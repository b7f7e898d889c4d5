//! `UCI_LimitStrength` and `HumanTime` in the real program.

use crate::uci::Engine;
use crate::waiting::at_some_pace;
use std::thread;
use std::time::{Duration, Instant};

/// Additional time for answers.
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
        at_some_pace("a move takes a tenth of the clock at most", |factor| {
            let (clock, increment) = (clock * factor, increment * factor);
            let go = format!("go wtime {clock} btime {clock} winc {increment} binc {increment}");
            let most = Duration::from_millis((clock / 10).into()) + SLACK * factor;
            (0..4).all(|_| {
                let (_, took) = think(&mut engine, &go);
                println!("{go}: {took:?}");
                took < most
            })
        });
    }
    // With more time on the clock, the engine does think.
    let times = (0..3).map(|_| think(&mut engine, "go wtime 20000 btime 20000").1);
    assert!(times.sum::<Duration>() > Duration::from_millis(100));
}

#[test]
fn human_thinking_can_be_interrupted() {
    // A move would take hours, or longer than the test waits for anything.
    let long = "go wtime 1000000000 btime 1000000000";
    let mut engine = person(2);
    engine.say("position startpos");
    engine.say(long);
    thread::sleep(Duration::from_millis(100));
    think(&mut engine, "stop");
    // `ponderhit` starts the thinking, which `stop` then ends.
    engine.say(&long.replace("go", "go ponder"));
    engine.say("ponderhit");
    assert!(
        engine
            .settle()
            .iter()
            .all(|line| !line.starts_with("bestmove"))
    );
    think(&mut engine, "stop");
    drop(engine);
    // The engine waits for a second, and a busy machine may need more.
    at_some_pace("`quit` is preceded by an answer", |_| {
        let mut engine = person(2);
        engine.say(long);
        engine.say("quit");
        let said = engine.ends();
        said.iter().any(|line| line.starts_with("bestmove "))
    });
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
