//! Tests ratings from end to end: from games to shards, to a network that reads ratings, to its
//! file, and to play.

use crate::train::workplace::{succeed, train};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Returns the initial position without some of White's bishops and knights. Games from different
/// positions differ, so held-out games are new to the network.
fn start(absent: usize) -> String {
    let bit_of = |file| [1, 2, 5, 6].iter().position(|&it| it == file);
    let squares = "RNBQKBNR".chars().enumerate();
    let rank = squares.map(|(file, piece)| match bit_of(file) {
        Some(bit) if absent >> bit & 1 == 1 => '1',
        _ => piece,
    });
    let rank = rank.collect::<String>().replace("11", "2");
    format!("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/{rank} w KQkq - 0 1")
}

/// A kind of player, with the file of the pawn that it pushes and its rating in each round.
struct Kind {
    file: char,
    rating: fn(usize) -> Option<usize>,
}

/// Weak players push the a-pawn, strong players the d-pawn, and players with an unknown rating the
/// e-pawn, as White and as Black.
const KINDS: [Kind; 3] = [
    Kind {
        file: 'a',
        rating: |round| Some(900 + 37 * round % 400),
    },
    Kind {
        file: 'd',
        rating: |round| Some(2100 + 41 * round % 400),
    },
    Kind {
        file: 'e',
        rating: |_| None,
    },
];

/// Returns games of one move each, in which only a player's own rating predicts the move.
fn games() -> String {
    let mut text = String::new();
    for round in 0..450 {
        let (white, black) = (&KINDS[round % 3], &KINDS[round / 3 % 3]);
        writeln!(text, "[Event \"test\"]\n[Result \"*\"]\n[SetUp \"1\"]").unwrap();
        writeln!(text, "[FEN \"{}\"]", start(round / 9 % 16)).unwrap();
        for (color, kind) in [("White", white), ("Black", black)] {
            if let Some(rating) = (kind.rating)(round) {
                writeln!(text, "[{color}Elo \"{rating}\"]").unwrap();
            }
        }
        writeln!(text, "\n1. {}4 {}5 *\n", white.file, black.file).unwrap();
    }
    text
}

const CONFIG: &str = r#"
name = "rated"
steps = 250
batch = 64
validate_every = 250
checkpoint_every = 250
[model]
layers = 1
width = 16
heads = 2
feed_forward = 16
position = { kind = "absolute" }
elo = true
[data]
group = 2000
spread = 1
validation = 0.25
shards = [{ path = "games.shard" }]
[schedule]
peak = 0.01
warmup = 10
"#;

/// An engine process, controlled over UCI.
struct Engine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Engine {
    fn start(folder: &Path) -> Engine {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.current_dir(folder).spawn().unwrap();
        let mut engine = Engine {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        for (name, value) in [("Net", "rated.pt"), ("Device", "cpu"), ("Threads", "1")] {
            engine.set(name, value);
        }
        engine
    }

    fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        writeln!(self.input, "setoption name {name} value {value}").unwrap();
    }

