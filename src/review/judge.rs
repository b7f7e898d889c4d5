//! An external UCI engine as the judge of a game.
//!
//! Several processes of the engine take stretches of consecutive positions from a queue. Within a
//! stretch, positions are searched from the last to the first in one hash table, so that the score
//! before a move knows the replies that the score after it found. The stretches depend on the game
//! alone and each begins with an empty table, so the scores do not depend on the number of
//! processes. Afterwards, the positions around moves whose mark is in doubt are searched again with
//! more nodes.

mod lengthen;

use super::analysis::{Found, Searched};
use super::curve::Evaluation;
use crate::chess::Game;
use crate::engine::{Engine, EngineCommand, EngineError, Limit, Line};
use crate::play::Control;
use crate::scoped_threads::side_by_side;
use parking_lot::Mutex;
use shakmaty::Position;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The engine that judges unless another one is named.
pub const USUAL_JUDGE: &str = "stockfish";
/// Default number of nodes for each position.
pub const JUDGE_NODES: u64 = 75_000;
/// Number of consecutive positions that are searched in one hash table.
const STRETCH: usize = 8;
/// Positions around a doubtful move get this many times the nodes.
const DOUBTFUL: u64 = 5;
/// Losses of winning chances, in −1…1, for which a move's mark is in doubt.
const IN_DOUBT: Range<f64> = 0.1..0.4;
/// A second move is looked for with this part of the nodes, …
const SECOND: u64 = 2;
/// … unless the winning chances are lower than this, so that no second move can be much worse.
const LOST: f64 = -0.75;
/// Loss of winning chances from which a move may become a puzzle.
const MISTAKE: f64 = 0.2;
/// Hash table of a process, in MiB.
const HASH: u32 = 32;
/// Maximum number of moves of a line that are kept, unless it mates.
const LINE: usize = 24;
/// Time limit for the answer in one position. A slow engine needs fewer nodes.
const PATIENCE: Duration = Duration::from_secs(60);

/// An external engine that scores positions. It is shared by threads; each uses a process of its
/// own.
#[derive(Debug)]
pub struct Judge {
    command: EngineCommand,
    /// The name that the engine gives itself, such as `Stockfish 15.1`.
    pub name: String,
    /// The number of nodes for each position.
    pub nodes: u64,
    processes: usize,
    patience: Duration,
    /// Processes that wait for work.
    idle: Mutex<Vec<Engine>>,
}

impl Judge {
    /// Starts an engine, which will search each position with this many nodes in up to `processes`
    /// processes.
    ///
    /// # Errors
    /// [`EngineError`] if the engine does not start or does not speak UCI.
    pub fn start(program: &Path, nodes: u64, processes: usize) -> Result<Judge, EngineError> {
        let command = EngineCommand {
            program: PathBuf::from(program),
            options: Vec::new(),
        };
        let engine = prepared(&command)?;
        Ok(Judge {
            name: engine.name().to_owned(),
            command,
            nodes: nodes.max(1),
            processes: processes.max(1),
            patience: PATIENCE,
            idle: Mutex::new(vec![engine]),
        })
    }

    /// Scores the positions of a game; the result has an entry for each. Positions without a legal
    /// move have none, and neither have those that `control` stopped. `hear` is called after each
    /// search; a position that is searched again is heard again.
    ///
    /// # Errors
    /// The [`EngineError`] of the first process that failed.
    pub fn analyse(
        &self,
        game: &Game,
        control: &Control,
        hear: &(dyn Fn(Found<'_>) + Sync),
    ) -> Result<Vec<Option<Searched>>, EngineError> {
        let open = game.plies().iter().enumerate();
        let open = open.filter(|(_, ply)| !ply.position.legal_moves().is_empty());
        let open: Vec<usize> = open.map(|(place, _)| place).collect();
        let found = Mutex::new(vec![None; game.plies().len()]);
        let task = Task {
            judge: self,
            game,
            control,
            hear,
            found: &found,
        };
        let all = open.chunks(STRETCH).map(<[usize]>::to_vec).collect();
        task.run(all, self.nodes, 1)?;
        let doubtful = doubtful(game, &found.lock());
        task.run(doubtful, self.nodes.saturating_mul(DOUBTFUL), 1)?;
        task.lengthen(self.nodes)?;
        let chosen = chosen(game, &found.lock());
        task.run(chosen, (self.nodes / SECOND).max(1), 2)?;
        Ok(found.into_inner())
    }

    /// Scores the current position of a game, which must have a legal move, with this many nodes.
    ///
    /// # Errors
    /// [`EngineError`] if the engine fails.
    pub fn position(&self, game: &Game, nodes: u64) -> Result<Searched, EngineError> {
        let mut engine = self.take()?;
        engine.new_game()?;
        let searched = self.search(&mut engine, game, nodes)?;
        self.idle.lock().push(engine);
        Ok(searched)
    }

    fn search(
        &self,
        engine: &mut Engine,
        game: &Game,
        nodes: u64,
    ) -> Result<Searched, EngineError> {
        let lines = engine.judge(game, Limit::Nodes(nodes), self.patience)?;
        Ok(searched(game, &lines))
    }

    fn take(&self) -> Result<Engine, EngineError> {
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| prepared(&self.command), Ok)
    }
}

/// Starts a process that uses one thread and little memory.
fn prepared(command: &EngineCommand) -> Result<Engine, EngineError> {
    let mut engine = Engine::start(command)?;
    for (option, value) in [("Threads", "1".to_owned()), ("Hash", HASH.to_string())] {
        if engine.has_option(option) {
            engine.set(option, &value)?;
        }
    }
    Ok(engine)
}

/// Returns the results for a position, given at least one line of an engine.
fn searched(game: &Game, lines: &[Line]) -> Searched {
    let evaluation = Evaluation::from(lines[0].score);
    let kept = match evaluation {
        Evaluation::Mate(_) => lines[0].moves.len(),
        Evaluation::Centipawns(_) => LINE,
    };
    let moves = lines[0].moves.iter().take(kept);
    Searched {
        line: moves.map(|&mv| game.format_move(mv)).collect(),
        evaluation,
        second: lines.get(1).map(|line| line.score.into()),
    }
}

/// The positions of a game under judgement.
struct Task<'a> {
    judge: &'a Judge,
    game: &'a Game,
    control: &'a Control,
    hear: &'a (dyn Fn(Found<'_>) + Sync),
    found: &'a Mutex<Vec<Option<Searched>>>,
}

