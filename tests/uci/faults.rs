//! Situations that must not hang the engine or exhaust its memory.

use crate::support::exit;
use crate::uci::{Engine, command, resident, worked};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum CPU time for an answer.
const PROMPT: Duration = Duration::from_secs(30);

#[test]
fn quit_works_for_a_client_that_does_not_read() {
    // Megabytes, but not more lines than necessary, because each of them wakes two threads.
    let floods = ["uci\n".repeat(500), "d\n".repeat(5000)];
    for (search, flood) in floods
        .iter()
        .flat_map(|flood| [("go infinite\n", flood), ("", flood)])
    {
        let mut child = command().spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // Without a reader, the output soon exceeds the capacity of a pipe.
        let script = format!(
            "setoption name Backend value uniform\nsetoption name MultiPV value 500\n\
             {search}{flood}quit\n"
        );
        thread::spawn(move || {
            // The engine may exit before it has read all of the input.
            let _ = input.write_all(script.as_bytes());
        });
        exit(&mut child);
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
        // The output is closed while the input stays open. It makes no difference whether the
        // commands have been executed by now.
        thread::sleep(Duration::from_millis(200));
        let _ = input.write_all(answer.as_bytes());
        let status = exit(&mut child);
        assert!(status.success(), "{commands:?}, {answer:?}: {status}");
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
    exit(&mut child);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("error: No space left"), "{errors}");
}

#[test]
fn a_perft_is_interrupted_promptly() {
    let mut child = command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // This count takes days. It makes no difference whether it has begun by the next command.
    input.write_all(b"go perft 11\nstop\nquit\n").unwrap();
    exit(&mut child);
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_perft_delays_the_end_only_briefly() {
    let mut child = command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"go perft 11\nquit\n").unwrap();
    exit(&mut child);
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
    let before = worked(&engine, asked);
    engine.say(&shuffled(50_000));
    engine.say("d");
    let lines = engine.settle();
    let taken = worked(&engine, asked) - before;
    assert!(taken < PROMPT, "{taken:?}");
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
    // When the first search has ended, the others have been read, as far as the queue admits them.
    let mut waiting = resident(&engine);
    for _ in 0..=WAITING {
        engine.best_move();
        waiting = waiting.max(resident(&engine));
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
    engine.settle();
    let duration = crate::uci::endurance(Duration::from_secs(3));
    let began = Instant::now();
    let mut searches = 0;
    while searches == 0 || began.elapsed() < duration {
        let searched = Instant::now();
        engine.say("go infinite");
        // Reports are sent at least once a second.
        let every_move = |line: &String| line.contains(" multipv 48 ");
        while !engine.wait_for("info depth ").iter().any(every_move)
            || searched.elapsed() < duration.min(Duration::from_secs(3))
        {}
        engine.say("stop");
        let lines = engine.wait_for("bestmove ");
        assert_ne!(lines.last().unwrap(), "bestmove (none)");
        let last = lines.iter().rev().find(|line| line.contains(" multipv "));
        assert!(last.is_some_and(every_move), "{last:?}");
        searches += 1;
    }
    println!("{searches} searches");
    engine.say("quit");
    engine.ends();
}
