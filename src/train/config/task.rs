//! Determines a run's task, and the keys that apply only to some tasks.

use super::{ConfigError, DiffusionTraining, TrainConfig, UnrollConfig};
use crate::network::ArchitectureConfig;

/// The kind of objective, which depends on the network's family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::train) enum Task {
    /// Evaluating positions.
    Positions,
    /// Continuing games.
    Games,
    /// Predicting the future.
    Horizon,
    /// Unrolling games in imagination.
    Unroll,
}

impl Task {
    /// Returns the task for an architecture.
    pub fn of(architecture: &ArchitectureConfig) -> Task {
        match architecture {
            ArchitectureConfig::Gpt { .. } => Task::Games,
            ArchitectureConfig::Diffusion { .. } => Task::Horizon,
            ArchitectureConfig::World { .. } => Task::Unroll,
            ArchitectureConfig::Chessformer { .. }
            | ArchitectureConfig::Lc0 { .. }
            | ArchitectureConfig::Maia3 { .. } => Task::Positions,
            #[cfg(test)]
            ArchitectureConfig::Toy { .. } => Task::Positions,
        }
    }
}

impl TrainConfig {
    /// Rejects keys that do not apply to the network being trained. Only training needs this check,
    /// because validation reads none of these keys.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub(in crate::train) fn check_keys(&self) -> Result<(), ConfigError> {
        use ArchitectureConfig::{Diffusion, Gpt};
        const POSITIONS: &str = "is for networks that read positions";
        const ALONE: &str = "is for networks that read positions alone";
        const GAMES: &str = "is for networks that read whole games";
        const FUTURES: &str = "is for networks that imagine the future";
        const WORLDS: &str = "is for world models";
        const CANDIDATES: &str =
            "is for networks that weigh candidates: `weighs = true` in the model";
        const BOARD: &str = "needs `network.model.board = true`";
        let architecture = self.architecture()?;
        let task = Task::of(&architecture);
        let TrainConfig { augment, loss, .. } = self;
        let (is_mirrored, is_taught) = (augment.mirror > 0.0, self.distillation.is_some());
        let knows_no_mirror = matches!(task, Task::Games | Task::Unroll);
        let of_games = |value: f64| value > 0.0 && task != Task::Games;
        let lacks_board = matches!(&architecture, Gpt { model } if !model.board);
        let weighs_none = matches!(&architecture, Diffusion { model } if !model.weighs);
        let is_told = self.diffusion.told > 0.0;
        let imagines = self.diffusion != DiffusionTraining::default();
        let follows = self.unroll != UnrollConfig::default();
        let keys = [
            ("augment.mirror", is_mirrored && knows_no_mirror, POSITIONS),
            (
                "augment.mirror",
                is_mirrored && task == Task::Horizon,
                ALONE,
            ),
            ("distillation", is_taught && knows_no_mirror, POSITIONS),
            (
                "augment.hide_ratings",
                of_games(augment.hide_ratings),
                GAMES,
            ),
            ("augment.hide_result", of_games(augment.hide_result), GAMES),
            (
                "augment.random_moves",
                of_games(augment.random_moves),
                GAMES,
            ),
            ("loss.legality", of_games(loss.legality), GAMES),
            ("loss.board", of_games(loss.board), GAMES),
            ("loss.board", loss.board > 0.0 && lacks_board, BOARD),
            ("diffusion.told", is_told && weighs_none, CANDIDATES),
            ("diffusion", imagines && task != Task::Horizon, FUTURES),
            ("unroll", follows && task != Task::Unroll, WORLDS),
        ];
        match keys.into_iter().find(|(_, is_refused, _)| *is_refused) {
            Some((key, _, reason)) => Err(ConfigError::Key {
                key: key.to_owned(),
                reason: reason.to_owned(),
            }),
            None => Ok(()),
        }
    }
}
