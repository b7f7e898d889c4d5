//! The networks that ship with the engine still play at their measured strength, which would reveal
//! a broken network, encoding or policy index. The bounds allow for rounding on other CPUs; README
//! and nets/README give the figures themselves.

use assert_cmd::Command;
use serde_json::Value;
use shakmaty::{Color, Position};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera::agent::{AgentKind, ConfigurableAgent};
use tessera::backend::{Backend, BackendKind, BackendOptions, CodePolicy};
use tessera::chess::{Ending, Game};
use tessera::cycle::CycleConfig;
use tessera::inference;
use tessera::play::{Control, Limits};
use tessera::search::Parameters;
use tessera::train::{Ablation, TrainConfig};

fn puzzles() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/puzzles/dev.csv");
    if path.exists() {
        return Some(path);
    }
    crate::skip::skip(&path.display().to_string());
    None
}

/// Returns the share of puzzles that a player solves, as measured by the program itself.
fn accuracy(file: &Path, player: &[&str]) -> f64 {
    let mut command = Command::cargo_bin("tessera").unwrap();
    let output = command
        .arg("puzzles")
        .arg(file)
        .args(player)
        .arg("--json")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let result: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let accuracy = result["accuracy"].as_f64().unwrap();
    println!("{player:?}: {accuracy:.3}");
    accuracy
}

