//! The real program over pipes, as a chess client runs it.
//!
//! Tests whose names start with `endures` run for the number of seconds in the environment variable
//! `TESSERA_ENDURANCE`, or briefly if it is unset.

mod faults;
mod human;
mod memory;
#[cfg(feature = "torch")]
mod moves;
#[path = "../src/uci/tests/mutate.rs"]
mod mutate;
mod problems;
mod repetition;
mod stress;

use crate::support::{exit, wait_until};
use crate::waiting::{PATIENCE, at_some_pace};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tessera::chess::Game;
use tessera::play::centipawns;

const ITALIAN: &str = "position startpos moves e2e4 e7e5 g1f3 b8c6 f1c4 f8c5";

struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Receives the complete standard error when the engine has exited.
    errors: Receiver<String>,
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

impl Engine {
    fn start() -> Engine {
        let mut child = command().stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let (said, heard) = channel();
        thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            let _ = said.send(text);
        });
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                // Sending fails if the test has already ended.
                let _ = sender.send(line.unwrap());
            }
        });
        Engine {
            input: child.stdin.take(),
            child,
            lines,
            errors: heard,
        }
    }

    /// Starts an engine that needs no network.
    fn random() -> Engine {
        let mut engine = Engine::start();
        engine.say("setoption name Backend value random");
        engine.say("isready");
        engine.wait_for("readyok");
        engine
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for the next line with this beginning; returns it and the lines before it.
    fn wait_for(&self, beginning: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    assert!(!line.contains("internal error"), "{line} after {seen:?}");
                    let found = line.starts_with(beginning);
                    seen.push(line);
                    if found {
                        return seen;
                    }
                }
                Err(_) => panic!("no `{beginning}` after {seen:?}"),
            }
        }
    }

    /// Waits until all previous commands are processed; returns the output.
    fn settle(&mut self) -> Vec<String> {
        self.say("isready");
        self.wait_for("readyok")
    }

    fn best_move(&self) -> String {
        let line = self.wait_for("bestmove ").pop().unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    }

    /// Waits for the exit; returns the remaining output.
    fn ends(&mut self) -> Vec<String> {
        let status = exit(&mut self.child);
        assert!(status.success(), "{status}");
        assert_eq!(self.errors.recv().unwrap(), "", "on standard error");
        self.lines.iter().collect()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The process is still running only if a test has failed.
        let _ = self.child.kill();
    }
}

/// Returns the duration in `TESSERA_ENDURANCE`, or otherwise `briefly`.
fn endurance(briefly: Duration) -> Duration {
    let seconds = std::env::var("TESSERA_ENDURANCE");
    seconds.map_or(briefly, |seconds| {
        Duration::from_secs(seconds.parse().unwrap())
    })
}

/// Returns the engine's anonymous memory in MiB, if the system reports it in Linux's format.
fn resident(engine: &Engine) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", engine.child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1024)
}

/// Returns the engine's CPU time, which does not grow while other programs occupy the CPUs. If the
/// system does not report it in Linux's format, returns the time since `began`.
fn worked(engine: &Engine, began: Instant) -> Duration {
    // Linux counts hundredths of a second on every CPU architecture.
    const TICK: Duration = Duration::from_millis(10);
    let of_process = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", engine.child.id())).ok()?;
        // The program's name, in parentheses, may contain anything.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
        let mut ticks = || fields.next()?.parse::<u32>().ok();
        Some(TICK * (ticks()? + ticks()?))
    };
    of_process().unwrap_or_else(|| began.elapsed())
}

