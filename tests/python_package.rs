//! The Python package encodes positions and moves exactly as the engine does, and reads a network's
//! outputs as the engine does.

use crate::uci_python::python;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::{Value, json};
use shakmaty::{CastlingMode, Position};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tessera::backend::{
    BackendKind, BackendOptions, CodePolicy, Decoding, DeviceChoice, NetworkOptions, Precision,
    Way, evaluate_with_futures,
};
use tessera::chess::{Game, Ratings};
use tessera::encode::{BOARDS, Input, policy_index};
use tessera::inference::{self, open_by};

/// Number of words in a row before the ratings.
const WORDS: usize = BOARDS + 7;

const STARTS: [&str; 9] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    // The initial position with other counters, and without one of its castling rights.
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 7 9",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQk - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 3 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    // En passant squares: one that can be captured on, one that no pawn can reach, and one that no
    // pawn can have passed.
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
    "rnbqkbnr/pppp1ppp/8/8/4p3/8/PPPPPPPP/RNBQKBNR w KQkq d6 0 3",
    // Chess960.
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
];

/// Returns random games from each starting position, cut off at random points. Half of the moves
/// undo the previous one, so that positions repeat.
fn games() -> Vec<Game> {
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut games = Vec::new();
    for fen in STARTS.iter().cycle().take(20 * STARTS.len()) {
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        for _ in 0..draw.random_range(0..60) {
            let moves = game.position().legal_moves();
            if moves.is_empty() {
                break;
            }
            let back = game.plies().iter().rev().nth(1).and_then(|ply| {
                let mv = ply.played?;
                let (from, to) = (mv.from()?, mv.to());
                moves
                    .iter()
                    .find(|mv| (mv.from(), mv.to()) == (Some(to), from))
            });
            let mv = match back {
                Some(&mv) if draw.random() => mv,
                _ => moves[draw.random_range(0..moves.len())],
            };
            game.play(mv);
        }
        games.push(game);
    }
    games
}

/// Returns a game in the format that the Python script reads.
fn told_as(game: &Game, fen: &str) -> Value {
    let mut played = Vec::new();
    let mut before = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    for mv in game.plies().iter().filter_map(|ply| ply.played) {
        played.push(before.format_move(mv));
        before.play(mv);
    }
    json!({
        "fen": fen,
        "moves": played,
        "chess960": game.mode() == CastlingMode::Chess960,
    })
}

