//! Typed settings of a user.

use crate::player;
use std::path::PathBuf;

/// The settings behind a session's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The player.
    pub player: player::Settings,
    /// Whether `bestmove` includes the reply to ponder on.
    pub ponder: bool,
    /// Whether castling is written as king takes rook.
    pub chess960: bool,
    /// Whether scores come with the probabilities of win, draw and loss.
    pub show_wdl: bool,
    /// Whether scores come with the expected length of the game.
    pub show_moves_left: bool,
    /// Whether every root move's statistics are reported before `bestmove`.
    pub verbose_move_stats: bool,
    /// The log of the dialogue.
    pub log_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            player: player::Settings::default(),
            ponder: true,
            chess960: false,
            show_wdl: false,
            show_moves_left: false,
            verbose_move_stats: false,
            log_file: None,
        }
    }
}
