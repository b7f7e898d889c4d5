//! The move that the policy likes best.

use super::{
    Agent, AgentError, Choice, Control, Limits, Line, MoveStatistics, Report, Score, candidates,
};
use crate::chess::Game;
use crate::nn::{Backend, Batch, Evaluations, softmax};
use crate::search::Parameters;
use shakmaty::Position;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Plays the move with the greatest prior: one evaluation, no search, whatever
/// the clock says.
pub(super) struct PolicyAgent {
    backend: Arc<dyn Backend>,
    multi_pv: usize,
}

impl PolicyAgent {
    pub(super) fn new(backend: Arc<dyn Backend>, parameters: &Parameters) -> PolicyAgent {
        PolicyAgent {
            backend,
            multi_pv: parameters.multi_pv,
        }
    }

    /// The candidates with their priors, the likeliest first.
    fn rank(&self, game: &Game, limits: &Limits) -> Result<Vec<MoveStatistics>, AgentError> {
        let properties = self.backend.properties();
        let moves = game.position().legal_moves();
        let mut batch = Batch::default();
        batch.push(game, &moves, properties.reads_input);
        let mut evaluations = Evaluations::default();
        self.backend.evaluate(&batch, &mut evaluations)?;
        let value = evaluations.value(0);
        let mut priors = evaluations.logits(0).to_vec();
        softmax(&mut priors, 1.0);
        let allowed = candidates(game, limits);
        let mut statistics: Vec<_> = moves
            .iter()
            .zip(priors)
            .filter(|(mv, _)| allowed.contains(mv))
            .map(|(&mv, prior)| MoveStatistics {
                mv,
                visits: 0,
                prior,
                q: value.q,
                wdl: value.wdl(),
            })
            .collect();
        statistics.sort_by(|a, b| b.prior.partial_cmp(&a.prior).unwrap_or(Ordering::Equal));
        Ok(statistics)
    }
}

impl Agent for PolicyAgent {
    fn new_game(&mut self) {}

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let began = Instant::now();
        let mut choice = Choice::default();
        if !candidates(game, limits).is_empty() {
            choice.statistics = self.rank(game, limits)?;
            choice.best = choice.statistics.first().map(|best| best.mv);
            choice.report = Report {
                depth: 1,
                selective_depth: 1,
                nodes: 1,
                new_nodes: 1,
                elapsed: began.elapsed(),
                lines: choice
                    .statistics
                    .iter()
                    .take(self.multi_pv.max(1))
                    .map(|statistics| Line {
                        score: Score::Expected(statistics.q),
                        wdl: statistics.wdl,
                        moves_left: None,
                        moves: vec![statistics.mv],
                    })
                    .collect(),
                ..Report::default()
            };
            report(&choice.report);
        }
        control.hold_back(limits);
        Ok(choice)
    }
}