/// Pipes a script into the program, as a shell would.
fn pipe(script: &str) -> Output {
    let mut child = command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

#[test]
fn every_form_of_go_has_one_answer_from_every_agent() {
    let mut engine = Engine::random();
    for agent in ["mcts", "policy", "value", "human"] {
        engine.say(&format!("setoption name Agent value {agent}"));
        engine.say("setoption name Ponder value false");
        engine.say(ITALIAN);
        for go in [
            "go nodes 1",
            "go nodes 200",
            "go depth 2",
            "go movetime 30",
            "go movetime 0",
            "go wtime 500 btime 500",
            "go btime 500",
            "go wtime 500 btime 500 winc 50 binc 50 movestogo 5",
            "go wtime -20 btime 1000",
            "go mate 1 movetime 50",
            "go nodes 50 depth 300 mate 300",
            "go nodes 5 searchmoves b1c3 d2d3",
        ] {
            engine.say(go);
            let lines = engine.wait_for("bestmove ");
            let [.., info, answer] = &lines[..] else {
                panic!("{agent}, {go}: {lines:?}");
            };
            assert!(info.contains(" score "), "{agent}, {go}: {info}");
            assert_eq!(answer.len(), "bestmove e2e4".len(), "{agent}, {go}");
        }
        for (go, end) in [
            ("go infinite", "stop"),
            ("go ponder wtime 500 btime 500", "ponderhit"),
            ("go ponder wtime 500 btime 500", "stop"),
        ] {
            engine.say(go);
            // Long enough for an answer to come too early.
            thread::sleep(Duration::from_millis(50));
            let early = engine.settle();
            assert!(!early.iter().any(|line| line.starts_with("bestmove")));
            engine.say(end);
            engine.best_move();
        }
        engine.say("stop");
        assert_eq!(engine.settle(), ["readyok"], "{agent}");
    }
}

#[test]
fn searchmoves_and_multipv_are_obeyed() {
    let mut engine = Engine::random();
    engine.say("setoption name MultiPV value 5");
    engine.say(ITALIAN);
    engine.say("go nodes 300 searchmoves b1c3 d2d3 e1g1");
    let lines = engine.wait_for("bestmove");
    assert!(lines.iter().any(|line| line.contains(" multipv 3 ")));
    assert!(!lines.iter().any(|line| line.contains(" multipv 4 ")));
    for line in &lines {
        if let Some((_, pv)) = line.split_once(" pv ") {
            let first = pv.split(' ').next().unwrap();
            assert!(["b1c3", "d2d3", "e1g1"].contains(&first), "{line}");
        }
    }
}

#[test]
fn every_line_has_the_score_of_its_chances() {
    let mut engine = Engine::random();
    engine.say("setoption name MultiPV value 500");
    engine.say("setoption name UCI_ShowWDL value true");
    engine.say(ITALIAN);
    engine.say("go nodes 1000");
    let lines = engine.wait_for("bestmove ");
    let number = |line: &str, after: &str| -> f32 {
        let (_, rest) = line.split_once(after).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let last: Vec<&String> = lines.iter().filter(|line| line.contains(" wdl ")).collect();
    let last = &last[last.len() - 33..];
    for (index, line) in last.iter().enumerate() {
        assert_eq!(number(line, " multipv "), (index + 1) as f32, "{line}");
        let (_, wdl) = line.split_once(" wdl ").unwrap();
        let wdl: Vec<f32> = wdl
            .split(' ')
            .take(3)
            .map(|part| part.parse().unwrap())
            .collect();
        assert_eq!(wdl.iter().sum::<f32>(), 1000.0, "{line}");
        let q = (wdl[0] - wdl[2]) / 1000.0;
        let (low, high) = (centipawns(q - 0.0011), centipawns(q + 0.0011));
        let score = number(line, " score cp ") as i32;
        assert!((low..=high).contains(&score), "{line}");
    }
    let best = last[0].split_once(" pv ").unwrap().1.split(' ').next();
    let answer = lines.last().unwrap();
    assert_eq!(answer.split(' ').nth(1), best, "{answer}");
}

#[test]
fn a_stop_while_pondering_is_answered_for_the_position_sent() {
    let mut engine = Engine::random();
    let mut game = Game::default();
    for mv in ["e2e4", "c7c5", "g1f3"] {
        game.play(game.parse_move(mv).unwrap());
    }
    engine.say("position startpos moves e2e4 c7c5 g1f3");
    for end in ["stop", "ponderhit"] {
        engine.say("go ponder wtime 2000 btime 2000");
        engine.wait_for("info depth");
        engine.say(end);
        let best = engine.best_move();
        assert!(game.parse_move(&best).is_ok(), "{end}: {best}");
    }
}

#[test]
fn mate_in_one_is_found_and_reported() {
    let mut engine = Engine::random();
    engine.say("position fen 6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1");
    for agent in ["mcts", "value"] {
        engine.say(&format!("setoption name Agent value {agent}"));
        engine.say("go nodes 500");
        let lines = engine.wait_for("bestmove");
        assert!(
            lines.last().unwrap().starts_with("bestmove a1a8"),
            "{agent}: {lines:?}"
        );
        assert!(
            lines.iter().any(|line| line.contains(" score mate 1 ")),
            "{agent}: {lines:?}"
        );
    }
}

#[test]
fn isready_is_answered_immediately_during_a_search() {
    let mut engine = Engine::random();
    engine.say("go infinite");
    engine.wait_for("info depth");
    // On a busy machine, a report may come first, but not every time.
    wait_until("`readyok` comes before the next report", || {
        engine.settle() == ["readyok"]
    });
    engine.say("stop");
    engine.best_move();
}

#[test]
fn quit_and_end_of_input_end_it_immediately() {
    for (go, quit) in [
        ("go infinite", true),
        ("go infinite", false),
        ("go movetime 3600000", true),
        ("go ponder wtime 3600000 btime 3600000", false),
    ] {
        // The engine waits for a second, and a busy machine may need more.
        at_some_pace(&format!("`{go}` is answered"), |_| {
            ends_with_an_answer(go, quit)
        });
    }
}

/// Ends a search and the engine with it; returns whether the search was answered.
fn ends_with_an_answer(go: &str, quit: bool) -> bool {
    let mut engine = Engine::random();
    engine.say(go);
    engine.wait_for("info depth");
    if quit {
        engine.say("quit");
    } else {
        drop(engine.input.take());
    }
    let said = engine.ends();
    let answers = said.iter().filter(|line| line.starts_with("bestmove "));
    let count = answers.count();
    assert!(count <= 1, "{go}: {said:?}");
    count == 1
}

#[test]
fn scripts_can_be_piped() {
    // The engine waits for seconds, and a busy machine may need more.
    at_some_pace("a script is executed to its end", |_| {
        let output = pipe(
            "uci\nisready\nposition fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -\n\
             go perft 3\nposition startpos\ngo perft 4\nquit\n",
        );
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        println!("{said}");
        assert!(said.contains("uciok\n"), "{said}");
        let answers = ["readyok", "Nodes searched: 97862", "Nodes searched: 197281"];
        answers
            .iter()
            .all(|line| said.contains(&format!("{line}\n")))
    });
}

#[test]
fn the_built_in_network_replaces_one_that_cannot_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let corrupt = folder.path().join("corrupt net.pt");
    std::fs::write(&corrupt, "no network at all").unwrap();
    let missing = folder.path().join("missing.pt");
    for net in [corrupt, missing] {
        let mut engine = Engine::start();
        engine.say(&format!("setoption name Net value {}", net.display()));
        let name = net.file_name().unwrap().to_str().unwrap();
        let explained = |lines: &[String]| {
            let explains = |line: &String| line.starts_with("info string") && line.contains(name);
            lines.iter().any(explains)
        };
        assert!(explained(&engine.settle()));
        engine.say("position startpos");
        engine.say("go nodes 5");
        let lines = engine.wait_for("bestmove");
        assert!(explained(&lines), "{lines:?}");
        let is_told = |line: &String| line.contains("the built-in network plays in its place");
        assert!(lines.iter().any(is_told), "{lines:?}");
        assert_ne!(lines.last().unwrap(), "bestmove (none)");
        // A completed file is loaded.
        std::fs::copy(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-s.pt"),
            &net,
        )
        .unwrap();
        engine.say("go nodes 5");
        let lines = engine.wait_for("bestmove");
        assert!(!lines.iter().any(is_told), "{lines:?}");
    }
}

#[cfg(feature = "torch")]
#[test]
fn unrelated_options_do_not_reload_the_network() {
    let loads = |lines: &[String]| {
        let tells = |line: &&String| line.contains(" loaded in ");
        lines.iter().filter(tells).count()
    };
    let mut engine = Engine::start();
    assert_eq!(loads(&engine.settle()), 1);
    engine.say("position startpos");
    engine.say("go nodes 50");
    engine.best_move();
    for option in [
        "Threads value 2",
        "Seed value 5",
        "Hash value 32",
        "Threads value 1",
    ] {
        engine.say(&format!("setoption name {option}"));
        assert_eq!(loads(&engine.settle()), 0, "{option}");
        engine.say("go nodes 50");
        assert_ne!(engine.best_move(), "(none)");
    }
    engine.say("setoption name Precision value f32");
    assert_eq!(loads(&engine.settle()), 1);
}

#[test]
fn positions_without_moves_have_no_best_move() {
    let mut engine = Engine::random();
    for (fen, score) in [
        ("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1", "score mate 0"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "score cp 0"),
    ] {
        for agent in ["mcts", "policy", "value"] {
            engine.say(&format!("setoption name Agent value {agent}"));
            engine.say(&format!("position fen {fen}"));
            engine.say("go wtime 1000 btime 1000");
            let lines = engine.wait_for("bestmove");
            assert!(lines.iter().any(|line| line.contains(score)));
            assert_eq!(lines.last().unwrap(), "bestmove (none)");
        }
    }
}

#[test]
fn commands_during_a_search_do_not_disturb_it() {
    let mut engine = Engine::random();
    engine.say(ITALIAN);
    engine.say("go infinite searchmoves d2d3");
    for line in [
        "position fen 4k3/8/8/8/8/8/8/4K2R w K - 0 1",
        "setoption name MultiPV value 2",
        "setoption name Hash value 1",
        "setoption name Backend value uniform",
        "setoption name Clear Hash",
        "ucinewgame",
        "uci",
        "position fen rubbish",
    ] {
        engine.say(line);
    }
    engine.wait_for("uciok");
    engine.say("go nodes 20 searchmoves e1g1");
    assert_eq!(engine.best_move(), "d2d3");
    assert_eq!(engine.best_move(), "e1g1");
    engine.say("stop");
    assert_eq!(engine.settle(), ["readyok"]);
}

#[test]
fn chess960_games_castle() {
    let mut engine = Engine::random();
    engine.say("setoption name UCI_Chess960 value true");
    let start = "position fen bnrkrqnb/pppppppp/8/8/8/8/PPPPPPPP/BNRKRQNB w ECec - 0 1";
    engine.say(start);
    engine.say("go nodes 20 searchmoves d1c1");
    assert_eq!(engine.best_move(), "d1c1");
    engine.say(&format!("{start} moves d1c1"));
    engine.say("d");
    let lines = engine.settle();
    assert!(
        lines.iter().any(|line| line.contains("/BNKRRQNB b ")),
        "{lines:?}"
    );
}

#[test]
fn statistics_cover_every_searched_move() {
    let mut engine = Engine::random();
    engine.say("setoption name VerboseMoveStats value true");
    for agent in ["mcts", "policy", "value"] {
        engine.say(&format!("setoption name Agent value {agent}"));
        engine.say("position startpos");
        engine.say("go nodes 100");
        let lines = engine.wait_for("bestmove");
        let moves = lines.iter().filter(|line| line.contains(" (P: ")).count();
        match agent {
            // `value` evaluates only the policy's candidates.
            "value" => assert!((3..20).contains(&moves), "{agent}: {lines:?}"),
            _ => assert_eq!(moves, 20, "{agent}: {lines:?}"),
        }
    }
}

#[test]
fn mutated_input_is_survived() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut engine = Engine::random();
    engine.say("setoption name Hash value 16");
    for _ in 0..20 {
        for _ in 0..250 {
            // Skip settings that would only slow this test down.
            let line = mutate::mutated(&mut random).replace("Clear Hash", "Clear");
            engine.say(&line);
        }
        engine.say("stop");
        engine.settle();
    }
    engine.say("setoption name Net value");
    engine.say("position startpos");
    engine.say("stop");
    engine.say("go nodes 1 searchmoves e2e4");
    while engine.best_move() != "e2e4" {}
    engine.say("quit");
    engine.ends();
}
