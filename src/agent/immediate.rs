//! Players that answer without a search: what the network says at first sight.
//! They take as long as they take, whatever the clock says, and can answer many
//! positions with one evaluation.

use super::{Agent, AgentError, AgentKind, Choice, Control, Limits, Report, policy, value};
use crate::chess::Game;
use crate::nn::Backend;
use crate::search::Parameters;
use crate::tablebase::Tablebase;
use shakmaty::{Move, Position};
use std::sync::Arc;
use std::time::Instant;

/// A position, and the moves of which one is to be chosen.
pub(super) struct Question<'a> {
    pub(super) game: &'a Game,
    pub(super) moves: Vec<Move>,
}

impl<'a> Question<'a> {
    /// The legal moves, or those of them that [`Limits::search_moves`] names.
    fn new(game: &'a Game, limits: &Limits) -> Question<'a> {
        let allowed =
            |mv: &Move| limits.search_moves.is_empty() || limits.search_moves.contains(mv);
        let moves = game.position().legal_moves().into_iter();
        Question {
            game,
            moves: moves.filter(allowed).collect(),
        }
    }
}

/// Answers questions that each have a move, in one batch, reporting so many
/// lines each.
type Answer = fn(&dyn Backend, usize, &[Question]) -> Result<Vec<Choice>, AgentError>;

/// A way of choosing without a search.
#[derive(Clone, Copy, Debug)]
pub struct Immediate(Answer);

impl AgentKind {
    /// How the player chooses; `None` if it searches.
    #[must_use]
    pub fn immediate(self) -> Option<Immediate> {
        match self {
            AgentKind::Mcts => None,
            AgentKind::Policy => Some(Immediate(policy::answer)),
            AgentKind::Value => Some(Immediate(value::answer)),
        }
    }
}

impl Immediate {
    /// The choice in each of `games`, from one batch of the backend's: the same
    /// as if the player, without tablebases, were asked one by one.
    ///
    /// # Errors
    /// [`AgentError`] if the network failed.
    pub fn choose(self, backend: &dyn Backend, games: &[&Game]) -> Result<Vec<Choice>, AgentError> {
        let limits = Limits::default();
        let questions = games.iter().map(|game| Question::new(game, &limits));
        self.answer(backend, 1, questions)
    }

    /// The answers to all questions; an empty one to those without a move.
    fn answer<'a>(
        self,
        backend: &dyn Backend,
        lines: usize,
        questions: impl IntoIterator<Item = Question<'a>>,
    ) -> Result<Vec<Choice>, AgentError> {
        let mut choices = Vec::new();
        let mut places = Vec::new();
        let mut open = Vec::new();
        for question in questions {
            if !question.moves.is_empty() {
                places.push(choices.len());
                open.push(question);
            }
            choices.push(Choice::default());
        }
        if !open.is_empty() {
            let answers = (self.0)(backend, lines, &open)?;
            for (place, answer) in places.into_iter().zip(answers) {
                choices[place] = answer;
            }
        }
        Ok(choices)
    }
}

/// The player that chooses so.
pub(super) struct ImmediateAgent {
    immediate: Immediate,
    backend: Arc<dyn Backend>,
    lines: usize,
    tablebase: Tablebase,
}

impl ImmediateAgent {
    pub(super) fn new(
        immediate: Immediate,
        backend: Arc<dyn Backend>,
        parameters: &Parameters,
    ) -> ImmediateAgent {
        let mut agent = ImmediateAgent {
            immediate,
            backend,
            lines: 1,
            tablebase: Tablebase::default(),
        };
        agent.adjust(parameters);
        agent
    }
}

impl Agent for ImmediateAgent {
    fn new_game(&mut self) {}

    fn adjust(&mut self, parameters: &Parameters) {
        self.lines = parameters.multi_pv.max(1);
        self.tablebase = parameters.tablebase.clone();
    }

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let began = Instant::now();
        let mut question = Question::new(game, limits);
        let known = self.tablebase.best_moves(game, &question.moves);
        if let Some(known) = &known {
            question.moves.clone_from(&known.moves);
        }
        let mut choices = self
            .immediate
            .answer(&*self.backend, self.lines, [question])?;
        let mut choice = choices.pop().unwrap_or_default();
        if let Some(known) = known {
            choice.report.tablebase_hits = known.hits;
            for line in &mut choice.report.lines {
                line.settle(known.verdict);
            }
        }
        if choice.best.is_some() {
            choice.report.elapsed = began.elapsed();
            report(&choice.report);
        }
        control.hold_back(limits);
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Random;
    use shakmaty::CastlingMode;

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
        let references: Vec<&Game> = games.iter().collect();
        for kind in [AgentKind::Policy, AgentKind::Value] {
            let many = kind
                .immediate()
                .unwrap()
                .choose(&*backend, &references)
                .unwrap();
            let mut agent = kind.build(backend.clone(), &Parameters::default());
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
        assert!(AgentKind::Mcts.immediate().is_none());
    }
}
