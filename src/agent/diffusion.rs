//! Plays the first move of a continuation that a network imagines.

use super::immediate::{Candidates, choose_by};
use super::policy::{choose, lay_out, of_candidates};
use super::{ConfigurableAgent, Options};
use crate::backend::{Backend, PredictedFuture, evaluate_with_futures};
use crate::chess::Game;
use crate::encode::policy_move;
use crate::play::{Agent, AgentError, Choice, Control, Limits, Question, Report};
use crate::search::TimeBudget;
use shakmaty::{Move, Position};
use std::sync::Arc;

/// Maximum number of steps under a clock.
const MOST_STEPS: usize = 64;

/// An agent that plays the network's move after a number of denoising steps. Under a clock, it
/// keeps doubling the steps as long as time remains.
pub(super) struct DiffusionAgent {
    backend: Arc<dyn Backend>,
    options: Options,
}

impl DiffusionAgent {
    pub(super) fn new(backend: Arc<dyn Backend>, options: &Options) -> DiffusionAgent {
        DiffusionAgent {
            backend,
            options: options.clone(),
        }
    }

    /// Chooses moves after this number of steps.
    fn choose_by_futures(
        &self,
        questions: &[Question<'_>],
        steps: usize,
    ) -> Result<Vec<Choice>, AgentError> {
        choose_by(&self.options, questions, |open| self.answer(open, steps))
    }

    fn answer(
        &self,
        positions: &[Candidates<'_>],
        steps: usize,
    ) -> Result<Vec<Choice>, AgentError> {
        let games = positions.iter().map(|position| position.game);
        let (evaluated, predicted) = evaluate_with_futures(&*self.backend, games, steps)?;
        let answers = positions.iter().zip(&evaluated).enumerate();
        let choices = answers.map(|(index, (position, evaluated))| {
            let (priors, value) = of_candidates(position, evaluated);
            let mut choice = lay_out(value, priors);
            let future = predicted.get(index);
            if let Some(future) = future {
                go_on(&mut choice, position.game, future, steps);
            }
            let likeliest = choice.best;
            choose(&mut choice, &self.options, position.game);
            // The imagined future starts with the likeliest move.
            if choice.best != likeliest {
                choice.ponder = None;
            }
            choice
        });
        Ok(choices.collect())
    }
}

/// Extends the line of the likeliest move by the imagined moves.
fn go_on(choice: &mut Choice, game: &Game, future: &PredictedFuture, steps: usize) {
    let report = &mut choice.report;
    let horizon = future.boards.len();
    report.depth = horizon.max(1) as u32;
    report.selective_depth = report.depth;
    report.nodes = (steps.max(1) * (1 + horizon)) as u64;
    report.new_nodes = report.nodes;
    let Some(line) = report.lines.first_mut() else {
        return;
    };
    line.moves = predicted_line(game, line.moves[0], future);
    choice.ponder = line.moves.get(1).copied();
    let later = future.moves.iter().take(line.moves.len() - 1);
    let later: f32 = later.map(|&(_, probability)| probability).product();
    report.likelihood = choice.statistics.first().map(|best| best.prior * later);
}

/// Returns the imagined line from a move on, up to its first illegal move.
fn predicted_line(game: &Game, first: Move, future: &PredictedFuture) -> Vec<Move> {
    let mut position = game.position().clone();
    let mut line = vec![first];
    position.play_unchecked(first);
    for &(index, _) in &future.moves {
        let Some(mv) = policy_move(&position, index) else {
            break;
        };
        line.push(mv);
        position.play_unchecked(mv);
    }
    line
}

impl Agent for DiffusionAgent {
    fn new_game(&mut self) {}

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let began = control.now();
        let overhead = self.options.search.overhead();
        let limits = limits.clone();
        let budget = TimeBudget::new(&limits, overhead).map(|budget| budget.soft);
        let question = Question { game, limits };
        let by_the_clock = self.options.diffusion.steps == 0;
        let mut steps = match self.options.diffusion.steps {
            0 => 1,
            steps => steps,
        };
        loop {
            let round = control.now();
            let choices = self.choose_by_futures(std::slice::from_ref(&question), steps)?;
            let mut choice = choices.into_iter().next().unwrap_or_default();
            if choice.best.is_none() {
                return Ok(choice);
            }
            let now = control.now();
            choice.report.elapsed = now.saturating_duration_since(began);
            report(&choice.report);
            // Twice the steps take twice as long.
            let next = choice.report.elapsed + now.saturating_duration_since(round) * 2;
            let is_over = budget.is_some_and(|budget| next > budget) || control.stopped();
            // Without a limit, as in measurements, the loop would never end.
            let is_limited = budget.is_some() || question.limits.infinite || question.limits.ponder;
            if !by_the_clock || is_over || !is_limited || 2 * steps > MOST_STEPS {
                control.hold_back(&question.limits);
                return Ok(choice);
            }
            steps *= 2;
        }
    }

    fn choose_many(&mut self, questions: &[Question<'_>]) -> Result<Vec<Choice>, AgentError> {
        self.choose_by_futures(questions, self.options.diffusion.steps.max(1))
    }

    fn batch(&self) -> usize {
        self.backend.properties().recommended_batch
    }
}

impl ConfigurableAgent for DiffusionAgent {
    fn adjust(&mut self, options: &Options) {
        self.options = options.clone();
    }

    fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        self.backend = backend;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::DiffusionOptions;
    use crate::backend::{BackendError, Batch, Evaluations, Properties, Random};
    use crate::encode::{Squares, policy_index};
    use crate::play::Clock;
    use std::time::Duration;

    /// Always imagines one given game.
    struct Prophet {
        properties: Random,
        moves: Vec<(u16, f32)>,
    }

    impl Backend for Prophet {
        fn properties(&self) -> &Properties {
            self.properties.properties()
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            self.properties.evaluate(batch, out)?;
            let future = PredictedFuture {
                boards: vec![Squares::default(); 4],
                moves: self.moves.clone(),
            };
            out.futures = vec![future; batch.len()];
            Ok(())
        }
    }

    fn prophet(moves: &str) -> Arc<dyn Backend> {
        // Replies to a move after which all of these moves are legal.
        let mut game = Game::default();
        game.play(game.parse_move("a2a3").unwrap());
        let moves = moves.split_whitespace().map(|mv| {
            let mv = game.parse_move(mv).unwrap();
            let index = policy_index(mv, game.position().turn());
            game.play(mv);
            (index, 0.5)
        });
        Arc::new(Prophet {
            moves: moves.collect(),
            properties: Random::new(3),
        })
    }

    fn ask(backend: Arc<dyn Backend>, steps: usize, limits: &Limits) -> (Choice, Vec<Report>) {
        let options = Options {
            diffusion: DiffusionOptions { steps },
            ..Options::default()
        };
        ask_with(backend, &options, limits)
    }

    fn ask_with(
        backend: Arc<dyn Backend>,
        options: &Options,
        limits: &Limits,
    ) -> (Choice, Vec<Report>) {
        let mut agent = DiffusionAgent::new(backend, options);
        let mut reports = Vec::new();
        // Thinking takes no time on this clock.
        let control = Control::with_clock(Clock::manual());
        let game = Game::default();
        let choice = agent.choose(&game, limits, &control, &mut |it| reports.push(it.clone()));
        (choice.unwrap(), reports)
    }

    #[test]
    fn the_line_is_predicted_up_to_what_is_illegal() {
        let (choice, reports) = ask(prophet("e7e5 b2b3 e5e4"), 5, &Limits::default());
        let line = &choice.report.lines[0].moves;
        assert_eq!(line[0], choice.best.unwrap());
        assert_eq!(choice.ponder, line.get(1).copied());
        assert!(line.len() == 4 || line.len() == 2, "{line:?}");
        assert_eq!((choice.report.depth, choice.report.nodes), (4, 25));
        let later = 0.5f32.powi(line.len() as i32 - 1);
        let expected = choice.statistics[0].prior * later;
        assert_eq!(choice.report.likelihood, Some(expected));
        assert_eq!(reports.len(), 1);
        // The king cannot castle yet.
        let illegal = PredictedFuture {
            moves: vec![(103, 0.9), (0, 0.9)],
            ..PredictedFuture::default()
        };
        let game = Game::default();
        let first = game.parse_move("e2e4").unwrap();
        assert!(predicted_line(&game, first, &illegal).len() <= 2);
    }

    #[test]
    fn the_reply_predicted_answers_the_move_played() {
        let (mut likeliest, mut others) = (0, 0);
        for seed in 1..=40 {
            let mut options = Options::default();
            options.search.temperature = 1.0;
            options.search.seed = seed;
            let (choice, _) = ask_with(prophet("e7e5"), &options, &Limits::default());
            let line = &choice.report.lines[0].moves;
            assert!(line.len() > 1, "{line:?}");
            if choice.best == Some(line[0]) {
                assert_eq!(choice.ponder, Some(line[1]));
                likeliest += 1;
            } else {
                assert_eq!(choice.ponder, None);
                others += 1;
            }
        }
        assert!(likeliest > 0 && others > 0, "{likeliest} {others}");
    }

    #[test]
    fn the_clock_allows_more_steps() {
        let limits = Limits {
            move_time: Some(Duration::from_millis(2000)),
            ..Limits::default()
        };
        let (choice, reports) = ask(prophet("e7e5"), 0, &limits);
        let steps: Vec<u64> = reports.iter().map(|it| it.nodes / 5).collect();
        assert_eq!(steps, [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(choice.report.nodes, 320);
        let (_, reports) = ask(prophet("e7e5"), 0, &Limits::default());
        assert_eq!(reports.len(), 1);
    }

    #[test]
    fn other_networks_answer_by_their_policy() {
        let (choice, _) = ask(Arc::new(Random::new(3)), 10, &Limits::default());
        assert_eq!(choice.report.lines[0].moves, [choice.best.unwrap()]);
        assert_eq!(choice.report.depth, 1);
    }
}