impl Task<'_> {
    /// Searches stretches of positions, with this many nodes and lines for each.
    fn run(&self, stretches: Vec<Vec<usize>>, nodes: u64, lines: u8) -> Result<(), EngineError> {
        self.share(stretches, |engine, stretch, goes_on| {
            if engine.has_option("MultiPV") {
                engine.set("MultiPV", &lines.to_string())?;
            } else if lines > 1 {
                return Ok(());
            }
            engine.new_game()?;
            for &place in stretch.iter().rev() {
                if !goes_on() {
                    return Ok(());
                }
                let mut before = self.game.clone();
                before.truncate(place + 1);
                let searched = self.judge.search(engine, &before, nodes)?;
                self.keep(place, searched, lines);
            }
            match lines {
                1 => Ok(()),
                _ => engine.set("MultiPV", "1"),
            }
        })
    }

    /// Shares items among the judge's processes. `work` receives an engine, an item, and a function
    /// that returns whether to continue. An engine that stopped early is not used again.
    fn share<T: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(&mut Engine, T, &dyn Fn() -> bool) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        let workers = self.judge.processes.min(items.len());
        let queue = Mutex::new(items.into_iter());
        let has_failed = AtomicBool::new(false);
        let goes_on = || !self.control.stopped() && !has_failed.load(Relaxed);
        let worker = || {
            let mut engine = self.judge.take()?;
            while goes_on() {
                let next = queue.lock().next();
                let Some(item) = next else {
                    self.judge.idle.lock().push(engine);
                    break;
                };
                work(&mut engine, item, &goes_on)?;
            }
            Ok(())
        };
        let worker = || match worker() {
            // The scores so far remain useful.
            Err(_) if self.control.stopped() => Ok(()),
            outcome => outcome.inspect_err(|_: &EngineError| has_failed.store(true, Relaxed)),
        };
        side_by_side((0..workers).map(|_| worker)).map(|_: Vec<()>| ())
    }

    /// Keeps a result. A search with several lines, which has fewer nodes, only adds the score of
    /// the second move.
    fn keep(&self, place: usize, searched: Searched, lines: u8) {
        let mut found = self.found.lock();
        if let (2.., Some(known)) = (lines, &mut found[place]) {
            let is_same = known.line.first() == searched.line.first();
            known.second = searched.second.filter(|_| is_same);
            return;
        }
        (self.hear)(Found {
            place,
            searched: &searched,
            nodes: 0,
        });
        found[place] = Some(searched);
    }
}

/// Returns the score of a position for its side to move, if it is known or the game is over.
fn score(game: &Game, found: &[Option<Searched>], place: usize) -> Option<Evaluation> {
    let position = &game.plies()[place].position;
    match &found[place] {
        Some(searched) => Some(searched.evaluation),
        None if position.is_checkmate() => Some(Evaluation::Mate(0)),
        None => position.is_game_over().then_some(Evaluation::Centipawns(0)),
    }
}

/// Returns the winning chances that a move of a game loses, in −1…1, if they are known.
fn loss(game: &Game, found: &[Option<Searched>], ply: usize) -> Option<f64> {
    let has_move = ply + 1 < found.len();
    let [before, after] = [ply, ply + usize::from(has_move)].map(|it| score(game, found, it));
    let loss = before?.chances() + after?.chances();
    has_move.then_some(loss)
}

