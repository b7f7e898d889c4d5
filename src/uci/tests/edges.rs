//! Edge cases of the protocol, one test each.

use super::super::session::{Grace, Rest};
use super::client::{BACKEND_FAILS, Client, FAILS_AT_ONCE, PANICS, WAITS};
use crate::waiting::{PATIENCE, at_some_pace};
use std::time::{Duration, Instant};

const MATED: &str = "position fen R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1";
const STALEMATED: &str = "position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1";

fn answers(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("bestmove "))
        .collect()
}

fn explains(lines: &[String], what: &str) -> bool {
    lines
        .iter()
        .any(|line| line.starts_with("info string") && line.contains(what))
}

/// Returns whether `go nodes 1 searchmoves mv` plays `mv`, which checks the position.
fn plays(client: &mut Client, mv: &str) -> bool {
    client.say(&[&format!("go nodes 1 searchmoves {mv}")]);
    let lines = client.wait_for("bestmove");
    answers(&lines) == [mv]
}

#[test]
fn uci_is_answered_before_anything_is_loaded() {
    let mut client = Client::new();
    client.say(&["uci"]);
    let lines = client.wait_for("uciok");
    assert!(lines[0].starts_with("id name Tessera "));
    assert!(lines[1].starts_with("id author "));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("option name Hash "))
    );
    assert!(client.journal.take().is_empty());
}

/// Scripts that pipe `go nodes 10` and `quit` expect an answer.
#[test]
fn a_search_is_answered_though_quit_comes_while_its_network_loads() {
    at_some_pace("both searches are answered", |factor| {
        let mut client = Client::new();
        // Loading takes longer than `quit` waits for a search.
        let (search, loading) = (Duration::from_millis(500) * factor, 700 * factor);
        client.say(&[
            &format!("setoption name Net value {loading}.slow"),
            "go nodes 10",
            "go infinite",
        ]);
        let grace = Grace {
            search,
            perft: Duration::ZERO,
            loading: PATIENCE,
        };
        let (rest, said) = client.end_within(grace);
        (rest, answers(&said).len()) == (Rest::Reached, 2)
    });
}

