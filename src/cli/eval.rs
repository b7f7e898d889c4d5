//! `tessera eval`: a network's evaluation of one position.

use super::options::{NetworkArguments, PositionArguments};
use super::output::{print, print_json};
use anyhow::Context;
use serde_json::{Map, json};
use shakmaty::Position;
use shakmaty::fen::Fen;
use std::fmt::Write;
use tessera::nn::{self, BackendKind, Batch, Evaluations, softmax};
use tessera::uci::Settings;

/// Evaluate one position: win, draw and loss, and the policy move by move
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    position: PositionArguments,
    /// Moves played from the position, in UCI notation; the network sees them as history
    #[arg(long, num_args = 1.., value_delimiter = ' ')]
    moves: Vec<String>,
    #[command(flatten)]
    network: NetworkArguments,
    /// Rating of the side to move, for networks that take ratings
    #[arg(long, default_value_t = 1500, value_name = "ELO")]
    self_elo: u16,
    /// Rating of the other side
    #[arg(long, default_value_t = 1500, value_name = "ELO")]
    opponent_elo: u16,
    /// What evaluates the position
    #[arg(long, value_enum, default_value_t)]
    backend: BackendKind,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let mut game = self.position.game()?;
        for text in self.moves.iter().filter(|text| !text.is_empty()) {
            let mv = game.parse_move(text).context("--moves")?;
            game.play(mv);
        }
        let settings = Settings {
            self_elo: self.self_elo,
            opponent_elo: self.opponent_elo,
            ..Settings::default()
        };
        game.set_ratings(settings.ratings(game.position().turn()));
        let backend = nn::load(&self.network.options(self.backend, 1))?;
        let properties = backend.properties();
        let moves = game.position().legal_moves();
        let mut batch = Batch::default();
        batch.push(&game, &moves, properties.input);
        let mut evaluations = Evaluations::default();
        backend.evaluate(&batch, &mut evaluations)?;
        let value = evaluations.value(0);
        let wdl = value.wdl();
        let mut probabilities = evaluations.logits(0).to_vec();
        softmax(&mut probabilities, 1.0);
        let mut policy: Vec<(String, f32)> = moves
            .iter()
            .map(|&mv| game.format_move(mv))
            .zip(probabilities)
            .collect();
        policy.sort_by(|a, b| b.1.total_cmp(&a.1));
        let moves_left = properties.has_moves_left.then_some(value.moves_left);
        let error = properties.has_error.then_some(value.error);
        let position = game.position().clone();
        let fen = Fen::from_position(&position, shakmaty::EnPassantMode::Legal).to_string();
        if self.json {
            let policy: Map<_, _> = policy.into_iter().map(|(mv, p)| (mv, json!(p))).collect();
            return print_json(&json!({
                "network": properties.name,
                "fen": fen,
                "value": value.q,
                "wdl": wdl,
                "moves_left": moves_left,
                "error": error,
                "policy": policy,
            }));
        }
        let mut text = format!("{}\n{fen}\n", properties.name);
        if let Some(ending) = game.ending() {
            writeln!(text, "The game is over: {ending:?}")?;
        }
        let [win, draw, loss] = wdl.map(|probability| 100.0 * probability);
        writeln!(text, "win {win:.1} %, draw {draw:.1} %, loss {loss:.1} %")?;
        writeln!(text, "q {:+.4}", value.q)?;
        if let Some(error) = error {
            writeln!(text, "expected squared error of q {error:.4}")?;
        }
        if let Some(plies) = moves_left {
            writeln!(text, "moves left {plies:.1} plies")?;
        }
        for (mv, probability) in policy {
            writeln!(text, "{mv:5} {:6.2} %", 100.0 * probability)?;
        }
        print(&text)
    }
}