/// Returns whether the mark of a move is in doubt, because it is near a threshold, or because a
/// mate that one search has found may be there for the other as well.
fn is_in_doubt(game: &Game, found: &[Option<Searched>], ply: usize) -> bool {
    let Some(loss) = loss(game, found, ply) else {
        return false;
    };
    let [before, after] = [ply, ply + 1].map(|it| score(game, found, it));
    let is_mate_lost = match (before, after) {
        (Some(Evaluation::Mate(1..)), Some(after)) => !matches!(after, Evaluation::Mate(..=0)),
        (Some(before), Some(Evaluation::Mate(1..))) => !matches!(before, Evaluation::Mate(..=0)),
        _ => false,
    };
    IN_DOUBT.contains(&loss) || is_mate_lost
}

/// Returns the stretches of positions before and after moves whose mark is in doubt.
fn doubtful(game: &Game, found: &[Option<Searched>]) -> Vec<Vec<usize>> {
    let is_doubtful = |ply: usize| is_in_doubt(game, found, ply);
    let places = (0..found.len()).filter(|&place| {
        let is_after = place.checked_sub(1).is_some_and(is_doubtful);
        found[place].is_some() && (is_after || is_doubtful(place))
    });
    let places: Vec<usize> = places.collect();
    let runs = places.chunk_by(|a, b| a + 1 == *b);
    runs.flat_map(|run| run.chunks(STRETCH))
        .map(<[usize]>::to_vec)
        .collect()
}

/// Returns the positions, each a stretch of its own, in which the score of the second move matters:
/// those in which the best move was played, because it may be the only good one, and those in which
/// a bad one was, because the best move may be a puzzle's only solution.
fn chosen(game: &Game, found: &[Option<Searched>]) -> Vec<Vec<usize>> {
    let matters = |place: &usize| {
        let Some(searched) = &found[*place] else {
            return false;
        };
        let ply = &game.plies()[*place];
        let played = game.plies().get(place + 1).and_then(|after| after.played);
        let best = searched.line.first();
        let is_best = played.map(|mv| game.format_move(mv)).as_ref() == best;
        let is_bad = loss(game, found, *place) >= Some(MISTAKE);
        let is_lost = searched.evaluation.chances() < LOST;
        (is_best || is_bad) && !is_lost && ply.position.legal_moves().len() > 1
    };
    let places = (0..found.len()).filter(matters);
    places.map(|place| vec![place]).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn game(moves: &[&str]) -> Game {
        let mut game = Game::default();
        moves
            .iter()
            .for_each(|mv| game.play(game.parse_move(mv).unwrap()));
        game
    }

    fn scored(centipawns: i32, best: &str) -> Option<Searched> {
        Some(Searched {
            line: vec![best.to_owned()],
            evaluation: Evaluation::Centipawns(centipawns),
            second: None,
        })
    }

    #[test]
    fn positions_around_doubtful_moves_are_searched_again() {
        let game = game(&["e2e4", "e7e5", "f1c4", "g8f6", "c4f7", "e8f7"]);
        let found = [
            scored(30, "e2e4"),
            scored(-30, "e7e5"),
            scored(30, "g1f3"),
            // 2. Bc4 loses nothing.
            scored(-25, "g8f6"),
            scored(25, "d2d3"),
            // 3. Bxf7 loses so much that there is no doubt.
            scored(300, "e8f7"),
            scored(-300, "d2d4"),
        ];
        assert_eq!(doubtful(&game, &found), Vec::<Vec<usize>>::new());
        let mut close = found.clone();
        close[4] = scored(-120, "d2d3");
        // 3. Bxf7 loses less now.
        assert_eq!(doubtful(&game, &close), [[4, 5]]);
        // The search before 3... Kxf7 has missed a mate, or that after it sees one too many.
        let mut mated = found.clone();
        let mate = |mated: &mut [Option<Searched>], place: usize, moves| {
            let searched = mated[place].as_mut().unwrap();
            searched.evaluation = Evaluation::Mate(moves);
        };
        mate(&mut mated, 6, 3);
        assert_eq!(doubtful(&game, &mated), [[5, 6]]);
        mate(&mut mated, 5, -4);
        assert_eq!(doubtful(&game, &mated), Vec::<Vec<usize>>::new());
        mate(&mut mated, 4, 2);
        mate(&mut mated, 5, 4);
        assert_eq!(doubtful(&game, &mated), [[3, 4, 5, 6]]);
        // The best move was played, or the move was bad.
        assert_eq!(chosen(&game, &found), [[0], [1], [3], [4], [5]]);
    }

    #[test]
    fn a_silent_judge_is_given_up() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = root.join("tests/python/silent_engine.sh");
        let mut judge = Judge::start(&program, 10, 3).unwrap();
        assert_eq!(judge.name, "Silent");
        judge.patience = Duration::from_millis(50);
        let game = game(&["e2e4"]);
        let error = judge.analyse(&game, &Control::default(), &|_| {});
        let error = error.unwrap_err().to_string();
        assert!(error.contains("gave no answer within 0.05 s"), "{error}");
        assert!(judge.position(&game, 5).is_err());
        // A stopped review does not wait.
        let control = Control::default();
        control.stop();
        assert_eq!(
            judge.analyse(&game, &control, &|_| {}).unwrap(),
            [None, None]
        );
    }
}
