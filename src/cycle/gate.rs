//! The gate: a match that a new network must not lose.

use super::config::{CycleConfig, GateConfig, openings};
use super::context::{WorkerContext, tolerate};
use super::error::CycleError;
use super::networks::Networks;
use super::shard_uploader::put_any;
use super::sprt::Sprt;
use crate::adjudication::result;
use crate::backend::Backend;
use crate::chess::Game;
use crate::data::sample::Wdl;
use crate::openings::Openings;
use crate::play::{Control, Limits};
use crate::scoped_threads::{SetAtEnd, side_by_side};
use crate::search::{Parameters, Search};
use crate::store::{Generation, Generations, Name, Outcome};
use parking_lot::Mutex;
use shakmaty::{Color, Position};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The worker that judges candidates.
pub struct Gate<'a> {
    /// The loop's configuration.
    pub config: &'a CycleConfig,
    /// The match settings.
    pub gate: &'a GateConfig,
}

impl Gate<'_> {
    /// Judges candidates in order until stopped, or until the loop's last generation has been
    /// judged.
    ///
    /// # Errors
    /// [`CycleError`]; outcomes that have been written are kept.
    pub fn run(&self, context: &WorkerContext) -> Result<(), CycleError> {
        let mut generations = Generations::default();
        loop {
            tolerate(generations.look(context.store))?;
            let number = generations.next_number();
            if self.config.generations.is_some_and(|last| number > last) {
                return Ok(());
            }
            let Some(pairing) = tolerate(self.next(context, &generations))? else {
                match context.wait(self.config.poll) {
                    true => continue,
                    false => return Ok(()),
                }
            };
            let Some(outcome) = self.judge(context, &pairing)? else {
                return Ok(());
            };
            (context.tell)(&format!(
                "generation {number}: {} wins, {} draws, {} losses against generation {}: {:+.0} \
                 Elo, {}",
                outcome.wins,
                outcome.draws,
                outcome.losses,
                outcome.opponent,
                outcome.elo(),
                match outcome.is_accepted {
                    true => "accepted",
                    false => "turned away",
                }
            ));
            let judged = Generation {
                gate: Some(outcome),
                ..pairing.candidate
            };
            // Another gate may have finished earlier.
            put_any(context.store, &Name::generation(number), &judged.to_json())?;
        }
    }

    /// Returns the next candidate and its opponent, or `None` if no candidate is waiting.
    fn next(
        &self,
        context: &WorkerContext,
        generations: &Generations,
    ) -> Result<Option<Pairing>, CycleError> {
        let number = generations.next_number();
        let candidate = context.store.manifest(&Name::candidate(number), number)?;
        let Some((candidate, opponent)) = candidate.zip(generations.accepted()) else {
            return Ok(None);
        };
        let networks = Networks::new(context.store, &self.config.search, context.threads);
        Ok(Some(Pairing {
            networks: [networks.load(&candidate)?, networks.load(opponent)?],
            opponent: opponent.number,
            candidate,
        }))
    }

    /// Plays a match and returns its outcome, or `None` if it was stopped before its end.
    fn judge(
        &self,
        context: &WorkerContext,
        pairing: &Pairing,
    ) -> Result<Option<Outcome>, CycleError> {
        let Pairing {
            candidate,
            opponent,
            networks,
        } = pairing;
        let search = &self.config.search;
        let properties = networks[0].properties();
        let usual = properties.recommended_batch * properties.recommended_threads;
        let at_once = search.concurrency.unwrap_or(usual) / 2;
        let parameters = Parameters {
            threads: 1,
            noise_epsilon: 0.0,
            gumbel_moves: 0,
            ..search.parameters()?
        };
        let arena = Arena {
            backends: networks.clone(),
            openings: openings(
                &self.gate.openings,
                self.gate.random_plies,
                candidate.number,
            )?,
            parameters,
            gate: self.gate,
        };
        let pairs = (self.gate.games / 2).max(1);
        let at_once = at_once.clamp(1, pairs as usize);
        let score = arena.play(pairs, at_once, &|| context.is_stopped())?;
        Ok(score.map(|score| score.outcome(&self.gate.sprt(), *opponent)))
    }
}

