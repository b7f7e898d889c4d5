//! Agents that answer without a search. They ignore the clock and answer many positions in one
//! batch.

use super::{ConfigurableAgent, Options};
use crate::backend::Backend;
use crate::chess::Game;
use crate::play::{Agent, AgentError, Choice, Control, Limits, Question, Report};
use crate::tablebase::RootMoves;
use shakmaty::MoveList;
use std::sync::Arc;

/// A position with the moves to choose from; there is at least one.
pub(super) struct Candidates<'a> {
    pub(super) game: &'a Game,
    pub(super) moves: MoveList,
}

/// A function that chooses a move in each position.
pub(super) type Answer =
    fn(&dyn Backend, &Options, &[Candidates<'_>]) -> Result<Vec<Choice>, AgentError>;

/// An agent that chooses its moves with an [`Answer`].
pub(super) struct ImmediateAgent {
    answer: Answer,
    /// The number of evaluations for a typical position.
    evaluations: usize,
    backend: Arc<dyn Backend>,
    options: Options,
}

impl ImmediateAgent {
    pub(super) fn new(
        answer: Answer,
        evaluations: usize,
        backend: Arc<dyn Backend>,
        options: &Options,
    ) -> ImmediateAgent {
        ImmediateAgent {
            answer,
            evaluations,
            backend,
            options: options.clone(),
        }
    }
}

impl<'a> Candidates<'a> {
    /// Returns the moves to choose from and, if the tablebases know the position, their results.
    fn of(options: &Options, question: &Question<'a>) -> (Candidates<'a>, Option<RootMoves>) {
        let game = question.game;
        let mut moves = question.moves();
        let known = options.search.tablebase.best_moves(game, &moves);
        if let Some(known) = &known {
            moves.retain(|mv| known.moves.contains(mv));
        }
        (Candidates { game, moves }, known)
    }
}

/// Chooses moves with an [`Answer`] in positions that have moves to choose from; tablebases take
/// precedence.
pub(super) fn choose_by(
    options: &Options,
    questions: &[Question<'_>],
    answer: impl FnOnce(&[Candidates<'_>]) -> Result<Vec<Choice>, AgentError>,
) -> Result<Vec<Choice>, AgentError> {
    let mut choices = vec![Choice::default(); questions.len()];
    let (mut open, mut places) = (Vec::new(), Vec::new());
    for (place, question) in questions.iter().enumerate() {
        let (candidates, known) = Candidates::of(options, question);
        if !candidates.moves.is_empty() {
            open.push(candidates);
            places.push((place, known));
        }
    }
    if open.is_empty() {
        return Ok(choices);
    }
    for ((place, known), mut choice) in places.into_iter().zip(answer(&open)?) {
        if let Some(known) = known {
            choice.report.tablebase_hits = known.hits;
            for line in &mut choice.report.lines {
                line.settle(known.verdict);
            }
        }
        choices[place] = choice;
    }
    Ok(choices)
}

impl Agent for ImmediateAgent {
    fn new_game(&mut self) {}

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let began = control.now();
        let limits = limits.clone();
        let question = Question { game, limits };
        let choices = self.choose_many(std::slice::from_ref(&question))?;
        let mut choice = choices.into_iter().next().unwrap_or_default();
        if choice.best.is_some() {
            choice.report.elapsed = control.now().saturating_duration_since(began);
            report(&choice.report);
        }
        control.hold_back(&question.limits);
        Ok(choice)
    }

    fn choose_many(&mut self, questions: &[Question<'_>]) -> Result<Vec<Choice>, AgentError> {
        choose_by(&self.options, questions, |open| {
            (self.answer)(&*self.backend, &self.options, open)
        })
    }

    fn batch(&self) -> usize {
        let evaluations = self.backend.properties().recommended_batch;
        evaluations.div_ceil(self.evaluations)
    }
}

impl ConfigurableAgent for ImmediateAgent {
    fn adjust(&mut self, options: &Options) {
        self.options = options.clone();
    }

    fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        self.backend = backend;
    }
}

#[cfg(test)]
mod tests {
    use crate::agent::{AgentKind, Options};
    use crate::backend::{Backend, Random};
    use crate::chess::Game;
    use crate::play::{Choice, Control, Limits, Question};
    use shakmaty::CastlingMode;
    use std::sync::Arc;

    #[test]
    fn moves_that_were_not_looked_at_are_no_lines() {
        let backend: Arc<dyn Backend> = Arc::new(Random::new(1));
        let lines = |kind: AgentKind| {
            let mut options = Options::default();
            options.search.multi_pv = 5;
            let mut agent = kind.build(backend.clone(), &options);
            let control = Control::default();
            let choice = agent.choose(&Game::default(), &Limits::default(), &control, &mut |_| {});
            choice.unwrap().report.lines.len()
        };
        let kinds = [AgentKind::Policy, AgentKind::Diffusion, AgentKind::Value];
        assert_eq!(kinds.map(lines), [1, 1, 5]);
    }

    #[test]
    fn many_are_answered_as_one_by_one() {
        let backend: Arc<dyn Backend> = Arc::new(Random::new(1));
        let games = [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1",
            "6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 w - - 0 1",
            "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 b - - 0 10",
        ]
        .map(|fen| Game::from_fen(fen, CastlingMode::Standard).unwrap());
        let question = |game| Question {
            game,
            limits: Limits::default(),
        };
        let questions: Vec<Question> = games.iter().map(question).collect();
        for kind in [AgentKind::Policy, AgentKind::Value] {
            let mut agent = kind.build(backend.clone(), &Options::default());
            let many = agent.choose_many(&questions).unwrap();
            assert_eq!(many.len(), games.len());
            assert_eq!(many[1], Choice::default());
            for (game, answer) in games.iter().zip(many) {
                let control = Control::default();
                let mut one = agent
                    .choose(game, &Limits::default(), &control, &mut |_| {})
                    .unwrap();
                one.report.elapsed = answer.report.elapsed;
                assert_eq!(one, answer);
            }
        }
    }
}
