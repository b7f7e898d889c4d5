//! Chooses the root move to play by a lower confidence bound on its value.
//!
//! Visits lag behind values: a move that has become better than the most-visited one may not have
//! caught up in visits yet. Among the moves with enough visits, the one with the highest lower
//! confidence bound is therefore played (KataGo: useLcbForSelection).

use super::descent::utility::Utility;
use super::parameters::Parameters;
use super::shared::Shared;
use super::tree::header::{NodeHeader, Outcome};
use super::tree::move_order::{Snapshot, visited};
use super::tree::node::Statistics;

/// The data by which a root move is judged: the node's header with its proven outcome, and the
/// move's visits and value for the side to move at the root.
pub(crate) type Judged<'a> = (NodeHeader, &'a Statistics);

/// The selection rule at one root.
pub(crate) struct Surest<'a> {
    parameters: &'a Parameters,
    utility: Utility,
}

impl<'a> Surest<'a> {
    pub(crate) fn new(shared: &Shared<'a>) -> Surest<'a> {
        Surest {
            parameters: shared.parameters,
            utility: Utility::new(shared.parameters, true),
        }
    }

    /// Returns the index of the move to play. `moves` must be in order of visits, except that
    /// winning moves come first; a winning move is always chosen.
    pub(crate) fn place<'m>(&self, moves: impl Iterator<Item = Judged<'m>> + Clone) -> usize {
        let Some(first) = moves.clone().next().filter(|&first| is_open(first)) else {
            return 0;
        };
        if self.parameters.lcb_scale <= 0.0 || first.1.visits == 0 {
            return 0;
        }
        let mut best = (0, f32::NEG_INFINITY);
        for (place, judged) in moves.enumerate() {
            // If bounds are equal, the first move wins.
            let bound = self.bound(judged, 0.0);
            if self.may_be_played(judged, first, 0.0) && bound > best.1 {
                best = (place, bound);
            }
        }
        best.0
    }

    /// Returns whether a move other than `chosen` would be played if it received `more` visits and
    /// kept its value.
    pub(crate) fn may_change<'m>(
        &self,
        moves: impl Iterator<Item = Judged<'m>> + Clone,
        chosen: usize,
        more: f32,
    ) -> bool {
        let (Some(first), Some(kept)) = (moves.clone().next(), moves.clone().nth(chosen)) else {
            return false;
        };
        let bound = self.bound(kept, 0.0);
        let surer =
            |judged| self.may_be_played(judged, first, more) && self.bound(judged, more) > bound;
        self.parameters.lcb_scale > 0.0
            && is_open(first)
            && (moves.enumerate()).any(|(place, judged)| place != chosen && surer(judged))
    }

    fn may_be_played(&self, judged: Judged<'_>, first: Judged<'_>, more: f32) -> bool {
        let enough = (first.1.visits as f32 * self.parameters.lcb_visits).max(1.0);
        is_open(judged) && judged.1.visits as f32 + more >= enough
    }

    /// Returns the lower confidence bound of the move's value after `more` visits.
    fn bound(&self, (header, statistics): Judged<'_>, more: f32) -> f32 {
        let doubt = match header.outcome() {
            // A proven draw has no uncertainty.
            Outcome::Draw => 0.0,
            _ => self.parameters.lcb_scale / (statistics.visits as f32 + more).sqrt(),
        };
        self.utility.of(statistics) - doubt
    }
}

/// Returns whether the move is proven neither to win nor to lose.
fn is_open((header, _): Judged<'_>) -> bool {
    !matches!(header.outcome(), Outcome::Win | Outcome::Loss)
}

/// The visited or proven root moves, in the form that time management needs.
pub(crate) struct RootChoice<'a> {
    surest: Surest<'a>,
    moves: Vec<Snapshot<'a>>,
    chosen: usize,
}

impl<'a> RootChoice<'a> {
    /// Returns the choice, or `None` if no root move has been visited or proven yet.
    pub(crate) fn of(shared: &Shared<'a>) -> Option<RootChoice<'a>> {
        let moves = visited(shared.tree, shared.tree.root().header());
        let surest = Surest::new(shared);
        let chosen = surest.place(moves.iter().map(judged));
        (!moves.is_empty()).then_some(RootChoice {
            surest,
            moves,
            chosen,
        })
    }

    /// Returns the move that would be played now.
    pub(crate) fn chosen(&self) -> &Snapshot<'a> {
        &self.moves[self.chosen]
    }

    /// Returns the chosen move's lead in visits over the other candidates, or 0 if it does not
    /// lead.
    pub(crate) fn lead(&self) -> u32 {
        let others = self.moves.iter().enumerate();
        let others = others.filter(|&(place, of)| place != self.chosen && is_open(judged(of)));
        let most = others.map(|(_, of)| of.statistics.visits).max();
        let own = self.chosen().statistics.visits;
        own.saturating_sub(most.unwrap_or(0))
    }

