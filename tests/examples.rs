//! Runs the examples that are cheap.

mod agent;
mod backend;
mod evaluate;
#[cfg(feature = "torch")]
mod train;

use shakmaty::CastlingMode;
use tessera::backend::Random;
use tessera::chess::Game;

#[test]
fn a_position_is_evaluated() {
    let text = evaluate::evaluate(&Random::new(1), &Game::default()).unwrap();
    assert!(text.starts_with("win 0."), "{text}");
    assert_eq!(text.lines().count(), 21, "{text}");
}

#[test]
fn an_agent_plays() {
    let game = agent::play(&mut agent::Cramping, &mut agent::Cramping).unwrap();
    assert!(game.ending().is_some());
}

#[test]
fn a_backend_is_searched() {
    let fen = "r3k3/8/8/3q4/4P3/2N5/8/4K3 w - - 0 1";
    let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    let best = backend::search(&game, 300).unwrap().best.unwrap();
    assert!(game.format_move(best).ends_with("d5"), "{best:?}");
}

#[cfg(feature = "torch")]
#[test]
fn a_network_is_trained_on_games() {
    let games = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/games/master-games.pgn");
    let folder = tempfile::tempdir().unwrap();
    let summary = train::train(games.as_ref(), folder.path(), 2).unwrap();
    assert!(summary.finished && summary.samples == 128);
    assert!(summary.checkpoint.exists());
}
