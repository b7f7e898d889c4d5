//! The gate: a match that a new network must not lose.

use super::arena::{Arena, Score};
use super::config::{CycleConfig, GateConfig, openings};
use super::context::WorkerContext;
use super::error::CycleError;
use super::networks::Networks;
use super::shard_uploader::put_any;
use super::sprt::Sprt;
use crate::backend::Backend;
use crate::store::{Generation, Generations, Name, Outcome};
use std::sync::Arc;

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
            context.tolerate(generations.look(context.store))?;
            let number = generations.next_number();
            if self.config.generations.is_some_and(|last| number > last) {
                return Ok(());
            }
            let Some(pairing) = context.tolerate(self.next(context, &generations))? else {
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
                    false => "rejected",
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
        let gate = self.gate;
        let openings = openings(&gate.openings, gate.random_plies, candidate.number)?;
        let search = &self.config.search;
        let arena = Arena::new(
            networks.clone(),
            search,
            openings,
            gate.visits,
            gate.max_plies,
        )?;
        let sprt = gate.sprt();
        let is_decided = |pairs: &[u64; 5]| sprt.decision(sprt.llr(pairs)).is_some();
        let pairs = (gate.games / 2).max(1);
        let score = arena.play(pairs, is_decided, &|| context.is_stopped())?;
        Ok(score.map(|score| outcome(&score, &sprt, *opponent)))
    }
}

/// Returns the outcome of a match against the generation `opponent`.
fn outcome(score: &Score, sprt: &Sprt, opponent: u64) -> Outcome {
    let [wins, draws, losses] = score.games;
    let llr = sprt.llr(&score.pairs);
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

/// The players of a match.
struct Pairing {
    candidate: Generation,
    /// The opponent's generation number.
    opponent: u64,
    /// The networks of the candidate and its opponent.
    networks: [Arc<dyn Backend>; 2],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use std::sync::atomic::Ordering::Relaxed;
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
        let context = WorkerContext::of(&store);
        std::thread::scope(|scope| {
            let judging = scope.spawn(|| gate.run(&context));
            // Long enough for the gate to give up, if it would.
            std::thread::sleep(Duration::from_millis(100));
            assert!(!judging.is_finished());
            context.stop.store(true, Relaxed);
            judging.join().unwrap().unwrap();
        });
    }
}