    /// Returns whether another move would be played if it received `more` visits and kept its
    /// value.
    pub(crate) fn may_change(&self, more: f32) -> bool {
        let moves = self.moves.iter().map(judged);
        self.surest.may_change(moves, self.chosen, more)
    }
}

fn judged<'m>(of: &'m Snapshot<'_>) -> Judged<'m> {
    (of.header, &of.statistics)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `ask` with the selection rule for this scale and draw score, and with moves that have
    /// these outcomes, visits and values. Moves with value 0 are draws.
    fn with<T>(
        (scale, draw_score): (f32, f32),
        moves: &[(Outcome, u32, f64)],
        ask: impl Fn(&Surest<'_>, &[(NodeHeader, Statistics)]) -> T,
    ) -> T {
        let parameters = Parameters {
            lcb_scale: scale,
            lcb_visits: 0.3,
            draw_score,
            ..Parameters::default()
        };
        let moves = moves.iter().map(|&(outcome, visits, q)| {
            let statistics = Statistics {
                visits,
                q,
                d: f64::from(u8::from(q == 0.0)),
                ..Statistics::default()
            };
            (NodeHeader::default().with_outcome(outcome, 1), statistics)
        });
        let surest = Surest {
            parameters: &parameters,
            utility: Utility::new(&parameters, true),
        };
        ask(&surest, &moves.collect::<Vec<_>>())
    }

    fn judged(moves: &[(NodeHeader, Statistics)]) -> impl Iterator<Item = Judged<'_>> + Clone {
        moves
            .iter()
            .map(|(header, statistics)| (*header, statistics))
    }

    fn place(scale: f32, moves: &[(Outcome, u32, f64)]) -> usize {
        with((scale, 0.0), moves, |surest, moves| {
            surest.place(judged(moves))
        })
    }

    #[test]
    fn the_surest_value_is_played() {
        use Outcome::{Draw, Loss, Unknown, Win};
        let moves = [
            (Unknown, 100, 0.10),
            (Unknown, 64, 0.15),
            (Unknown, 36, 0.20),
            (Unknown, 20, 0.90),
        ];
        // The bounds are 0.05, 0.0875 and 0.1167; the last move has too few visits.
        assert_eq!(place(0.5, &moves), 2);
        assert_eq!(place(3.0, &moves), 0);
        assert_eq!(place(0.0, &moves), 0);
        // A draw is certain, wins come first, and losing moves are not considered.
        let drawn = [(Unknown, 100, 0.04), (Draw, 40, 0.0), (Unknown, 90, 0.02)];
        assert_eq!(place(0.5, &drawn), 1);
        // With a negative draw score, the draw is avoided.
        let avoided = with((0.5, -0.2), &drawn, |surest, moves| {
            surest.place(judged(moves))
        });
        assert_eq!(avoided, 0);
        let won = [(Loss, 1, 1.0), (Unknown, 100, 0.1), (Unknown, 90, 0.4)];
        assert_eq!(place(0.5, &won), 0);
        let lost = [(Unknown, 100, -0.9), (Win, 90, -1.0), (Win, 80, -1.0)];
        assert_eq!(place(0.5, &lost), 0);
        // Without visits, or with equal bounds, the first move is chosen.
        assert_eq!(place(0.5, &[(Unknown, 0, 0.0), (Unknown, 0, 0.5)]), 0);
        assert_eq!(place(0.5, &[(Unknown, 9, 0.2), (Unknown, 9, 0.2)]), 0);
        assert_eq!(place(0.5, &[]), 0);
    }

    #[test]
    fn a_choice_may_change_while_another_move_can_become_the_surest() {
        use Outcome::{Loss, Unknown};
        let may_change = |scale, moves: &[(Outcome, u32, f64)], more| {
            with((scale, 0.0), moves, |surest, moves| {
                surest.may_change(judged(moves), 0, more)
            })
        };
        // The second move has the higher bound, but needs 240 visits (0.3 × 800) to be considered.
        let close = [(Unknown, 800, 0.1), (Unknown, 230, 0.2)];
        assert!(!may_change(0.5, &close, 5.0));
        assert!(may_change(0.5, &close, 15.0));
        assert!(!may_change(0.0, &close, 15.0));
        // A worse move is not chosen merely because it gets more visits.
        let far = [(Unknown, 800, 0.1), (Unknown, 230, 0.05)];
        assert!(!may_change(0.5, &far, 1e6));
        let won = [(Loss, 1, 1.0), (Unknown, 230, 0.2)];
        assert!(!may_change(0.5, &won, 1e6));
        assert!(!may_change(0.5, &[], 1e6));
    }
}
