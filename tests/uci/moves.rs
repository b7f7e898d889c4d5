//! A move-token model behind UCI, which plays games rather than positions.

use super::Engine;
use crate::gpt::written::newborn;
use crate::gpt::{networks, random};
use tessera::chess::Game;
use tessera::torch::ExportPrecision;

/// Sends a game and asserts that the answer is a legal move.
fn answer(engine: &mut Engine, moves: &str) {
    let mut game = Game::default();
    for mv in moves.split_whitespace() {
        game.play(game.parse_move(mv).unwrap());
    }
    engine.say(&format!("position startpos moves {moves}"));
    engine.say("go nodes 1");
    let best = engine.best_move();
    assert!(game.parse_move(&best).is_ok(), "{best} after {moves}");
}

#[test]
fn games_are_played_and_moves_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let net = newborn(folder.path());
    let mut engine = Engine::start();
    engine.say(&format!("setoption name Net value {}", net.display()));
    for agent in ["policy", "value", "mcts"] {
        engine.say(&format!("setoption name Agent value {agent}"));
        answer(&mut engine, "e2e4 e7e5 g1f3");
        answer(&mut engine, "e2e4 e7e5 g1f3 b8c6 f1b5");
        answer(&mut engine, "e2e4 c7c5");
    }
    engine.say("setoption name UCI_LimitStrength value true");
    engine.say(&format!("setoption name HumanNet value {}", net.display()));
    answer(&mut engine, "d2d4");
}

#[test]
fn positions_without_their_game_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let net = newborn(folder.path());
    let mut engine = Engine::start();
    engine.say(&format!("setoption name Net value {}", net.display()));
    engine.say("setoption name Agent value policy");
    engine.say("position fen 8/8/8/8/8/4k3/4p3/4K2R w K - 0 1 moves h1h2");
    engine.say("go nodes 1");
    let said = engine.wait_for("bestmove");
    let refused = "info string ERROR: the network cannot evaluate this position: it reads the moves from the initial";
    let refusals = said.iter().filter(|line| line.starts_with(refused));
    assert_eq!(refusals.count(), 1, "{said:?}");
    assert!(!said.iter().any(|line| line.contains("CPU")), "{said:?}");
    answer(&mut engine, "e2e4");
}

#[test]
fn agents_that_need_values_are_replaced_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("gpt-2.pt");
    let (_, config) = &networks()[1];
    random(config).write(ExportPrecision::F32, &net).unwrap();
    let mut engine = Engine::start();
    engine.say(&format!("setoption name Net value {}", net.display()));
    for agent in ["mcts", "value"] {
        engine.say(&format!("setoption name Agent value {agent}"));
        engine.say("position startpos");
        engine.say("go nodes 10");
        let said = engine.wait_for("bestmove");
        let refused = "info string ERROR: the network `random` has no value head";
        let is_told = |line: &String| line.starts_with(refused) && line.contains("`policy` plays");
        assert!(said.iter().any(is_told), "{said:?}");
        assert!(said.last().unwrap().starts_with("bestmove "), "{said:?}");
    }
}
