//! Concurrent searches of a game's positions.
//!
//! Workers take runs of consecutive positions from a queue. Each worker searches them in one tree:
//! a position inherits the visits below the move that led to it, and is searched with that many
//! fewer visits. The backend evaluates the leaves of all workers in common batches. If a move seems
//! to lose much, the positions before and after it are searched again with more visits, because
//! most apparent mistakes in a short search are the search's own.

use super::curve::{Evaluation, percent};
use crate::backend::Backend;
use crate::chess::Game;
use crate::encode::Encoder;
use crate::play::{AgentError, Choice, Control, Limits, MoveStatistics};
use crate::scoped_threads::side_by_side;
use crate::search::{Parameters, Search};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shakmaty::{Color, Move, Position};
use std::ops::Range;
use std::sync::Arc;

/// Number of concurrent searches per thread, so that their leaves fill the batches.
const SEARCHES_A_THREAD: usize = 2;
/// Number of consecutive positions that one worker searches.
const STRETCH: usize = 10;
/// Memory of a worker's tree, in MiB.
const HASH: usize = 32;
/// Maximum number of moves of a line that are kept, unless it mates.
const LINE: usize = 12;
/// Minimum visits at which the value of a move that was not chosen is meaningful.
const SEEN: u64 = 4;

/// The score of a position and the moves that lead to it, for the side to move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The best line, in UCI notation; never empty.
    pub line: Vec<String>,
    /// The line's score.
    pub evaluation: Evaluation,
    /// The score of the best other move that was searched.
    pub second: Option<Evaluation>,
}

impl Searched {
    fn of(game: &Game, choice: &Choice) -> Option<Searched> {
        let line = choice.report.lines.first()?;
        let evaluation = Evaluation::from(line.score);
        let kept = match evaluation {
            Evaluation::Mate(_) => line.moves.len(),
            Evaluation::Centipawns(_) => LINE,
        };
        let best = line.moves.first();
        let is_other = |of: &&MoveStatistics| {
            let is_proven =
                Evaluation::from(of.score) != Evaluation::from(crate::play::Score::Expected(of.q));
            Some(&of.mv) != best && (of.visits >= SEEN || is_proven)
        };
        let others = choice.statistics.iter().filter(is_other);
        let second = others.map(|of| Evaluation::from(of.score));
        let second = second.max_by(|a, b| a.chances().total_cmp(&b.chances()));
        let moves = line.moves.iter().take(kept);
        Some(Searched {
            line: moves.map(|&mv| game.format_move(mv)).collect(),
            evaluation,
            second,
        })
    }

    /// Returns White's score, and White's expected score in percent; `turn` is the side to move.
    pub fn for_white(&self, turn: Color) -> (Evaluation, f64) {
        let evaluation = turn.fold_wb(self.evaluation, self.evaluation.reversed());
        let chances = self.evaluation.chances();
        (evaluation, percent(turn.fold_wb(chances, -chances)))
    }

    /// Returns the moves of the line; `game` is the game in which it begins.
    pub fn moves(&self, game: &Game) -> Vec<Move> {
        let mut game = game.clone();
        let mut moves = Vec::new();
        for text in &self.line {
            let Ok(mv) = game.parse_move(text) else { break };
            moves.push(mv);
            game.play(mv);
        }
        moves
    }
}

/// A position that has just been searched.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The number of plies played before it.
    pub place: usize,
    /// The results for the position.
    pub searched: &'a Searched,
    /// The number of nodes that Tessera's search added to its tree.
    pub nodes: u64,
}

/// Searches the positions of games.
pub struct Analyst {
    /// The backend, which many threads use concurrently.
    pub backend: Arc<dyn Backend>,
    /// Number of visits per position.
    pub nodes: u64,
    /// Number of concurrent searches, at least 1.
    pub workers: usize,
    /// Stops the searches. Positions that are not finished by then have no results.
    pub control: Arc<Control>,
}

impl Analyst {
    /// Returns the number of concurrent searches that fill a backend's batches with this many
    /// threads.
    pub fn workers(backend: &dyn Backend, threads: usize) -> usize {
        let searches = match backend.properties().encoder {
            Encoder::Nothing => 1,
            _ => SEARCHES_A_THREAD,
        };
        threads * searches
    }