    /// Returns the principal variation in the position after `moves`, or only the move if the
    /// engine reports no variation. The engine and its opponent have these ratings.
    fn line(&mut self, moves: &str, ratings: [u32; 2], nodes: u32) -> String {
        self.set("SelfElo", ratings[0]);
        self.set("OppoElo", ratings[1]);
        writeln!(self.input, "position startpos moves {moves}").unwrap();
        writeln!(self.input, "go nodes {nodes}").unwrap();
        let mut line = None;
        loop {
            let mut text = String::new();
            assert!(self.output.read_line(&mut text).unwrap() > 0, "it ended");
            if let Some((_, pv)) = text.trim().split_once(" pv ") {
                line = Some(pv.to_owned());
            }
            if let Some(best) = text.strip_prefix("bestmove ") {
                let best = best.split_whitespace().next().unwrap();
                return line.unwrap_or(best.to_owned());
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_network_learns_what_players_of_a_rating_play() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("games.pgn"), games()).unwrap();
    std::fs::write(folder.join("rated.toml"), CONFIG).unwrap();
    succeed(train(folder).args(["pack", "games.pgn", "-o", "games.shard", "--played"]));
    let device = ["--device", "cpu", "--threads", "1"];
    let run = ["run", "rated.toml", "-o", "run"];
    succeed(train(folder).args(run).args(device));
    let measured = succeed(
        train(folder)
            .args(["validate", "run", "--json"])
            .args(device),
    );
    let measured: serde_json::Value =
        serde_json::from_str(measured.lines().next_back().unwrap()).unwrap();
    // Without ratings, only a third of the moves could be predicted.
    let accuracy = measured["policy_accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.95, "{accuracy}");

    succeed(train(folder).args(["export", "run", "-o", "rated.pt"]));
    let metadata = tessera::inference::describe(
        Some(&folder.join("rated.pt")),
        tessera::backend::CodePolicy::Checked,
    )
    .unwrap();
    assert_eq!(
        metadata.planes().unwrap().scalars[7..],
        ["self_elo", "opponent_elo"]
    );
    let (weak, strong, unknown) = (1100, 2300, 0);
    let mut engine = Engine::start(folder);
    engine.set("Agent", "policy");
    for opponent in [weak, strong] {
        for (rating, white, black) in [
            (weak, "a2a4", "a7a5"),
            (strong, "d2d4", "d7d5"),
            (unknown, "e2e4", "e7e5"),
        ] {
            let ratings = [rating, opponent];
            let best = |line: String| line.split_whitespace().next().unwrap().to_owned();
            assert_eq!(best(engine.line("", ratings, 1)), white, "{ratings:?}");
            assert_eq!(best(engine.line("d2d4", ratings, 1)), black, "{ratings:?}");
        }
    }
    // In a search, the opponent's moves follow the opponent's rating.
    engine.set("Agent", "mcts");
    for (ratings, expected) in [
        ([strong, weak], "d2d4 a7a5"),
        ([strong, strong], "d2d4 d7d5"),
        ([weak, strong], "a2a4 d7d5"),
    ] {
        let line = engine.line("", ratings, 60);
        assert!(line.starts_with(expected), "{ratings:?}: {line}");
    }

    // A strength limit has the same effect, even if only the network is set.
    engine.set("HumanNet", "rated.pt");
    engine.set("UCI_LimitStrength", true);
    engine.set("Temperature", 0.1);
    for (level, white, black) in [(1100, "a2a4", "a7a5"), (2200, "d2d4", "d7d5")] {
        engine.set("UCI_Elo", level);
        assert_eq!(engine.line("", [strong, strong], 1), white);
        assert_eq!(engine.line("d2d4", [weak, weak], 1), black);
    }

    let tessera = |arguments: &[&str]| -> serde_json::Value {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tessera"));
        let command = command.current_dir(folder).args(arguments);
        let output = command
            .args(["--device", "cpu", "--json"])
            .assert()
            .success();
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    };
    let compared = tessera(&["eval", "--net", "rated.pt", "--elo", "1100,2300"]);
    for (place, (elo, expected)) in [(1100, "a2a4"), (2300, "d2d4")].into_iter().enumerate() {
        let rating = &compared["ratings"][place];
        assert_eq!([&rating["elo"], &rating["opponent_elo"]], [elo, elo]);
        let probability = rating["policy"][expected].as_f64().unwrap();
        assert!(probability > 0.8, "{rating}");
    }

    // The moves are measured on the games that training held out.
    let games = ["match-moves", "games.pgn", "--skip-plies", "0"];
    let held_out = ["--held-out", "0.25", "--net", "rated.pt"];
    let measured = tessera(&[&games[..], &held_out].concat());
    let bands = measured["networks"][0]["bands"].as_array().unwrap();
    let all = bands.last().unwrap();
    assert!(all["move_match"]["mean"].as_f64().unwrap() > 0.95, "{all}");
    let share = measured["games"].as_f64().unwrap() / measured["games_read"].as_f64().unwrap();
    assert!((0.1..0.4).contains(&share), "{share}");
}
