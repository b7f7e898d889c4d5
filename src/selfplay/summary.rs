//! Counts the games of self-play.

use super::game::{MIGHT_RESIGN, Termination};
use crate::data::pgn::tag;
use serde::Serialize;

/// Counts of games, including those from earlier sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelfPlaySummary {
    /// Number of games.
    pub games: u64,
    /// Number of these games that were finished in earlier sessions.
    pub found: u64,
    /// Number of moves that were searched.
    pub positions: u64,
    /// Games won by White.
    pub white: u64,
    /// Drawn games.
    pub draw: u64,
    /// Games won by Black.
    pub black: u64,
    /// Games that ended by resignation.
    pub resigned: u64,
    /// Games that ended by a tablebase.
    pub tablebase: u64,
    /// Games that were stopped at the maximum length.
    pub cut_off: u64,
    /// Number of games played without resignation in which a side would have resigned.
    pub would_resign: u64,
    /// Number of these games in which that side did not lose.
    pub wrongly: u64,
    /// Number of positions that the backend evaluated in this session.
    pub evaluations: u64,
}

impl SelfPlaySummary {
    /// Adds a game, reading its tags.
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

    /// Adds a game from an earlier session.
    pub(super) fn find(&mut self, game: &str) {
        self.found += 1;
        self.add(game);
    }
}