    /// Searches the positions of a game that have no result in `found`, which has an entry for
    /// each. Positions without a legal move are skipped. `hear` is called after each search.
    ///
    /// # Errors
    /// The [`AgentError`] of the first search that failed; earlier results are kept.
    pub fn analyse(
        &self,
        game: &Game,
        found: &mut [Option<Searched>],
        hear: &(dyn Fn(Found<'_>) + Sync),
    ) -> Result<(), AgentError> {
        let missing = |ply: &usize| {
            found[*ply].is_none() && !game.plies()[*ply].position.legal_moves().is_empty()
        };
        let missing: Vec<usize> = (0..found.len()).filter(missing).collect();
        let queue = Mutex::new(stretches(&missing).into_iter());
        let results = Mutex::new(Vec::new());
        let work = || {
            let mut search = Search::new(Arc::clone(&self.backend), &parameters());
            loop {
                let next = queue.lock().next();
                let Some(stretch) = next else { return Ok(()) };
                for ply in stretch {
                    let found = self.search(&mut search, game, ply)?;
                    let Some((searched, nodes)) = found else {
                        continue;
                    };
                    hear(Found {
                        place: ply,
                        searched: &searched,
                        nodes,
                    });
                    results.lock().push((ply, searched));
                }
            }
        };
        let work = &work;
        let workers = self.workers.clamp(1, missing.len().max(1));
        let outcome = side_by_side((0..workers).map(|_| move || work()));
        for (ply, searched) in results.into_inner() {
            found[ply] = Some(searched);
        }
        outcome.map(|_: Vec<()>| ())
    }

    /// Returns the results for a position and the number of nodes spent, or `None` if stopped.
    fn search(
        &self,
        search: &mut Search,
        game: &Game,
        ply: usize,
    ) -> Result<Option<(Searched, u64)>, AgentError> {
        if self.control.stopped() {
            return Ok(None);
        }
        let mut before = game.clone();
        before.truncate(ply + 1);
        let limits = Limits::of_nodes(self.nodes);
        let choice = search.run(&before, &limits, &self.control, &mut |_| {})?;
        let searched = Searched::of(&before, &choice).filter(|_| !self.control.stopped());
        Ok(searched.map(|searched| (searched, choice.report.new_nodes)))
    }
}

fn parameters() -> Parameters {
    Parameters {
        threads: 1,
        hash: HASH,
        ..Parameters::default()
    }
}

/// Splits the plies into runs of consecutive ones.
fn stretches(plies: &[usize]) -> Vec<Range<usize>> {
    let runs = plies.chunk_by(|a, b| a + 1 == *b);
    let parts = runs.flat_map(|run| run.chunks(STRETCH));
    parts
        .map(|part| part[0]..part[part.len() - 1] + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn analyst(is_stopped: bool) -> Analyst {
        let control = Arc::new(Control::default());
        if is_stopped {
            control.stop();
        }
        Analyst {
            backend: Arc::new(Random::new(1)),
            nodes: 50,
            workers: 3,
            control,
        }
    }

    fn fools_mate() -> Game {
        let mut game = Game::default();
        for mv in ["f2f3", "e7e5", "g2g4", "d8h4"] {
            game.play(game.parse_move(mv).unwrap());
        }
        game
    }

    #[test]
    fn every_position_that_goes_on_is_searched_once() {
        let game = fools_mate();
        let mut found = vec![None; 5];
        let count = AtomicUsize::new(0);
        let hear = |of: Found<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(of.place < 4 && of.nodes <= 50 && !of.searched.line.is_empty());
        };
        analyst(false).analyse(&game, &mut found, &hear).unwrap();
        assert!(found[4].is_none());
        assert_eq!(count.load(Ordering::Relaxed), 4);
        let mate = found[3].as_ref().unwrap();
        assert_eq!(mate.line, ["d8h4"]);
        assert_eq!(mate.evaluation, Evaluation::Mate(1));
        let mut before = game.clone();
        before.truncate(4);
        assert_eq!(mate.moves(&before).len(), 1);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<Option<Searched>>>(&text).unwrap(),
            found
        );
        // Nothing is left to do.
        let kept = found.clone();
        analyst(false).analyse(&game, &mut found, &hear).unwrap();
        assert_eq!(found, kept);
        assert_eq!(count.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn nothing_is_searched_once_stopped() {
        let mut found = vec![None; 5];
        analyst(true)
            .analyse(&fools_mate(), &mut found, &|_| {})
            .unwrap();
        assert_eq!(found, vec![None; 5]);
    }

    #[test]
    fn stretches_are_consecutive() {
        let plies: Vec<usize> = (0..23).chain(30..32).collect();
        assert_eq!(stretches(&plies), [0..10, 10..20, 20..23, 30..32]);
        assert!(stretches(&[]).is_empty());
    }
}
