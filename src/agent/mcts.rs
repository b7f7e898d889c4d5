//! The player that searches.

use super::{Agent, AgentError, Choice, Control, Limits, Report};
use crate::chess::Game;
use crate::nn::Backend;
use crate::search::{Parameters, Search};
use std::sync::Arc;

/// Plays what a [`Search`] finds, and keeps its tree from move to move.
pub(super) struct MctsAgent {
    search: Search,
}

impl MctsAgent {
    pub(super) fn new(backend: Arc<dyn Backend>, parameters: &Parameters) -> MctsAgent {
        MctsAgent {
            search: Search::new(backend, parameters),
        }
    }
}

impl Agent for MctsAgent {
    fn new_game(&mut self) {
        self.search.clear();
    }

    fn adjust(&mut self, parameters: &Parameters) {
        self.search.adjust(parameters);
    }

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        Ok(self.search.run(game, limits, control, report)?)
    }
}