#[test]
fn the_net_is_loaded_on_isready_and_kept() {
    let mut client = Client::new();
    client.say(&["isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["load", "build Mcts"]);
    client.say(&["position startpos", "go nodes 1"]);
    client.wait_for("bestmove");
    client.say(&["setoption name UCI_ShowWDL value true", "isready"]);
    client.wait_for("readyok");
    assert!(client.journal.take().is_empty());
    client.say(&["setoption name Net value other.pt"]);
    assert!(client.journal.take().is_empty());
    client.say(&["isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["load", "build Mcts"]);
}

#[test]
fn keeps_the_player_if_evaluations_stay_the_same() {
    let mut client = Client::new();
    client.say(&["isready"]);
    client.wait_for("readyok");
    client.journal.take();
    for (option, expected) in [
        ("Threads value 3", &["load", "set backend", "adjust"][..]),
        ("Hash value 64", &["load", "set backend", "adjust"]),
        ("Seed value 5", &["load", "set backend", "adjust"]),
        ("Backend value random", &["load", "build Mcts"]),
        ("Seed value 6", &["load", "build Mcts"]),
        ("Net value other.pt", &["load", "set backend"]),
    ] {
        client.say(&[&format!("setoption name {option}"), "isready"]);
        let said = client.wait_for("readyok");
        assert_eq!(client.journal.take(), expected, "{option}");
        let is_loaded = said.iter().any(|line| line.contains("loaded"));
        assert_eq!(is_loaded, option.starts_with("Backend"), "{option}");
    }
}

#[test]
fn a_change_of_player_keeps_the_net() {
    let mut client = Client::new();
    client.say(&[
        "go nodes 1",
        "setoption name Agent value policy",
        "go nodes 1",
    ]);
    client.wait_for("bestmove");
    client.wait_for("bestmove");
    assert_eq!(
        client.journal.take(),
        ["load", "build Mcts", "build Policy"]
    );
}

#[test]
fn new_games_and_cleared_hashes_reach_the_player() {
    let mut client = Client::new();
    client.say(&["isready"]);
    client.wait_for("readyok");
    client.journal.take();
    client.say(&["ucinewgame", "isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["new game"]);
    client.say(&["setoption name UCI_AnalyseMode value true", "isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["adjust"]);
    client.say(&["ucinewgame", "isready"]);
    client.wait_for("readyok");
    assert!(client.journal.take().is_empty());
    client.say(&["setoption name Clear Hash", "isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["forget", "new game"]);
}

#[test]
fn the_built_in_network_plays_for_one_that_cannot_be_loaded() {
    let mut client = Client::new();
    client.say(&["go nodes 1", "isready"]);
    client.wait_for("bestmove");
    client.journal.take();
    // This holds even though another network was loaded before.
    client.say(&["setoption name Net value missing", "isready"]);
    let warning = "ERROR: cannot read the network missing";
    assert!(explains(&client.wait_for("readyok"), warning));
    assert_eq!(client.journal.take(), ["load", "load", "build Mcts"]);
    // The missing file is reported before every move, and loading is not retried while it is
    // missing.
    for (command, expected) in [("d", &[][..]), ("ucinewgame", &["new game"])] {
        client.say(&[command, "go nodes 2"]);
        let lines = client.wait_for("bestmove");
        assert!(explains(&lines, warning), "{lines:?}");
        assert!(explains(&lines, "the built-in network plays in its place"));
        assert_ne!(answers(&lines), ["(none)"]);
        assert_eq!(client.journal.take(), expected);
    }
    let folder = tempfile::tempdir().unwrap();
    let late = folder.path().join("missing");
    client.say(&[&format!("setoption name Net value {}", late.display())]);
    client.say(&["go nodes 1"]);
    assert!(explains(&client.wait_for("bestmove"), "ERROR"));
    client.journal.take();
    std::fs::write(late, "a network").unwrap();
    client.say(&["go nodes 1"]);
    let lines = client.wait_for("bestmove");
    assert!(!explains(&lines, "ERROR"), "{lines:?}");
    assert_eq!(client.journal.take(), ["load", "build Mcts"]);
}

#[test]
fn a_network_that_does_not_fit_its_device_or_agent_plays_otherwise() {
    let mut client = Client::new();
    client.say(&["setoption name Net value cpu-only", "go nodes 1"]);
    let lines = client.wait_for("bestmove");
    assert!(explains(&lines, "it plays on the CPU"), "{lines:?}");
    assert_eq!(
        client.journal.take(),
        ["load", "load on the CPU", "build Mcts"]
    );
    client.say(&["setoption name Agent value world", "go nodes 1"]);
    let lines = client.wait_for("bestmove");
    assert!(explains(&lines, "the agent `mcts` plays"), "{lines:?}");
    assert!(client.journal.take().is_empty());
    client.say(&["setoption name Net value policy-only", "go nodes 1"]);
    let lines = client.wait_for("bestmove");
    assert!(explains(&lines, "the agent `policy` plays"), "{lines:?}");
    assert_eq!(client.journal.take(), ["load", "build Policy"]);
}

#[test]
fn without_any_network_a_legal_move_is_played() {
    let mut client = Client::new();
    client.say(&[
        "setoption name Net value missing",
        "setoption name Backend value check",
        "go nodes 1 searchmoves d2d4",
    ]);
    let lines = client.wait_for("bestmove");
    assert!(
        explains(&lines, "no other network can be used"),
        "{lines:?}"
    );
    assert_eq!(answers(&lines), ["d2d4"]);
}

#[test]
fn without_legal_moves_there_is_no_best_one() {
    let mut client = Client::new();
    client.say(&[
        "setoption name UCI_ShowWDL value true",
        MATED,
        "go nodes 10",
    ]);
    assert_eq!(
        client.wait_for("bestmove"),
        ["info depth 0 score mate 0 wdl 0 0 1000", "bestmove (none)"]
    );
    client.say(&[STALEMATED, "go wtime 1000 btime 1000"]);
    assert_eq!(
        client.wait_for("bestmove"),
        ["info depth 0 score cp 0 wdl 0 1000 0", "bestmove (none)"]
    );
    client.say(&["go infinite"]);
    client.wait_for("info depth 0");
    assert!(client.said().is_empty());
    client.say(&["stop"]);
    client.wait_for("bestmove (none)");
}

#[test]
fn illegal_positions_leave_the_previous_one() {
    let mut client = Client::new();
    client.say(&["position startpos moves e2e4 e7e5"]);
    for (line, reason) in [
        ("position fen rubbish", "rubbish"),
        ("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "8/8/8/8/8/8/8/8"),
        ("position fen kk6/8/8/8/8/8/8/K7 w - - 0 1", "kk6"),
        ("position fen", "position"),
        ("position", "position startpos"),
        ("position startpos moves e2e4 e7e5 e4e5", "e4e5"),
        ("position startpos moves e2e4 0000", "0000"),
        ("position startpos moves e2e4 e7e9", "e7e9"),
    ] {
        client.say(&[line]);
        let said = client.said();
        assert!(explains(&said, reason), "{line}: {said:?}");
        assert!(plays(&mut client, "g1f3"), "{line}");
        assert!(plays(&mut client, "d2d4"), "{line}");
    }
}

#[test]
fn every_fen_that_clients_send_is_understood() {
    let mut client = Client::new();
    for (fen, mv) in [
        ("8/8/8/8/8/8/4K2k/8 w - -", "e2e3"),
        (
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b HAha e3 0 1",
            "e7e5",
        ),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1", "e1g1"),
        (
            "nrk1bbrq/pppppppp/8/8/8/8/PPPPPPPP/NRK1BBRQ w GBgb - 0 1",
            "a1b3",
        ),
    ] {
        client.say(&[&format!("position fen {fen}")]);
        assert_eq!(client.said(), Vec::<String>::new(), "{fen}");
        assert!(plays(&mut client, mv), "{fen}");
    }
}

#[test]
fn illegal_searchmoves_are_reported_and_go_is_answered() {
    let mut client = Client::new();
    client.say(&["go nodes 1 searchmoves e2e5 d2d4 a1a8"]);
    let lines = client.wait_for("bestmove");
    assert!(explains(&lines, "e2e5 a1a8"));
    assert_eq!(answers(&lines), ["d2d4"]);
    client.say(&["go nodes 1 searchmoves e2e5"]);
    let lines = client.wait_for("bestmove");
    assert!(explains(&lines, "all moves are searched"));
    assert_ne!(answers(&lines), ["(none)"]);
}

#[test]
fn refused_options_are_explained() {
    let mut client = Client::new();
    for (line, reason) in [
        ("setoption name Hashs value 1", "no option `Hashs`"),
        (
            "setoption name Hash value 0",
            "not `0`; the option keeps its value, 256",
        ),
        ("setoption name Threads value two", "`two`"),
        ("setoption Hash 5", "setoption name"),
        (
            "setoption name LogFile value /no/such/folder/x.log",
            "log file",
        ),
    ] {
        client.say(&[line]);
        assert!(explains(&client.said(), reason), "{line}");
    }
}

#[test]
fn stop_with_nothing_running_is_silent() {
    let mut client = Client::new();
    client.say(&["stop", "ponderhit", "register later", "", "# go"]);
    client.say(&["isready"]);
    client.wait_for("readyok");
    client.say(&["stop", "isready"]);
    assert_eq!(client.wait_for("readyok"), ["readyok"]);
}

#[test]
fn unknown_commands_are_named() {
    let mut client = Client::new();
    client.say(&["xyzzy plugh"]);
    assert!(explains(&client.said(), "xyzzy plugh"));
    client.say(&["joho debug on"]);
    assert!(client.said().is_empty());
    client.say(&["joho stop"]);
    assert!(explains(&client.said(), "joho"));
}

#[test]
fn isready_during_a_search_is_answered_at_once() {
    let mut client = Client::new();
    client.say(&["go infinite"]);
    client.wait_for("info depth");
    client.say(&["isready"]);
    assert_eq!(client.wait_for("readyok"), ["readyok"]);
    client.say(&["stop"]);
    client.wait_for("bestmove");
}

#[test]
fn options_set_during_a_search_apply_to_the_next() {
    let mut client = Client::new();
    client.say(&["go infinite"]);
    client.wait_for("info depth");
    client.say(&[
        "position startpos moves e2e4",
        "setoption name UCI_ShowWDL value true",
        "setoption name Net value missing",
        "ucinewgame",
        "stop",
    ]);
    let lines = client.wait_for("bestmove");
    assert!(!lines.iter().any(|line| line.contains("wdl")), "{lines:?}");
    // The move is White's, and the missing network is not mentioned.
    assert!(matches!(lines[0].as_bytes()[10], b'1' | b'2'), "{lines:?}");
    assert_eq!(lines.len(), 1);
    client.say(&["setoption name Net value", "go nodes 1"]);
    let lines = client.wait_for("bestmove");
    assert!(lines.iter().any(|line| line.contains(" wdl 400 300 300 ")));
    assert!(matches!(answers(&lines)[0].as_bytes()[1], b'7' | b'8'));
    assert_eq!(client.journal.take(), ["load", "build Mcts", "new game"]);
}

#[test]
fn a_second_go_follows_the_first() {
    let mut client = Client::new();
    client.say(&[
        "go infinite searchmoves e2e4",
        "go movetime 20 searchmoves d2d4",
    ]);
    client.say(&["go nodes 1 searchmoves c2c4"]);
    for mv in ["e2e4", "d2d4", "c2c4"] {
        assert_eq!(answers(&client.wait_for("bestmove")), [mv]);
    }
    client.say(&[
        "go ponder movetime 5 searchmoves e2e4",
        "go nodes 1 searchmoves d2d4",
    ]);
    for mv in ["e2e4", "d2d4"] {
        assert_eq!(answers(&client.wait_for("bestmove")), [mv]);
    }
    // These searches would take longer than the client waits.
    client.say(&["go movetime 3600000", "go movetime 3600000", "stop"]);
    client.wait_for("bestmove");
    client.wait_for("bestmove");
}

#[test]
fn pondering_ends_by_hit_or_by_stop_with_a_move_of_the_position_sent() {
    let mut client = Client::new();
    client.say(&["position startpos moves e2e4 e7e5", "go ponder movetime 10"]);
    client.wait_for("info depth");
    // Long enough for the search to end too early.
    std::thread::sleep(Duration::from_millis(30));
    assert!(client.said().is_empty());
    client.say(&["ponderhit"]);
    client.wait_for("bestmove");
    client.say(&["go ponder wtime 1000 btime 1000 searchmoves g1f3"]);
    client.wait_for("info depth");
    client.say(&["stop"]);
    assert_eq!(answers(&client.wait_for("bestmove")), ["g1f3"]);
}

#[test]
fn a_search_that_fails_is_answered_with_what_it_found() {
    let mut client = Client::new();
    client.say(&["setoption name Device value cpu"]);
    client.say(&[&format!("go nodes {FAILS_AT_ONCE} searchmoves e2e3")]);
    let lines = client.wait_for("bestmove");
    assert_eq!(answers(&lines), ["e2e3"]);
    assert!(explains(&lines, "service has stopped"));
    client.say(&[&format!("go nodes {BACKEND_FAILS} searchmoves e2e4")]);
    let lines = client.wait_for("bestmove");
    assert_eq!(answers(&lines), ["e2e4"]);
    client.say(&[&format!("go nodes {PANICS} searchmoves d2d4")]);
    let lines = client.wait_for("bestmove");
    assert_eq!(answers(&lines), ["d2d4"]);
    assert!(explains(
        &lines,
        "internal error, please report it: scripted"
    ));
    client.journal.take();
    client.say(&["go nodes 1", "isready"]);
    client.wait_for("bestmove");
    assert_eq!(client.journal.take(), ["load on the CPU", "build Mcts"]);
}

#[test]
fn the_cpu_takes_the_place_of_a_device_that_fails() {
    let mut client = Client::new();
    let build = "build Mcts";
    // If the device fails in the middle of a search, the best result so far is the answer.
    client.say(&[&format!("go nodes {BACKEND_FAILS} searchmoves e2e4")]);
    let lines = client.wait_for("bestmove");
    assert_eq!(answers(&lines), ["e2e4"]);
    assert!(explains(&lines, "continuing on the CPU"));
    client.say(&["go nodes 1", "go nodes 1"]);
    client.wait_for("bestmove");
    client.wait_for("bestmove");
    assert_eq!(
        client.journal.take(),
        ["load", build, "load on the CPU", build]
    );
    // If it fails before any result, the search starts over.
    client.say(&["setoption name Device value cuda:3"]);
    client.say(&[&format!("go nodes {FAILS_AT_ONCE}")]);
    let lines = client.wait_for("bestmove");
    assert_eq!(answers(&lines).len(), 1);
    assert_eq!(
        client.journal.take(),
        ["load", build, "load on the CPU", build]
    );
}

#[test]
fn the_clock_runs_while_a_go_waits() {
    let mut client = Client::new();
    let go = format!("go nodes {WAITS}");
    client.say(&[&go, "go movetime 3600000"]);
    let received = Instant::now();
    client.wait_for("info depth");
    std::thread::sleep(Duration::from_millis(30));
    let waited = received.elapsed();
    client.release();
    client.wait_for("bestmove");
    client.wait_for("info depth");
    client.say(&["stop"]);
    client.wait_for("bestmove");
    let given = client.journal.take().pop().unwrap();
    let milliseconds = given.strip_suffix(" ms").unwrap().parse().unwrap();
    let left = Duration::from_secs(3600) - waited;
    assert!(
        Duration::from_millis(milliseconds) <= left,
        "{given} after {waited:?}"
    );
}

#[test]
fn castling_is_written_as_the_client_reads_it() {
    let mut client = Client::new();
    client.say(&["position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"]);
    assert!(plays(&mut client, "e1g1"));
    client.say(&["go nodes 1 searchmoves e1h1"]);
    assert_eq!(answers(&client.wait_for("bestmove")), ["e1g1"]);
    client.say(&["setoption name UCI_Chess960 value true"]);
    assert!(plays(&mut client, "e1h1"));
    client.say(&["position startpos moves e2e4 e7e5 g1f3 g8f6 f1c4 f8c5 e1h1"]);
    assert_eq!(client.said(), Vec::<String>::new());
    client.say(&["position startpos moves e2e4 e7e5 g1f3 g8f6 f1c4 f8c5"]);
    assert!(plays(&mut client, "e1h1"));
    client.say(&["setoption name UCI_Chess960 value false"]);
    assert!(plays(&mut client, "e1g1"));
    // With the king on b1 and a rook on a1, a standard chess position cannot have these castling
    // rights.
    client.say(&["position fen 4k3/8/8/8/8/8/8/RK5R w KQ - 0 1"]);
    assert!(plays(&mut client, "b1h1"));
}

#[test]
fn perft_divides_and_counts() {
    let mut client = Client::new();
    client.say(&["position startpos moves e2e4", "go perft 3"]);
    let lines = client.wait_for("Nodes searched");
    assert_eq!(
        lines.last().map(String::as_str),
        Some("Nodes searched: 13160")
    );
    let divided = lines.iter().filter_map(|line| line.split_once(": "));
    let counts: Vec<u64> = divided.map(|(_, count)| count.parse().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (21, 2 * 13160));
    client.say(&["go perft 30", "isready"]);
    client.wait_for("readyok");
    client.say(&["stop"]);
    client.wait_for("info string perft was stopped");
}

#[test]
fn the_position_can_be_looked_at() {
    let mut client = Client::new();
    client.say(&["position startpos moves e2e4", "d"]);
    let said = client.said();
    assert!(
        said.iter().any(|line| line
            .starts_with("Fen: rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")),
        "{said:?}"
    );
}

#[test]
fn statistics_come_on_request() {
    let mut client = Client::new();
    client.say(&["go nodes 1"]);
    assert!(!explains(&client.wait_for("bestmove"), "(P: "));
    client.say(&[
        "setoption name VerboseMoveStats value true",
        "go nodes 1 searchmoves e2e4",
    ]);
    assert!(explains(
        &client.wait_for("bestmove"),
        "e2e4  ( 322) N:        1 (P: 100.00%)"
    ));
}

#[test]
fn the_end_comes_at_once_and_with_the_answer() {
    for go in [
        "go infinite",
        "go movetime 3600000",
        "go ponder wtime 3600000",
    ] {
        let mut client = Client::new();
        client.say(&[go]);
        client.wait_for("info depth");
        assert!(client.send("quit").is_break());
        // The search would take longer than this waits for it.
        let said = client.end();
        assert_eq!(answers(&said).len(), 1, "{go}: {said:?}");
    }
    let mut client = Client::new();
    client.say(&["go perft 4", "isready"]);
    assert!(client.end().contains(&"Nodes searched: 197281".to_owned()));
}

#[test]
fn the_log_holds_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uci log.txt");
    let mut client = Client::new();
    client.say(&[
        &format!("setoption name LogFile value {}", path.display()),
        "isready",
    ]);
    client.wait_for("readyok");
    client.say(&["setoption name LogFile value <empty>", "go nodes 1"]);
    client.wait_for("bestmove");
    let log = std::fs::read_to_string(path).unwrap();
    assert!(
        log.contains(" > isready\n") && log.contains(" < readyok\n"),
        "{log}"
    );
    assert!(!log.contains("bestmove"));
}
