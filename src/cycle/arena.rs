//! Matches between two networks.

use super::config::SearchConfig;
use super::error::CycleError;
use crate::adjudication::result;
use crate::backend::Backend;
use crate::chess::Game;
use crate::data::sample::Wdl;
use crate::openings::Openings;
use crate::play::{Control, Limits};
use crate::scoped_threads::{SetAtEnd, side_by_side};
use crate::search::{Parameters, Search};
use parking_lot::Mutex;
use shakmaty::{Color, Position};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The score of a match so far, from the perspective of the first network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    /// Wins, draws and losses.
    pub games: [u64; 3],
    /// Numbers of pairs in which the first network scored 0, ½, 1, 1½ and 2 points.
    pub pairs: [u64; 5],
}

impl Score {
    fn add(&mut self, pair: [Wdl; 2]) {
        let mut half_points = 0;
        for result in pair {
            let place = match result {
                Wdl::Win => 0,
                Wdl::Draw => 1,
                Wdl::Loss => 2,
            };
            self.games[place] += 1;
            half_points += 2 - place;
        }
        self.pairs[half_points] += 1;
    }
}

/// Two networks that play against each other.
pub(super) struct Arena {
    backends: [Arc<dyn Backend>; 2],
    openings: Openings,
    parameters: Parameters,
    /// Number of root visits per move.
    visits: u64,
    /// Number of plies after which a game counts as drawn.
    max_plies: usize,
    /// Number of concurrent games.
    at_once: usize,
}

impl Arena {
    /// Returns an arena with these openings.
    ///
    /// # Errors
    /// [`CycleError`] if a search option is invalid.
    pub fn new(
        backends: [Arc<dyn Backend>; 2],
        search: &SearchConfig,
        openings: Openings,
        visits: u64,
        max_plies: usize,
    ) -> Result<Arena, CycleError> {
        let properties = backends[0].properties();
        let usual = properties.recommended_batch * properties.recommended_threads;
        Ok(Arena {
            at_once: search.concurrency.unwrap_or(usual) / 2,
            parameters: Parameters {
                threads: 1,
                noise_epsilon: 0.0,
                gumbel_moves: 0,
                ..search.parameters()?
            },
            backends,
            openings,
            visits,
            max_plies,
        })
    }

    /// Plays pairs of games until there are `pairs` of them, or `is_decided` returns true for the
    /// numbers of pairs by points. Returns `None` if the match was stopped early.
    ///
    /// # Errors
    /// [`CycleError`] if a network or an opening fails.
    pub fn play(
        &self,
        pairs: u64,
        is_decided: impl Fn(&[u64; 5]) -> bool + Sync,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Score>, CycleError> {
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let score = Mutex::new(Score::default());
        let work = || -> Result<(), CycleError> {
            // When a thread fails or finds no more pairs, the others start no new pairs.
            let _end = SetAtEnd(&is_over);
            let mut players = [0, 1]
                .map(|side: usize| Search::new(Arc::clone(&self.backends[side]), &self.parameters));
            while !is_over.load(Relaxed) && !stopped() {
                let number = next.fetch_add(1, Relaxed);
                if number >= pairs {
                    break;
                }
                let Some(pair) = self.pair(number, &mut players, stopped)? else {
                    break;
                };
                let score = &mut *score.lock();
                score.add(pair);
                if is_decided(&score.pairs) {
                    is_over.store(true, Relaxed);
                }
            }
            Ok(())
        };
        side_by_side(vec![work; self.at_once.clamp(1, pairs as usize)])?;
        Ok((!stopped()).then(|| score.into_inner()))
    }

    /// Plays an opening twice and returns the results for the first side, which plays White in one
    /// game and Black in the other.
    fn pair(
        &self,
        number: u64,
        players: &mut [Search; 2],
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<[Wdl; 2]>, CycleError> {
        let opening = self.openings.game(number)?;
        let mut results = [Wdl::Draw; 2];
        for (own, outcome) in [Color::White, Color::Black].into_iter().zip(&mut results) {
            let Some(for_white) = self.game(opening.clone(), own, players, stopped)? else {
                return Ok(None);
            };
            *outcome = for_white.seen_by(own);
        }
        Ok(Some(results))
    }

    /// Plays a game and returns its result for White. The first player has the colour `own`.
    fn game(
        &self,
        mut game: Game,
        own: Color,
        players: &mut [Search; 2],
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Wdl>, CycleError> {
        let limits = Limits::of_nodes(self.visits);
        for player in players.iter_mut() {
            player.clear();
        }
        loop {
            if let Some(result) = result(&game) {
                return Ok(Some(result));
            }
            if game.plies().len() > self.max_plies {
                return Ok(Some(Wdl::Draw));
            }
            if stopped() {
                return Ok(None);
            }
            let player = &mut players[usize::from(game.position().turn() != own)];
            let choice = player.run(&game, &limits, &Control::default(), &mut |_| {})?;
            let Some(best) = choice.best else {
                return Ok(Some(Wdl::Draw));
            };
            game.play(best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::cycle::config::openings;

    #[test]
    fn pairs_are_counted_by_their_points() {
        let mut score = Score::default();
        score.add([Wdl::Win, Wdl::Win]);
        score.add([Wdl::Win, Wdl::Draw]);
        score.add([Wdl::Loss, Wdl::Win]);
        score.add([Wdl::Loss, Wdl::Loss]);
        assert_eq!((score.games, score.pairs), ([4, 1, 3], [1, 0, 1, 1, 1]));
    }

    #[test]
    fn a_network_is_even_with_itself() {
        let backend: Arc<dyn Backend> = Arc::new(Random::new(3));
        let arena = Arena {
            backends: [backend.clone(), backend],
            openings: openings(&[], None, 1).unwrap(),
            parameters: Parameters {
                threads: 1,
                hash: 1,
                mate_search: false,
                ..Parameters::default()
            },
            visits: 8,
            max_plies: 40,
            at_once: 2,
        };
        let score = arena.play(6, |_| false, &|| false).unwrap().unwrap();
        // Both games of a pair are identical.
        assert_eq!(score.pairs, [0, 0, 6, 0, 0]);
        // Two threads may finish one more pair each after the decision.
        let decided = arena.play(60, |pairs| pairs[2] > 1, &|| false);
        assert!((2..=4).contains(&decided.unwrap().unwrap().pairs[2]));
        assert!(arena.play(6, |_| false, &|| true).unwrap().is_none());
    }
}
