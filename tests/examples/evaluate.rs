//! Evaluates a position with the built-in network:
//! `cargo run --release --example evaluate -- "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1"`.

use shakmaty::CastlingMode;
use tessera::backend::{Backend, BackendError, BackendOptions, evaluate_games};
use tessera::chess::Game;
use tessera::inference;

#[allow(dead_code, reason = "the test calls `evaluate`")]
fn main() -> anyhow::Result<()> {
    let game = match std::env::args().nth(1) {
        Some(fen) => Game::from_fen(&fen, CastlingMode::Standard)?,
        None => Game::default(),
    };
    let backend = inference::load(&BackendOptions::default())?;
    print!("{}", evaluate(&*backend, &game)?);
    Ok(())
}

/// Returns the probabilities of win, draw and loss, then the moves by their priors.
pub fn evaluate(backend: &dyn Backend, game: &Game) -> Result<String, BackendError> {
    let evaluated = evaluate_games(backend, [game])?.remove(0);
    let [win, draw, loss] = evaluated.value.wdl();
    let mut ranked: Vec<_> = evaluated.priors().collect();
    ranked.sort_by(|(_, left), (_, right)| right.total_cmp(left));

    let mut text = format!("win {win:.3} draw {draw:.3} loss {loss:.3}\n");
    for (mv, prior) in ranked {
        text += &format!("{:5} {prior:.3}\n", game.format_move(mv));
    }
    Ok(text)
}
