//! A setup for training: a shard, a configuration, and the binary.

pub use crate::support::{fail, succeed};
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Move, Position};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Returns games that a network can learn, because the players hurry to the far side of the board:
/// they choose at random between the two longest strides. Every move has a random engine score.
pub fn games(count: usize) -> String {
    let mut state = 1u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    };
    let mut text = String::new();
    for round in 0..count {
        let result = ["1-0", "0-1", "1/2-1/2"][round % 3];
        write!(
            text,
            "[Event \"test\"]\n[Round \"{round}\"]\n[Result \"{result}\"]\n\n"
        )
        .unwrap();
        let mut position = Chess::default();
        for ply in 0..60 {
            let mut moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            let turn = position.turn();
            moves.sort_by_key(|mv| (turn.relative_rank(mv.to().rank()), mv.to(), mv.from()));
            let mv: Move = moves[moves.len() - 1 - draw() % moves.len().min(2)];
            let number = position.fullmoves();
            let dots = if position.turn().is_white() {
                "."
            } else {
                "..."
            };
            let san = SanPlus::from_move_and_play_unchecked(&mut position, mv);
            let pawns = (draw() % 600) as f64 / 100.0 - 3.0;
            write!(text, "{number}{dots} {san} {{[%eval {pawns:.2},{ply}]}} ").unwrap();
        }
        write!(text, "{result}\n\n").unwrap();
    }
    text
}

pub fn train(folder: &Path) -> Command {
    crate::support::train(folder, &[])
}

/// Packs games into the training shard.
pub fn pack(folder: &Path, games: &str) {
    std::fs::write(folder.join("games.pgn"), games).unwrap();
    succeed(train(folder).args([
        "pack",
        "games.pgn",
        "-o",
        "games.shard",
        "--evals",
        "chooser",
    ]));
}

/// Creates a folder with a shard and the configuration of a tiny network.
pub fn workplace(steps: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    pack(folder.path(), &games(60));
    let config = format!(
        r#"
name = "tiny"
steps = {steps}
batch = 64
log_every = 1
validate_every = 10
validation_samples = 128
checkpoint_every = 5
[model]
layers = 2
width = 16
heads = 2
feed_forward = 16
position = {{ kind = "gab", compress = 2, hidden = 8, generator = 4 }}
[data]
group = 1000
validation = 0.2
shards = [{{ path = "games.shard" }}]
[optimizer]
kind = "muon"
[schedule]
peak = 0.003
warmup = 5
"#
    );
    std::fs::write(folder.path().join("tiny.toml"), config).unwrap();
    folder
}

pub fn run(folder: &Path, output: &str) -> Command {
    run_on(folder, output, 1)
}

/// Returns the command that trains on this many threads.
pub fn run_on(folder: &Path, output: &str, threads: usize) -> Command {
    let mut command = train(folder);
    let threads = threads.to_string();
    command.args(["run", "tiny.toml", "-o", output]);
    command.args(["--device", "cpu", "--threads", &threads]);
    command
}

/// Returns a run's metrics lines, without the fields that depend on the clock.
pub fn metrics(folder: &Path, output: &str) -> Vec<serde_json::Value> {
    let text =
        std::fs::read_to_string(folder.join(output).join("metrics.jsonl")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|mut line| {
            let fields = line.as_object_mut().unwrap();
            for name in ["seconds", "samples_per_second", "time", "memory"] {
                fields.remove(name);
            }
            line
        })
        .collect()
}

/// Asserts that two runs have the same metrics; on failure, prints the first difference.
pub fn assert_same_metrics(folder: &Path, [one, other]: [&str; 2]) {
    let [expected, found] = [one, other].map(|output| metrics(folder, output));
    let name_line =
        |line: &serde_json::Value| format!("{} at step {}", line["split"], line["step"]);
    for (expected, found) in expected.iter().zip(&found) {
        let fields = expected.as_object().unwrap();
        for (name, value) in fields {
            assert_eq!(
                &found[name],
                value,
                "`{name}` of {other}, {}",
                name_line(expected)
            );
        }
        assert_eq!(found, expected, "{other}");
    }
    let lines =
        |lines: &[serde_json::Value]| -> Vec<String> { lines.iter().map(name_line).collect() };
    assert_eq!(lines(&found), lines(&expected), "{other}");
}
