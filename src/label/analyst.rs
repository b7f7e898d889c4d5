//! Scores positions with an engine, which is restarted when it fails.

use super::{Counts, Event, LabelError, Labelling};
use crate::chess::Game;
use crate::data::pgn::Judged;
use crate::data::record::Eval;
use crate::engine::{Engine, EngineError, EngineScore, Line};
use shakmaty::{Color, Position};
use std::sync::atomic::Ordering::Relaxed;

/// Number of attempts at a position before it is given up.
const ATTEMPTS: usize = 2;
/// Number of consecutive positions given up after which the engine itself is given up.
const MOST_FAILURES: u32 = 5;

/// Scores positions with an engine, restarting its process if necessary.
pub(super) struct Analyst<'a> {
    labelling: &'a Labelling,
    counts: &'a Counts,
    observe: &'a (dyn Fn(Event) + Sync),
    engine: Option<Engine>,
    failures: u32,
}

impl<'a> Analyst<'a> {
    pub(super) fn new(
        labelling: &'a Labelling,
        counts: &'a Counts,
        observe: &'a (dyn Fn(Event) + Sync),
    ) -> Analyst<'a> {
        Analyst {
            labelling,
            counts,
            observe,
            engine: None,
            failures: 0,
        }
    }

    /// Returns the engine's name, once it has started.
    pub(super) fn engine(&self) -> Option<&str> {
        self.engine.as_ref().map(Engine::name)
    }

    /// Starts a new game.
    pub(super) fn new_game(&mut self) {
        if let Some(engine) = &mut self.engine
            && let Err(error) = engine.new_game()
        {
            self.lose(&error);
        }
    }

    /// Returns the engine's lines for the position, with the best first. The list is empty if the
    /// engine failed, or if the work as a whole has failed.
    pub(super) fn judge(&mut self, game: &Game) -> Result<Vec<Judged>, LabelError> {
        if self.counts.failed.load(Relaxed) {
            return Ok(Vec::new());
        }
        let mut attempts = ATTEMPTS;
        loop {
            match self.attempt(game)? {
                Ok(lines) => {
                    self.failures = 0;
                    self.counts.positions.fetch_add(1, Relaxed);
                    (self.observe)(Event::Judged);
                    let turn = game.position().turn();
                    return Ok(lines.into_iter().map(|line| judged(line, turn)).collect());
                }
                Err(error) => {
                    self.lose(&error);
                    attempts -= 1;
                    if attempts > 0 {
                        continue;
                    }
                    self.counts.given_up.fetch_add(1, Relaxed);
                    self.failures += 1;
                    if self.failures == MOST_FAILURES {
                        return Err(LabelError::Useless {
                            failures: self.failures,
                            last: error,
                        });
                    }
                    return Ok(Vec::new());
                }
            }
        }
    }

    /// Evaluates a position once. The outer error means that the engine cannot be started.
    fn attempt(&mut self, game: &Game) -> Result<Result<Vec<Line>, EngineError>, EngineError> {
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => none.insert(Engine::start(&self.labelling.command())?),
        };
        let mut judged = engine.judge(game, self.labelling.limit, self.labelling.patience);
        if let Ok(lines) = &mut judged {
            lines.truncate(self.labelling.multipv.max(1) as usize);
        }
        Ok(judged)
    }

    fn lose(&mut self, error: &EngineError) {
        self.engine = None;
        (self.observe)(Event::Warning(format!("{error}; it is restarted")));
    }
}

fn judged(line: Line, turn: Color) -> Judged {
    let white = |value: i32| {
        let value = turn.fold_wb(value, value.saturating_neg());
        value.clamp(-i32::from(i16::MAX), i16::MAX.into()) as i16
    };
    Judged {
        moves: line.moves,
        eval: match line.score {
            EngineScore::Centipawns(centipawns) => Eval::Centipawns(white(centipawns)),
            EngineScore::Mate(moves) => Eval::Mate(white(moves)),
        },
        depth: line.depth,
    }
}
