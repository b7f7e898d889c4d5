//! Utility: a move's value, adjusted for draws and the length of the game.

use crate::search::parameters::Parameters;
use crate::search::tree::node::Statistics;

/// Computes the utility of the moves of a node, for the player to move there.
pub(crate) struct Utility<'a> {
    /// A draw's value for the player to move.
    draw: f32,
    length: Option<Length<'a>>,
}

/// Preference for winning sooner and losing later, after Lc0's moves-left utility.
struct Length<'a> {
    parameters: &'a Parameters,
    /// Plies to the end of the game, as predicted at the node.
    plies: f64,
}

impl<'a> Utility<'a> {
    /// Creates the utility at a node with value `own` (for the side that moved there). `own_turn`
    /// is whether the side to move there is also to move at the root; `has_length` is whether the
    /// backend predicts game lengths.
    #[inline]
    pub(crate) fn new(
        parameters: &'a Parameters,
        own: &Statistics,
        own_turn: bool,
        has_length: bool,
    ) -> Utility<'a> {
        let threshold = f64::from(parameters.moves_left_threshold);
        let matters =
            has_length && parameters.moves_left_max_effect > 0.0 && own.q.abs() > threshold;
        Utility {
            draw: match own_turn {
                true => parameters.draw_score,
                false => -parameters.draw_score,
            },
            length: matters.then_some(Length {
                parameters,
                plies: own.m,
            }),
        }
    }

    /// Returns whether the utility is the value alone.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.draw == 0.0 && self.length.is_none()
    }

    /// Returns the utility of a move to a position with these statistics for the side to move
    /// there.
    pub(crate) fn of(&self, child: &Statistics) -> f32 {
        let length = self.length.as_ref().map_or(0.0, |length| length.of(child));
        child.q as f32 + self.draw * child.d as f32 + length
    }

    /// Returns the node's own value for its player.
    #[inline]
    pub(crate) fn of_node(&self, own: &Statistics) -> f32 {
        -own.q as f32 + self.draw * own.d as f32
    }
}

impl Length<'_> {
    fn of(&self, child: &Statistics) -> f32 {
        let parameters = self.parameters;
        let longer = (child.m + 1.0 - self.plies) as f32;
        let most = parameters.moves_left_max_effect;
        let effect = (parameters.moves_left_slope * longer).clamp(-most, most);
        let q = child.q as f32;
        let threshold = parameters.moves_left_threshold;
        let certainty = ((q.abs() - threshold) / (1.0 - threshold).max(1e-3)).max(0.0);
        let factor = parameters.moves_left_constant
            + certainty
                * (parameters.moves_left_scaled + certainty * parameters.moves_left_quadratic);
        -effect * factor * q.signum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(q: f64, d: f64, m: f64) -> Statistics {
        Statistics { visits: 1, q, d, m }
    }

    #[test]
    fn the_winner_hurries_and_the_loser_does_not() {
        let parameters = Parameters {
            moves_left_max_effect: 0.0345,
            ..Parameters::default()
        };
        let utility = |own: f64, q: f64, m: f64| {
            let own = statistics(own, 0.0, 40.0);
            Utility::new(&parameters, &own, true, true).of(&statistics(q, 0.0, m))
        };
        assert!(utility(-0.95, 0.95, 20.0) > utility(-0.95, 0.95, 60.0));
        assert!(utility(0.95, -0.95, 20.0) < utility(0.95, -0.95, 60.0));
        // The length does not count while the game is open, and never counts for much.
        assert_eq!(utility(-0.5, 0.95, 20.0), 0.95);
        let most = parameters.moves_left_max_effect;
        assert!((utility(-1.0, 1.0, 0.0) - (1.0 + most)).abs() < 1e-5);
        assert!((utility(-1.0, 1.0, 500.0) - (1.0 - most)).abs() < 1e-5);
    }

    #[test]
    fn draws_have_their_price() {
        let parameters = Parameters {
            draw_score: -0.2,
            ..Parameters::default()
        };
        let own = statistics(0.0, 1.0, 0.0);
        let drawn = statistics(0.0, 0.5, 0.0);
        let utility = |turn| Utility::new(&parameters, &own, turn, false);
        assert_eq!(utility(true).of(&drawn), -0.1);
        assert_eq!(utility(false).of(&drawn), 0.1);
        assert_eq!(utility(true).of_node(&own), -0.2);
        assert!(!utility(true).is_plain());
        let plain = Utility::new(&Parameters::default(), &own, true, true).is_plain();
        assert!(plain);
    }
}
