//! A custom backend, and a search on it: `cargo run --release --example backend`.

use shakmaty::CastlingMode;
use std::sync::Arc;
use tessera::backend::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use tessera::chess::Game;
use tessera::encode::{Encoder, Input, InputFormat};
use tessera::play::{Choice, Control, Limits};
use tessera::search::{Parameters, Search};

/// Counts material, and likes every move equally.
pub struct Material(Properties);

impl Default for Material {
    fn default() -> Material {
        Material(Properties {
            name: "material".to_owned(),
            encoder: Encoder::Rows(InputFormat::Classical),
            has_value: true,
            has_moves_left: false,
            has_error: false,
            reads_ratings: false,
            correction: None,
            recommended_batch: 8,
            recommended_threads: 1,
            format: None,
        })
    }
}

impl Backend for Material {
    fn properties(&self) -> &Properties {
        &self.0
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        for (index, input) in batch.inputs().iter().enumerate() {
            let value = Value {
                q: (balance(input) / 10.0).tanh(),
                ..Value::default()
            };
            out.push(value, batch.moves(index).iter().map(|_| 0.0));
        }
        Ok(())
    }
}

/// Returns the mover's material advantage in pawns. Words 0 to 4 of a position are the squares of
/// its pawns, knights, bishops, rooks and queens; words 6 to 10 are the opponent's.
fn balance(input: &Input) -> f32 {
    let count = |word: usize| input.words()[word].count_ones() as f32;
    let worth = [1.0, 3.0, 3.0, 5.0, 9.0].into_iter().enumerate();
    worth
        .map(|(piece, pawns)| pawns * (count(piece) - count(6 + piece)))
        .sum()
}

#[allow(dead_code, reason = "the test calls `search`")]
fn main() -> anyhow::Result<()> {
    let fen = "r3k3/8/8/3q4/4P3/2N5/8/4K3 w - - 0 1";
    let game = Game::from_fen(fen, CastlingMode::Standard)?;
    let choice = search(&game, 1000)?;
    let best = choice.best.map(|mv| game.format_move(mv));
    println!(
        "{} of {} nodes",
        best.unwrap_or_default(),
        choice.report.nodes
    );
    Ok(())
}

/// Searches this many nodes.
pub fn search(game: &Game, nodes: u64) -> Result<Choice, BackendError> {
    let mut search = Search::new(Arc::new(Material::default()), &Parameters::default());
    let limits = Limits {
        nodes: Some(nodes),
        ..Limits::default()
    };
    search.run(game, &limits, &Control::default(), &mut |_| {})
}
