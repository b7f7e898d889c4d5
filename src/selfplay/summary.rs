//! Counts over the games of self-play.

use super::game::{MIGHT_RESIGN, Termination};
use crate::data::pgn::tag;
use serde::Serialize;

/// Counts over games, those of earlier sessions included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelfPlaySummary {
    /// Number of games.
    pub games: u64,
    /// Of these, games that were finished in earlier sessions.
    pub found: u64,
    /// Moves that were searched.
    pub positions: u64,
    /// Won by White.
    pub white: u64,
    /// Drawn.
    pub draw: u64,
    /// Won by Black.
    pub black: u64,
    /// Ended by resignation.
    pub resigned: u64,
    /// Ended by a tablebase.
    pub tablebase: u64,
    /// Stopped at the maximum length.
    pub cut_off: u64,
    /// Games without resignation in which a side would have resigned.
    pub would_resign: u64,
    /// Of these, games that this side did not lose.
    pub wrongly: u64,
    /// Positions that the backend evaluated in this session.
    pub evaluations: u64,
}

impl SelfPlaySummary {
    /// Adds a game by its tags.
    pub(super) fn add(&mut self, game: &str) {
        self.games += 1;
        let count = tag(game, "Searched").and_then(|count| count.parse().ok());
        self.positions += count.unwrap_or(0);
        let result = tag(game, "Result").unwrap_or_default();
        let loser = match result.as_str() {
            "1-0" => {
                self.white += 1;
                Some("black")
            }
            "0-1" => {
                self.black += 1;
                Some("white")
            }
            _ => {
                self.draw += 1;
                None
            }
        };
        let termination = tag(game, "Termination");
        let is = |kind: Termination| u64::from(termination.as_deref() == Some(kind.name()));
        self.resigned += is(Termination::Resignation);
        self.tablebase += is(Termination::Tablebase);
        self.cut_off += is(Termination::Length);
        if let Some(side) = tag(game, MIGHT_RESIGN) {
            self.would_resign += 1;
            self.wrongly += u64::from(loser != Some(side.as_str()));
        }
    }

    /// Adds a game of an earlier session.
    pub(super) fn find(&mut self, game: &str) {
        self.found += 1;
        self.add(game);
    }
}
