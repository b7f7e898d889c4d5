//! The thread that loads networks and searches, one job after another.

use super::info;
use super::output::Output;
use super::task::{Job, SearchJob, Task, Work};
use crate::chess::perft::divide;
use crate::panics;
use crate::play::{Limits, Report};
use crate::player::{Factory, Listener, Player, PlayerError, PlayerSettings, Request};
use crossbeam::channel::Receiver;
use shakmaty::Position;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) struct Worker<F> {
    output: Arc<Output>,
    player: Player<F>,
    /// The last report of the current search, from which to answer if the search fails.
    latest: Option<Report>,
}

/// Reports the player's progress to the client.
struct Client<'a> {
    output: &'a Output,
    latest: &'a mut Option<Report>,
    /// The search being reported; `None` while the client waits for `readyok`.
    search: Option<(&'a SearchJob, &'a Task)>,
}

impl Listener for Client<'_> {
    fn note(&mut self, text: &str) {
        self.output.info_string(text);
    }

    fn problem(&mut self, text: &str) {
        self.output.problem(text);
    }

    fn begin(&mut self, _: &PlayerSettings) {
        if let Some((_, task)) = self.search {
            task.begin();
        }
    }

    fn report(&mut self, report: &Report) {
        if let Some((search, _)) = self.search {
            for message in info::report(report, &search.game, &search.settings) {
                self.output.message(&message);
            }
            *self.latest = Some(report.clone());
        }
    }
}

impl<F: Factory> Worker<F> {
    pub(crate) fn new(output: Arc<Output>, factory: F) -> Worker<F> {
        Worker {
            output,
            player: Player::steadfast(factory),
            latest: None,
        }
    }

    /// Runs jobs in order until all senders are gone.
    pub(crate) fn run(mut self, jobs: Receiver<Job>) {
        for Job { task, work } in jobs {
            // A panic is a bug, but the waiting client still gets an answer and the session
            // continues.
            let answer = catch_unwind(AssertUnwindSafe(|| self.work(&work, &task)))
                .unwrap_or_else(|panic| self.recover(&work, panic.as_ref()));
            self.output.last_line(&answer, || task.finish());
        }
    }

    /// Runs a job; returns the line that ends it.
    fn work(&mut self, work: &Work, task: &Task) -> String {
        match work {
            Work::Ready(setup) => {
                let mut client = Client {
                    output: &self.output,
                    latest: &mut self.latest,
                    search: None,
                };
                // An error has been sent to the client.
                let _ = self.player.prepare(setup, &Limits::default(), &mut client);
                READY.to_owned()
            }
            Work::Search(search) => self.search(search, task),
            Work::Perft { game, depth } => {
                let stopped = || task.control.stopped();
                let counted = divide(game.position(), *depth, &stopped, |mv, leaves| {
                    self.output
                        .line(&format!("{}: {leaves}", game.format_move(mv)));
                });
                match counted {
                    Some(leaves) => format!("\nNodes searched: {leaves}\n"),
                    None => "info string perft was stopped before its end".to_owned(),
                }
            }
        }
    }

    fn recover(&mut self, work: &Work, panic: &(dyn Any + Send)) -> String {
        let message = panics::message(panic);
        self.output
            .problem(&format!("internal error, please report it: {message}"));
        self.player.reset();
        match work {
            Work::Ready(_) => READY.to_owned(),
            Work::Search(search) => self.best_so_far(search),
            Work::Perft { .. } => "info string perft failed".to_owned(),
        }
    }

    fn search(&mut self, search: &SearchJob, task: &Task) -> String {
        self.latest = None;
        let (game, limits, settings) = (&*search.game, &search.limits, &search.settings);
        let control = &task.control;
        for problem in &search.refused {
            self.output.problem(problem);
        }
        if game.position().legal_moves().is_empty() {
            self.output.message(&info::no_moves(game, settings));
            control.hold_back(limits);
            return info::NO_MOVE.to_owned();
        }
        let request = Request {
            setup: &search.setup,
            game,
            limits,
            received: search.received,
        };
        let mut client = Client {
            output: &self.output,
            latest: &mut self.latest,
            search: Some((search, task)),
        };
        match self.player.answer(&request, control, &mut client) {
            Ok(choice) => {
                if self.latest.as_ref() != Some(&choice.report) {
                    for message in info::report(&choice.report, game, settings) {
                        self.output.message(&message);
                    }
                }
                if let Some(note) = &choice.note {
                    self.output.info_string(note);
                }
                if settings.verbose_move_stats {
                    for line in info::statistics(&choice.statistics, game) {
                        self.output.info_string(&line);
                    }
                }
                info::best_move(&choice, game, settings)
            }
            // The error has been sent to the client.
            Err(PlayerError::Load(_) | PlayerError::Agent(_)) => {
                control.hold_back(limits);
                self.best_so_far(search)
            }
        }
    }

    /// Returns the answer of an interrupted search: the best move last reported, or otherwise any
    /// legal move, because an engine that does not answer loses the game.
    fn best_so_far(&mut self, search: &SearchJob) -> String {
        let latest = self.latest.take().unwrap_or_default();
        let best = latest.lines.first().and_then(|line| line.moves.first());
        let allowed = search.limits.search_moves.first();
        let legal = search.game.position().legal_moves();
        match best.or(allowed).or(legal.first()) {
            Some(&best) => format!("bestmove {}", search.game.format_move(best)),
            None => info::NO_MOVE.to_owned(),
        }
    }
}

/// The answer to `isready`.
pub(crate) const READY: &str = "readyok";
