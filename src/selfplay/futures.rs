//! Chooses moves by predicted futures instead of by a search.

use crate::backend::{Backend, BackendError, evaluate_with_futures};
use crate::chess::Game;
use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use shakmaty::Move;

/// Settings for choosing some moves by the network's predicted futures. The training targets are
/// still the results of searches, but in positions that the network itself reaches (DAgger, Ross et
/// al. 2011).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foresight {
    /// Share of the moves, in 0…1.
    pub share: f64,
    /// Number of denoising steps per move.
    pub steps: usize,
}

impl Foresight {
    /// Returns the network's move after the denoising steps: the likeliest move or, with
    /// `is_drawn`, a move sampled from the policy. Returns `None` if the search should choose this
    /// move.
    pub(super) fn choose(
        &self,
        backend: &dyn Backend,
        game: &Game,
        is_drawn: bool,
        random: &mut impl Rng,
    ) -> Result<Option<Move>, BackendError> {
        if !random.random_bool(self.share) {
            return Ok(None);
        }
        let (evaluated, _) = evaluate_with_futures(backend, [game], self.steps)?;
        let Some(evaluated) = evaluated.first() else {
            return Ok(None);
        };
        let policy = evaluated.policy(1.0);
        let likeliest = || {
            let places = (0..policy.len()).max_by(|&a, &b| policy[a].total_cmp(&policy[b]));
            places.unwrap_or_default()
        };
        let place = match WeightedIndex::new(&policy) {
            Ok(weights) if is_drawn => weights.sample(random),
            _ => likeliest(),
        };
        Ok(evaluated.moves.get(place).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::openings::generator;
    use std::collections::HashSet;

    #[test]
    fn a_share_of_the_moves_are_the_networks() {
        let (backend, game) = (Random::new(4), Game::default());
        let mut random = generator(1, 1);
        let mut ask = |share, is_drawn| {
            let foresight = Foresight { share, steps: 3 };
            let answers = (0..60).map(|_| {
                let chosen = foresight.choose(&backend, &game, is_drawn, &mut random);
                chosen.unwrap()
            });
            answers.collect::<Vec<Option<Move>>>()
        };
        assert_eq!(ask(0.0, false), vec![None; 60]);
        let best = ask(1.0, false);
        assert!(best[0].is_some() && best.iter().all(|mv| *mv == best[0]));
        let drawn: HashSet<_> = ask(1.0, true).into_iter().flatten().collect();
        assert!(drawn.len() > 3, "{drawn:?}");
        let half = ask(0.5, false).into_iter().flatten().count();
        assert!((15..45).contains(&half), "{half}");
    }
}