/// Runs a script of tests/python with these lines as its input, and returns its output.
fn answers(python: &str, script: &str, lines: String) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let mut child = Command::new(python)
        .arg(folder.join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rows_and_policies_equal_the_engines() {
    let Some(python) = python() else { return };
    let games = games();
    let told = games.iter().zip(STARTS.iter().cycle());
    let told: Vec<Value> = told.map(|(game, fen)| told_as(game, fen)).collect();
    let lines: String = told.iter().map(|game| format!("{game}\n")).collect();
    let text = answers(python, "rows.py", lines);
    assert_eq!(text.lines().count(), games.len());
    let mut repeated = 0;
    for ((game, told), line) in games.iter().zip(told).zip(text.lines()) {
        let found: Value = serde_json::from_str(line).unwrap();
        let words: Vec<u64> = serde_json::from_value(found["words"].clone()).unwrap();
        let input = Input::encode(game);
        assert_eq!(words, input.words()[..WORDS], "{told}");
        let policy: BTreeMap<String, u16> =
            serde_json::from_value(found["policy"].clone()).unwrap();
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let expected = moves
            .iter()
            .map(|&mv| (game.format_move(mv), policy_index(mv, turn)));
        assert_eq!(policy, expected.collect(), "{told}");
        repeated += usize::from(input.is_repetition());
    }
    assert!(repeated > 10, "{repeated}");
}

/// Returns the raw outputs of a network's own code by name, except for the policy: one number per
/// game, or three.
fn raw_outputs(file: &[u8], games: &[Game]) -> BTreeMap<String, Value> {
    let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
    let script = open_by(Way::File, file, policy, device, Precision::F32, 1).unwrap();
    let inputs: Vec<Input> = games.iter().map(Input::encode).collect();
    let outputs = script.forward(&inputs).unwrap();
    let named = script.metadata.outputs().zip(outputs.iter());
    let named = named.filter(|(name, _)| *name != "policy");
    let lists = named.map(|(name, output)| {
        let values = Vec::<f32>::try_from(output.flatten(0, -1)).unwrap();
        let list = match name {
            "wdl" => json!(values.chunks(3).collect::<Vec<_>>()),
            _ => json!(values),
        };
        (name.to_owned(), list)
    });
    lists.collect()
}

/// The raw outputs come from the networks' own code, which PyTorch runs as well, and the values
/// that Python makes of them are those of `tessera eval`. A diffusion network's own code evaluates a
/// position once, over all plies that it can predict, without weighing candidates.
#[test]
fn values_equal_the_engines() {
    let Some(python) = python() else { return };
    let mut games = games();
    games.retain(|game| !game.position().legal_moves().is_empty());
    games.truncate(50);
    assert_eq!(games.len(), 50);
    for game in &mut games {
        game.set_ratings(Ratings::both(1500));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets");
    let mut compared = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The GPT reads games and evaluates no positions.
        if path.extension().is_none_or(|end| end != "pt") || path.ends_with("tessera-gpt.pt") {
            continue;
        }
        let file = fs::read(&path).unwrap();
        let metadata = inference::describe(Some(&path), CodePolicy::Checked).unwrap();
        let options = BackendOptions {
            kind: BackendKind::Torch,
            network: NetworkOptions {
                net: Some(path.clone()),
                precision: Precision::F32,
                decoding: Decoding {
                    horizon: 0,
                    ..Decoding::default()
                },
                ..NetworkOptions::default()
            },
            threads: 1,
            ..BackendOptions::default()
        };
        let backend = inference::load(&options).unwrap();
        let search_value = metadata.search_value();
        let batch = json!({
            "outputs": raw_outputs(&file, &games),
            "search_value": search_value,
        });
        let found: Value =
            serde_json::from_str(&answers(python, "values.py", format!("{batch}\n"))).unwrap();
        let (evaluated, _) = evaluate_with_futures(&backend, &games, 1).unwrap();
        let properties = backend.properties();
        assert!(properties.has_moves_left && properties.has_error);
        for (number, evaluated) in evaluated.iter().enumerate() {
            let value = evaluated.value;
            let [win, draw, loss] = value.wdl();
            let pairs = [
                (&found["wdl"][number][0], win),
                (&found["wdl"][number][1], draw),
                (&found["wdl"][number][2], loss),
                (&found["q"][number], value.q),
                (&found["error"][number], value.error),
                (&found["moves_left"][number], value.moves_left),
            ];
            for (found, expected) in pairs {
                let difference = (found.as_f64().unwrap() - f64::from(expected)).abs();
                assert!(
                    difference < 1e-4 * f64::from(expected).abs().max(1.0),
                    "{}: {found}, not {expected}",
                    path.display()
                );
            }
        }
        compared += 1;
    }
    assert_eq!(compared, 5);
}

#[test]
fn values_are_adjusted_where_outputs_disagree() {
    let Some(python) = python() else { return };
    let batch = |outputs: Value, search_value: &str| {
        let batch = json!({"outputs": outputs, "search_value": search_value});
        let found = answers(python, "values.py", format!("{batch}\n"));
        serde_json::from_str::<Value>(&found).unwrap()
    };
    let logits = json!([[0.0, 0.0, 0.0], [0.0, 40.0, 0.0], [40.0, 0.0, -40.0]]);
    let outputs = json!({
        "wdl": logits, "q": [1.5, -0.75, 0.0], "q_error": [-0.5, 0.25, 0.0],
        "st": [0.0, 0.5, -1.0], "moves_left": [-3.0, 4.0, 0.0],
    });
    let found = batch(outputs.clone(), "q");
    let wdl = &found["wdl"];
    assert_eq!(wdl[0], json!([1.0, 0.0, 0.0]));
    assert_eq!(wdl[1], json!([0.0, 0.25, 0.75]));
    assert_eq!(
        (&found["q"], &found["error"]),
        (&json!([1.0, -0.75, 0.0]), &json!([0.0, 0.25, 0.0]))
    );
    assert_eq!(found["moves_left"], json!([0.0, 4.0, 0.0]));
    let found = batch(outputs, "st");
    assert_eq!(
        (&found["q"], found.get("error")),
        (&json!([0.0, 0.5, -1.0]), None)
    );
    let found = batch(json!({"wdl": logits}), "wdl");
    assert_eq!(found["q"], json!([0.0, 0.0, 1.0]));
    assert_eq!((found.get("error"), found.get("moves_left")), (None, None));
}
