//! The network that ships still plays as it did: what a broken network, encoding
//! or policy index would not survive. The bounds leave room for other processors'
//! rounding; the figures themselves are in README.

use assert_cmd::Command;
use serde_json::Value;
use shakmaty::{Color, Position};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera::agent::{Agent, AgentKind, Control, Limits};
use tessera::chess::{Ending, Game};
use tessera::nn::{self, Backend, BackendKind, BackendOptions};
use tessera::search::Parameters;

fn puzzles() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/puzzles/dev.csv");
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// The share of puzzles that a player solves, by the program itself.
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
fn puzzles_are_still_solved() {
    let Some(file) = puzzles() else {
        return;
    };
    let bounds: [(&[&str], f64); 3] = [
        (&["--agent", "policy", "--limit", "1200"], 0.23),
        (&["--agent", "value", "--limit", "300"], 0.27),
        (
            &["--agent", "mcts", "--nodes", "100", "--limit", "120"],
            0.52,
        ),
    ];
    for (player, bound) in bounds {
        let accuracy = accuracy(&file, player);
        assert!(accuracy >= bound, "{player:?} solves but {accuracy:.3}");
    }
}

/// The plies that the network expects a game to last from here on.
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
fn the_end_of_a_game_is_seen_coming() {
    let opening = moves_left("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    let ending = moves_left("8/8/4k3/8/8/8/1Q6/1K6 w - - 0 80");
    println!("{opening:.1} plies from the start, {ending:.1} with a queen more");
    assert!(opening > 60.0 && opening < 250.0, "{opening}");
    assert!(ending > 1.0 && ending < opening / 2.0, "{ending}");
}

/// Positions after quiet first moves, each played twice.
const OPENINGS: [&str; 4] = ["e2e4 e7e5", "d2d4 d7d5", "c2c4 g8f6", "g1f3 c7c5"];
/// Plies after which a game is drawn.
const LONGEST: usize = 200;
/// Visits of either side.
const NODES: u64 = 64;

fn player(kind: BackendKind) -> Box<dyn Agent> {
    let options = BackendOptions {
        kind,
        threads: 1,
        ..BackendOptions::default()
    };
    let backend: Arc<dyn Backend> = nn::load(&options).unwrap();
    let parameters = Parameters {
        threads: 1,
        hash: 16,
        ..Parameters::default()
    };
    AgentKind::Mcts.build(backend, &parameters)
}

/// Points of the player who has White.
fn play(opening: &str, mut white: Box<dyn Agent>, mut black: Box<dyn Agent>) -> f64 {
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
