//! Situations that must not hang the engine or exhaust its memory.

use crate::uci::{Engine, command, resident};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for an answer, allowing for other tests on the machine.
const PROMPT: Duration = Duration::from_secs(30);

/// Waits for the end of a process that may hang.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < limit {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    false
}

#[test]
fn quit_works_for_a_client_that_does_not_read() {
    for flood in ["uci\n".repeat(2000), "d\n".repeat(20_000)] {
        let mut child = command().spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // Without a reader, the output soon exceeds the capacity of a pipe.
        let script = format!(
            "setoption name Backend value uniform\nsetoption name MultiPV value 500\n\
             go infinite\n{flood}quit\n"
        );
        thread::spawn(move || {
            // The engine may exit before it has read all of the input.
            let _ = input.write_all(script.as_bytes());
        });
        assert!(ends_within(&mut child, Duration::from_secs(15)));
    }
}

#[test]
fn the_engine_exits_when_its_output_is_closed() {
    for (commands, answer) in [
        ("", "isready\n"),
        ("go infinite\n", ""),
        ("go infinite\n", "isready\n"),
        ("go ponder wtime 1000 btime 1000\n", "d\n"),
        ("go perft 11\n", "isready\n"),
        ("setoption name Agent value human\ngo infinite\n", "uci\n"),
    ] {
        let mut child = command().spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        write!(
            input,
            "setoption name Backend value random\nisready\n{commands}"
        )
        .unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        // The output is closed while the input stays open.
        thread::sleep(Duration::from_millis(200));
        let _ = input.write_all(answer.as_bytes());
        let end = ends_within(&mut child, Duration::from_secs(15));
        assert!(end, "{commands:?}, {answer:?}");
        assert!(child.wait().unwrap().success(), "{commands:?}, {answer:?}");
        drop(input);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut child = command()
        .stdout(full.unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"uci\n").unwrap();
    assert!(ends_within(&mut child, Duration::from_secs(15)));
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("error: No space left"), "{errors}");
}

#[test]
fn a_perft_is_interrupted_promptly() {
    for (script, limit) in [("stop\nquit\n", 2), ("quit\n", 5)] {
        let mut child = command().spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"go perft 11\n").unwrap();
        thread::sleep(Duration::from_millis(500));
        input.write_all(script.as_bytes()).unwrap();
        assert!(
            ends_within(&mut child, Duration::from_secs(limit)),
            "{script}"
        );
    }
}

#[cfg(unix)]
#[test]
fn special_files_are_neither_network_nor_log() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
        let mut engine = Engine::start();
        let asked = Instant::now();
        engine.say(&format!("setoption name Net value {}", path.display()));
        let lines = engine.settle();
        // A build without libtorch cannot read networks.
        let reason = match cfg!(feature = "torch") {
            true => "not a regular file",
            false => "without libtorch",
        };
        assert!(lines.iter().any(|line| line.contains(reason)), "{lines:?}");
        engine.say("setoption name Net value");
        engine.say("setoption name Backend value uniform");
        engine.say(&format!("setoption name LogFile value {}", path.display()));
        let lines = engine.settle();
        assert!(
            lines[0].contains("the log file cannot be opened"),
            "{lines:?}"
        );
        engine.say("quit");
        engine.ends();
        assert!(asked.elapsed() < PROMPT, "{}", path.display());
    }
}

/// Returns a game of four times this many plies.
fn shuffled(times: usize) -> String {
    let moves = " g1f3 g8f6 f3g1 f6g8".repeat(times);
    format!("position startpos moves{moves}")
}

#[test]
fn overlong_games_are_refused() {
    let mut engine = Engine::random();
    engine.say("position startpos moves e2e4");
    let asked = Instant::now();
    engine.say(&shuffled(50_000));
    engine.say("d");
    let lines = engine.settle();
    assert!(asked.elapsed() < PROMPT);
    assert!(
        lines[0].contains("longer than any game of chess"),
        "{}",
        lines[0]
    );
    assert!(lines.iter().any(|line| line.contains("/4P3/")), "{lines:?}");
    engine.say(&shuffled(4000));
    engine.say("go nodes 1");
    assert_ne!(engine.best_move(), "(none)");
}

#[test]
fn queued_searches_take_little_memory() {
    const WAITING: usize = 600;
    let mut engine = Engine::random();
    engine.say("setoption name Hash value 1");
    engine.say(&shuffled(4000));
    engine.say("go nodes 1");
    engine.best_move();
    let before = resident(&engine);
    engine.say("go movetime 1500");
    for _ in 0..WAITING {
        engine.say("go nodes 1");
    }
    thread::sleep(Duration::from_millis(1000));
    let waiting = resident(&engine);
    for _ in 0..=WAITING {
        engine.best_move();
    }
    if let (Some(before), Some(waiting)) = (before, waiting) {
        assert!(waiting < before + 64, "{before} MiB have become {waiting}");
    }
    engine.say("quit");
    engine.ends();
}

#[test]
fn the_number_of_devices_is_limited() {
    let mut engine = Engine::start();
    engine.say(&format!(
        "setoption name Device value {}",
        ["cpu"; 500].join(",")
    ));
    engine.say("setoption name Backend value uniform");
    let lines = engine.settle();
    assert!(lines[0].contains("at most 32"), "{lines:?}");
}

/// A race that the stress tests would not find in their limited time: the order of many moves
/// changes while they are being sorted.
#[test]
fn endures_reports_of_every_move() {
    let mut engine = Engine::random();
    for option in [
        "Backend value uniform",
        "Threads value 8",
        "MultiPV value 500",
    ] {
        engine.say(&format!("setoption name {option}"));
    }
    engine.say("position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1");
    let duration = crate::uci::endurance(Duration::from_secs(3));
    let began = Instant::now();
    let (mut searches, mut slowest) = (0, Duration::ZERO);
    while began.elapsed() < duration {
        let time = duration.min(Duration::from_secs(3));
        engine.say(&format!("go movetime {}", time.as_millis()));
        let asked = Instant::now();
        let lines = engine.wait_for("bestmove ");
        slowest = slowest.max(asked.elapsed());
        assert_ne!(lines.last().unwrap(), "bestmove (none)");
        let last = lines.iter().rev().find(|line| line.contains(" multipv "));
        assert!(last.unwrap().contains(" multipv 48 "), "{last:?}");
        searches += 1;
    }
    println!("{searches} searches, the slowest {slowest:?}");
    engine.say("quit");
    engine.ends();
}
