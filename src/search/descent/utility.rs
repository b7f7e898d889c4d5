//! Utility: a move's value, adjusted for draws.

use crate::search::parameters::Parameters;
use crate::search::tree::node::Statistics;

/// Computes the utility of the moves of a node, for the player to move there.
pub(crate) struct Utility {
    /// A draw's value for the player to move.
    draw: f32,
}

impl Utility {
    /// Creates the utility at a node; `own_turn` is whether the side to move there is also to move
    /// at the root.
    #[inline]
    pub(crate) fn new(parameters: &Parameters, own_turn: bool) -> Utility {
        Utility {
            draw: if own_turn {
                parameters.draw_score
            } else {
                -parameters.draw_score
            },
        }
    }

    /// Returns whether the utility is the value alone.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.draw == 0.0
    }

    /// Returns the utility of a move to a position with these statistics for the side to move
    /// there.
    pub(crate) fn of(&self, child: &Statistics) -> f32 {
        child.q as f32 + self.draw * child.d as f32
    }

    /// Returns the node's own value for its player.
    #[inline]
    pub(crate) fn of_node(&self, own: &Statistics) -> f32 {
        -own.q as f32 + self.draw * own.d as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(q: f64, d: f64) -> Statistics {
        Statistics {
            visits: 1,
            q,
            d,
            ..Statistics::default()
        }
    }

    #[test]
    fn draws_have_their_price() {
        let parameters = Parameters {
            draw_score: -0.2,
            ..Parameters::default()
        };
        let own = statistics(0.0, 1.0);
        let drawn = statistics(0.0, 0.5);
        let utility = |turn| Utility::new(&parameters, turn);
        assert_eq!(utility(true).of(&drawn), -0.1);
        assert_eq!(utility(false).of(&drawn), 0.1);
        assert_eq!(utility(true).of_node(&own), -0.2);
        assert!(!utility(true).is_plain());
        assert!(Utility::new(&Parameters::default(), true).is_plain());
    }
}
