//! A user's typed settings.

use crate::play::ScoreType;
use crate::player::PlayerSettings;
use std::path::PathBuf;

/// The settings behind a session's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The player.
    pub player: PlayerSettings,
    /// Whether `bestmove` includes the reply to ponder on.
    pub ponder: bool,
    /// Whether castling is written as the king taking its rook.
    pub chess960: bool,
    /// The unit of scores.
    pub score_type: ScoreType,
    /// Whether scores include the probabilities of win, draw and loss.
    pub show_wdl: bool,
    /// Whether scores include the expected length of the game.
    pub show_moves_left: bool,
    /// Whether the statistics of every root move are reported before `bestmove`.
    pub verbose_move_stats: bool,
    /// The log file of the communication with the client.
    pub log_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            player: PlayerSettings::default(),
            ponder: true,
            chess960: false,
            score_type: ScoreType::default(),
            show_wdl: false,
            show_moves_left: false,
            verbose_move_stats: false,
            log_file: None,
        }
    }
}
