//! A custom agent, and a game between it and the policy of the built-in network: `cargo run
//! --release --example agent`.

use shakmaty::{Move, Position};
use tessera::agent::{AgentKind, Options};
use tessera::backend::BackendOptions;
use tessera::chess::Game;
use tessera::inference;
use tessera::play::{Agent, AgentError, Choice, Control, Limits, Question, Report};

/// Leaves the opponent as few moves as possible.
pub struct Cramping;

impl Agent for Cramping {
    fn new_game(&mut self) {}

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        _: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let question = Question {
            game,
            limits: limits.clone(),
        };
        let replies = |mv: &Move| {
            let mut next = game.clone();
            next.play(*mv);
            next.position().legal_moves().len()
        };
        let best = question.moves().into_iter().min_by_key(replies);
        // With `go infinite` the answer waits for `stop`.
        control.hold_back(limits);
        Ok(Choice {
            best,
            ..Choice::default()
        })
    }
}

#[allow(dead_code, reason = "the test calls `play`")]
fn main() -> anyhow::Result<()> {
    let backend = inference::load(&BackendOptions::default())?;
    let mut policy = AgentKind::Policy.build(backend, &Options::default());
    let game = play(&mut Cramping, &mut *policy)?;
    println!("{:?} after {} plies", game.ending(), game.plies().len() - 1);
    Ok(())
}

/// Plays a game; White's player comes first.
pub fn play(white: &mut dyn Agent, black: &mut dyn Agent) -> Result<Game, AgentError> {
    let mut game = Game::default();
    while game.ending().is_none() {
        let player: &mut dyn Agent = match game.position().turn().is_white() {
            true => white,
            false => black,
        };
        let choice = player.choose(&game, &Limits::default(), &Control::default(), &mut |_| {})?;
        match choice.best {
            Some(mv) => game.play(mv),
            None => break,
        }
    }
    Ok(game)
}
