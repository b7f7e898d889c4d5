//! Positions that are excluded from training: those of test sets, and those in games of the
//! validation share.

use std::collections::HashSet;

use super::record::Record;
use super::replay::{ReplayError, walk};

/// Returns whether a game with this hash ([`Record::hash`]) is in the held-out `share` of all
/// games. With the share `data.validation`, these are the validation games, which training never
/// uses. The games of a smaller share are a subset of those of a larger share.
pub fn is_held_out(game: u64, share: f64) -> bool {
    game as f64 / 2f64.powi(64) < share || share >= 1.0
}

/// A set of held-out positions.
#[derive(Clone, Debug, Default)]
pub struct HeldOut {
    keys: HashSet<u64>,
}

impl HeldOut {
    /// Returns whether a game contains one of the positions, in its main line or in a variation.
    ///
    /// # Errors
    /// [`ReplayError`] if the record does not describe a game.
    pub fn contains_any_of(&self, record: &Record) -> Result<bool, ReplayError> {
        if self.keys.is_empty() {
            return Ok(false);
        }
        let places = record.places()?;
        let mut is_found = false;
        walk(
            record,
            |_| true,
            |node| places[node].ply,
            |step| {
                is_found |= self.keys.contains(&step.game.current().key);
                Ok(())
            },
        )?;
        Ok(is_found)
    }
}

/// Collects the keys of positions ([`crate::chess::Ply::key`]).
impl FromIterator<u64> for HeldOut {
    fn from_iter<I: IntoIterator<Item = u64>>(keys: I) -> HeldOut {
        HeldOut {
            keys: keys.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::data::pgn::parse_game;

    #[test]
    fn a_position_is_found_on_the_line_and_in_variations_where_a_move_is_played() {
        let record = parse_game(b"1. e4 e5 (1... c5 2. Nf3) 2. Nf3 *").unwrap();
        let after = |moves: &str| {
            let mut game = Game::default();
            for mv in moves.split_whitespace() {
                let mv = game.parse_move(mv).unwrap();
                game.play(mv);
            }
            game.current().key
        };
        let is_found = |keys: &[u64]| {
            let held_out: HeldOut = keys.iter().copied().collect();
            held_out.contains_any_of(&record).unwrap()
        };
        assert!(is_found(&[after("")]));
        assert!(is_found(&[after("e2e4")]));
        assert!(is_found(&[after("e2e4 c7c5")]));
        assert!(is_found(&[after("d2d4"), after("e2e4 e7e5")]));
        assert!(!is_found(&[after("e2e4 e7e5 g1f3"), after("d2d4")]));
        assert!(!is_found(&[]));
    }
}