#[test]
fn every_configuration_that_ships_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/configs");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let problem = if text.contains("\n[learner]\n") {
            let config = CycleConfig::read(&path).unwrap().training();
            config.err().map(|error| error.to_string())
        } else if text.contains("[[variants]]") {
            Ablation::read(&path).err().map(|error| error.to_string())
        } else {
            let config = TrainConfig::read(&path);
            config.err().map(|error| error.to_string())
        };
        assert_eq!(problem, None, "{}", path.display());
        read += 1;
    }
    assert!(read > 10);
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn puzzles_are_still_solved() {
    let Some(file) = puzzles() else {
        return;
    };
    let bounds = [
        ("tessera-xs", "policy --limit 1200", 0.23),
        ("tessera-xs", "value --limit 300", 0.27),
        ("tessera-xs", "mcts --nodes 100 --limit 120", 0.52),
        ("tessera-s", "policy --limit 1200", 0.38),
    ];
    for (name, player, bound) in bounds {
        let network = networks().join(format!("{name}.pt"));
        let mut words = vec!["--net", network.to_str().unwrap(), "--agent"];
        words.extend(player.split(' '));
        let accuracy = accuracy(&file, &words);
        assert!(
            accuracy >= bound,
            "{name} by {player} solves only {accuracy:.3}"
        );
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn human_moves_are_still_predicted_by_rating() {
    let games = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/games");
    let games = games.join("human-games.pgn.zst");
    if !games.exists() {
        crate::skip::skip(&games.display().to_string());
        return;
    }
    let output = Command::cargo_bin("tessera")
        .unwrap()
        .args([
            "match-moves",
            "--held-out",
            "0.1",
            "--limit",
            "300",
            "--json",
        ])
        .args(["--threads", "1", "--net"])
        .arg(networks().join("tessera-human.pt"))
        .arg("--net")
        .arg(networks().join("tessera-xs.pt"))
        .arg(games)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let matched = |network: usize| {
        let bands = result["networks"][network]["bands"].as_array().unwrap();
        let all = bands.iter().find(|row| row["band"].is_null()).unwrap();
        all["move_match"]["mean"].as_f64().unwrap()
    };
    let (human, engine) = (matched(0), matched(1));
    println!("tessera-human predicts {human:.3} of the moves, tessera-xs {engine:.3}");
    assert!(human > 0.46 && human > engine + 0.03, "{human} {engine}");
}

/// Returns the folder of the networks that ship with the engine.
fn networks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("nets")
}

/// The networks that ship with the engine; their folder may also contain imported ones.
const SHIPPED: [&str; 6] = [
    "tessera-xs",
    "tessera-s",
    "tessera-human",
    "tessera-gpt",
    "tessera-diffusion",
    "tessera-world",
];

/// Maximum size in bytes of a network file.
const LARGEST: u64 = 16 << 20;
/// Maximum size in bytes of the file of a move-token model, which has no board: ten million
/// parameters in fp16.
const LARGEST_OVER_MOVES: u64 = 20 << 20;

#[test]
fn every_network_is_valid_and_has_its_card() {
    let cards = fs::read_to_string(networks().join("README.md")).unwrap();
    for name in SHIPPED {
        let path = networks().join(format!("{name}.pt"));
        let largest = match name {
            "tessera-gpt" => LARGEST_OVER_MOVES,
            _ => LARGEST,
        };
        assert!(path.metadata().unwrap().len() <= largest, "{path:?}");
        let metadata = inference::describe(Some(&path), CodePolicy::Checked).unwrap();
        assert_eq!(metadata.name, name);
        let samples = metadata.training["samples"].as_u64().unwrap() as f64;
        let title = format!("{name}\n");
        let card = cards.split("\n## ").find(|it| it.starts_with(&title));
        let card = card.unwrap_or_else(|| panic!("{name} has no card"));
        let said = format!("{:.1} million samples", samples / 1e6);
        assert!(card.contains(&said), "{name} saw {said}");
    }
}

/// Returns the number of plies that the network expects the game to last.
fn moves_left(fen: &str) -> f64 {
    let mut command = Command::cargo_bin("tessera").unwrap();
    let output = command
        .args(["eval", "--json", "--fen", fen])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let result: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    result["moves_left"].as_f64().unwrap()
}

#[test]
fn the_end_of_a_game_is_predicted() {
    let opening = moves_left("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    let ending = moves_left("8/8/4k3/8/8/8/1Q6/1K6 w - - 0 80");
    println!("{opening:.1} plies from the start, {ending:.1} with a queen more");
    assert!(opening > 60.0 && opening < 250.0, "{opening}");
    assert!(ending > 1.0 && ending < opening / 2.0, "{ending}");
}

/// Quiet openings, each played twice.
const OPENINGS: [&str; 4] = ["e2e4 e7e5", "d2d4 d7d5", "c2c4 g8f6", "g1f3 c7c5"];
/// Number of plies after which a game is drawn.
const LONGEST: usize = 200;
/// Visits per move for both sides.
const NODES: u64 = 64;

fn player(kind: BackendKind) -> Box<dyn ConfigurableAgent> {
    let options = BackendOptions {
        kind,
        threads: 1,
        ..BackendOptions::default()
    };
    let backend: Arc<dyn Backend> = inference::load(&options).unwrap();
    let parameters = Parameters {
        threads: 1,
        hash: 16,
        ..Parameters::default()
    };
    AgentKind::Mcts.build(backend, &parameters.clone().into())
}

/// Returns White's points.
fn play(
    opening: &str,
    mut white: Box<dyn ConfigurableAgent>,
    mut black: Box<dyn ConfigurableAgent>,
) -> f64 {
    let mut game = Game::default();
    for mv in opening.split(' ') {
        game.play(game.parse_move(mv).unwrap());
    }
    let limits = Limits {
        nodes: Some(NODES),
        ..Limits::default()
    };
    while game.plies().len() < LONGEST {
        if let Some(ending) = game.ending() {
            return match (ending, game.position().turn()) {
                (Ending::Checkmate, Color::White) => 0.0,
                (Ending::Checkmate, Color::Black) => 1.0,
                _ => 0.5,
            };
        }
        let mover = game.position().turn().fold_wb(&mut white, &mut black);
        let choice = mover.choose(&game, &limits, &Control::default(), &mut |_| {});
        game.play(choice.unwrap().best.unwrap());
    }
    0.5
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn the_network_beats_a_search_without_one() {
    let mut points = 0.0;
    for opening in OPENINGS {
        let [network, without] = [BackendKind::Torch, BackendKind::Uniform].map(player);
        points += play(opening, network, without);
        let [network, without] = [BackendKind::Torch, BackendKind::Uniform].map(player);
        points += 1.0 - play(opening, without, network);
    }
    println!("{points} of {}", 2 * OPENINGS.len());
    assert!(points >= 6.5, "{points}");
}