/// The players of a match.
struct Pairing {
    candidate: Generation,
    /// The opponent's generation number.
    opponent: u64,
    /// The networks of the candidate and its opponent.
    networks: [Arc<dyn Backend>; 2],
}

/// The score of a match so far, from the perspective of the candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Score {
    /// Wins, draws and losses.
    games: [u64; 3],
    /// Numbers of pairs in which the candidate scored 0, ½, 1, 1½ and 2 points.
    pairs: [u64; 5],
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

    fn outcome(&self, sprt: &Sprt, opponent: u64) -> Outcome {
        let [wins, draws, losses] = self.games;
        let llr = sprt.llr(&self.pairs);
        Outcome {
            // If the test is undecided, the likelier hypothesis wins.
            is_accepted: sprt.decision(llr).unwrap_or(llr > 0.0),
            opponent,
            wins,
            draws,
            losses,
            llr,
        }
    }
}

/// Two networks that play against each other.
struct Arena<'a> {
    backends: [Arc<dyn Backend>; 2],
    openings: Openings,
    parameters: Parameters,
    gate: &'a GateConfig,
}

impl Arena<'_> {
    /// Plays pairs of games until the test is decided or the game limit is reached. Returns `None`
    /// if the match was stopped early.
    fn play(
        &self,
        pairs: u64,
        at_once: usize,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Score>, CycleError> {
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let score = Mutex::new(Score::default());
        let sprt = self.gate.sprt();
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
                if sprt.decision(sprt.llr(&score.pairs)).is_some() {
                    is_over.store(true, Relaxed);
                }
            }
            Ok(())
        };
        side_by_side(vec![work; at_once])?;
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
        let limits = Limits {
            nodes: Some(self.gate.visits),
            ..Limits::default()
        };
        for player in players.iter_mut() {
            player.clear();
        }
        loop {
            if let Some(result) = result(&game) {
                return Ok(Some(result));
            }
            if game.plies().len() > self.gate.max_plies {
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
    use crate::store::Store;
    use std::time::Duration;

    #[test]
    fn a_candidate_out_of_reach_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let first = Generation {
            sha256: "0".repeat(64),
            ..Generation::unfinished(0)
        };
        store.put(&Name::generation(0), &first.to_json()).unwrap();
        // A folder takes the place of the candidate's manifest, so reading it fails.
        let candidate = store.path(&Name::candidate(1));
        std::fs::create_dir_all(&candidate).unwrap();
        let config = r#"
            store = "store"
            folder = "loop"
            poll = 0.01
            gate = {}
            learner = {}
            training = {}
        "#;
        let config: CycleConfig = toml::from_str(config).unwrap();
        let gate = Gate {
            gate: config.gate.as_ref().unwrap(),
            config: &config,
        };
        let context = WorkerContext {
            store: &store,
            name: "gate".parse().unwrap(),
            threads: 1,
            stop: Arc::default(),
            tell: &|_| {},
        };
        std::thread::scope(|scope| {
            let judging = scope.spawn(|| gate.run(&context));
            // Long enough for the gate to give up, if it would.
            std::thread::sleep(Duration::from_millis(100));
            assert!(!judging.is_finished());
            context.stop.store(true, Relaxed);
            judging.join().unwrap().unwrap();
        });
    }

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
        let gate = GateConfig {
            visits: 8,
            max_plies: 40,
            ..GateConfig::default()
        };
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
            gate: &gate,
        };
        let score = arena.play(6, 2, &|| false).unwrap().unwrap();
        // Both games of a pair are identical.
        assert_eq!(score.pairs, [0, 0, 6, 0, 0]);
        assert!(arena.play(6, 2, &|| true).unwrap().is_none());
    }
}
