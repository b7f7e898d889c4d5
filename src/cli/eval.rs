//! `tessera eval`: prints a network's evaluation of one position.

use super::options::PositionArguments;
use super::output::{print, print_json};
use anyhow::bail;
use serde_json::{Map, Value as Json, json};
use shakmaty::Position;
use std::fmt::Write;
use tessera::backend::{
    self, Backend, BackendError, BuiltIn, Value, evaluate_games, evaluate_people,
};
use tessera::chess::{Game, Ratings, fen};
use tessera::command_line::{BackendArguments, NetworkArguments};
use tessera::inference;

/// The rating used for a player whose rating is unknown.
const USUAL_ELO: u16 = 1500;

/// Evaluate one position: the probabilities of win, draw and loss, and of each move
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    position: PositionArguments,
    #[command(flatten)]
    network: NetworkArguments,
    /// Ratings of the side to move, such as 1200,1500,1800, for which evaluations are shown side by
    /// side. Unless --net names a network, the one that plays like people evaluates
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ELO",
        conflicts_with = "self_elo"
    )]
    elo: Vec<u16>,
    /// Rating of the side to move, for networks that take ratings
    #[arg(long, default_value_t = USUAL_ELO, value_name = "ELO")]
    self_elo: u16,
    /// Rating of the other side; by default 1500 or, with --elo, the same as that of the side to
    /// move
    #[arg(long, value_name = "ELO")]
    opponent_elo: Option<u16>,
    #[command(flatten)]
    backend: BackendArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A network's evaluation of a position.
struct Evaluation {
    value: Value,
    /// The probabilities of the moves in UCI notation, likeliest first.
    policy: Vec<(String, f32)>,
}

impl Evaluation {
    /// Evaluates the game's last position for these ratings of the side to move and the opponent.
    fn of(
        backend: &dyn Backend,
        game: &mut Game,
        [rating, opponent]: [u16; 2],
        evaluate: fn(&dyn Backend, &Game) -> Result<backend::Evaluated, BackendError>,
    ) -> anyhow::Result<Evaluation> {
        game.set_ratings(Ratings::of(game.position().turn(), rating, opponent));
        let found = evaluate(backend, game)?;
        let priors = found.priors();
        let priors = priors.map(|(mv, prior)| (game.format_move(mv), prior));
        let mut policy: Vec<(String, f32)> = priors.collect();
        policy.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(Evaluation {
            value: found.value,
            policy,
        })
    }

    fn policy_json(&self) -> Map<String, Json> {
        let policy = self.policy.iter();
        policy.map(|(mv, p)| (mv.clone(), json!(p))).collect()
    }

    /// Returns the probability of a move.
    fn probability(&self, mv: &str) -> f32 {
        let found = self.policy.iter().find(|(of, _)| of == mv);
        found.map_or(0.0, |&(_, probability)| probability)
    }
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let mut game = self.position.game()?;
        let mut options = self.network.options(self.backend.backend, 1);
        if !self.elo.is_empty() {
            options.network.built_in = BuiltIn::Human;
        }
        let backend = inference::load(&options)?;
        match self.elo.is_empty() {
            true => self.show(&*backend, &mut game),
            false => self.compare(&*backend, &mut game),
        }
    }

    /// Prints the evaluation for one rating.
    fn show(&self, backend: &dyn Backend, game: &mut Game) -> anyhow::Result<()> {
        let opponent = self.opponent_elo.unwrap_or(USUAL_ELO);
        let evaluated =
            Evaluation::of(backend, game, [self.self_elo, opponent], |backend, game| {
                Ok(evaluate_games(backend, [game])?.remove(0))
            })?;
        let properties = backend.properties();
        let value = evaluated.value;
        let wdl = value.wdl();
        let moves_left = properties.has_moves_left.then_some(value.moves_left);
        let error = properties.has_error.then_some(value.error);
        if self.json {
            return print_json(&json!({
                "network": properties.name,
                "fen": fen(game.position()),
                "value": value.q,
                "wdl": wdl,
                "moves_left": moves_left,
                "error": error,
                "policy": evaluated.policy_json(),
            }));
        }
        let mut text = heading(backend, game)?;
        let [win, draw, loss] = wdl.map(|probability| 100.0 * probability);
        writeln!(text, "win {win:.1} %, draw {draw:.1} %, loss {loss:.1} %")?;
        writeln!(text, "q {:+.4}", value.q)?;
        if let Some(error) = error {
            writeln!(text, "expected squared error of q {error:.4}")?;
        }
        if let Some(plies) = moves_left {
            writeln!(text, "moves left {plies:.1} plies")?;
        }
        for (mv, probability) in evaluated.policy {
            writeln!(text, "{mv:5} {:6.2} %", 100.0 * probability)?;
        }
        print(&text)
    }

    /// Prints the evaluations for several ratings in parallel columns.
    fn compare(&self, backend: &dyn Backend, game: &mut Game) -> anyhow::Result<()> {
        let properties = backend.properties();
        if !properties.reads_ratings {
            bail!(
                "the network {} reads no ratings: leave --elo out",
                properties.name
            );
        }
        let columns = self.elo.iter().map(|&elo| {
            let opponent = self.opponent_elo.unwrap_or(elo);
            let evaluated = Evaluation::of(backend, game, [elo, opponent], |backend, game| {
                Ok(evaluate_people(backend, [game])?.remove(0))
            })?;
            Ok((elo, opponent, evaluated))
        });
        let columns: Vec<_> = columns.collect::<anyhow::Result<_>>()?;
        if self.json {
            let ratings = columns.iter().map(|(elo, opponent, evaluated)| {
                json!({
                    "elo": elo,
                    "opponent_elo": opponent,
                    "value": evaluated.value.q,
                    "wdl": evaluated.value.wdl(),
                    "policy": evaluated.policy_json(),
                })
            });
            return print_json(&json!({
                "network": properties.name,
                "fen": fen(game.position()),
                "ratings": ratings.collect::<Vec<_>>(),
            }));
        }
        let mut text = heading(backend, game)?;
        write!(text, "rating")?;
        for (elo, _, _) in &columns {
            write!(text, " {elo:>9}")?;
        }
        writeln!(text)?;
        let mut row = |name: &str, cell: &dyn Fn(&Evaluation) -> f32| -> anyhow::Result<()> {
            write!(text, "{name:6}")?;
            for (_, _, evaluated) in &columns {
                write!(text, " {:7.2} %", 100.0 * cell(evaluated))?;
            }
            Ok(writeln!(text)?)
        };
        for (place, name) in ["win", "draw", "loss"].into_iter().enumerate() {
            row(name, &|evaluated| evaluated.value.wdl()[place])?;
        }
        let likeliest = |mv: &str| {
            let probabilities = columns.iter().map(|(_, _, of)| of.probability(mv));
            probabilities.fold(0.0, f32::max)
        };
        let mut moves: Vec<&str> = columns
            .first()
            .map(|(_, _, of)| of.policy.iter().map(|(mv, _)| mv.as_str()).collect())
            .unwrap_or_default();
        moves.sort_by(|a, b| likeliest(b).total_cmp(&likeliest(a)));
        for mv in moves {
            row(mv, &|evaluated| evaluated.probability(mv))?;
        }
        print(&text)
    }
}

/// Returns a heading that names the network and shows the position.
fn heading(backend: &dyn Backend, game: &Game) -> anyhow::Result<String> {
    let mut text = format!("{}\n{}\n", backend.properties().name, fen(game.position()));
    if let Some(ending) = game.ending() {
        writeln!(text, "The game is over: {ending:?}")?;
    }
    Ok(text)
}
