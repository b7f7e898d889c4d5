//! Stop conditions and the timing of reports (Lc0: stoppers).
//!
//! The thread that called the search checks the conditions between its batches.

use super::choice::RootChoice;
use super::clock::time::{Stability, TimeBudget, is_decided};
use super::report::report;
use super::shared::Shared;
use super::tree::edge::Edge;
use super::tree::header::Outcome;
use super::tree::node::Node;
use crate::play::{Limits, Report};
use std::time::{Duration, Instant};

/// The shortest interval between reports, …
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
/// … and the longest, used while the best move stays the same.
const MOST_INTERVAL: Duration = Duration::from_secs(1);

/// A search is exhausted after this many consecutive visits without a new leaf, because every
/// remaining line then ends in a draw by history or in a proven position.
const FRUITLESS: u64 = 1 << 20;

pub(crate) struct Stopper<'a> {
    shared: &'a Shared<'a>,
    limits: &'a Limits,
    tell: &'a mut dyn FnMut(&Report),
    budget: Option<TimeBudget>,
    /// When our clock started; `None` while pondering.
    clock_since: Option<Instant>,
    /// The value with which the best move is compared: the previous search's final value, or
    /// otherwise the first value of this search.
    expected: Option<f64>,
    best: Option<u16>,
    best_since: Instant,
    told: Instant,
    told_best: Option<u16>,
    /// The latest number of discoveries, and the number of visits when that number was first
    /// reached.
    discovered: (u64, u64),
}

impl<'a> Stopper<'a> {
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        limits: &'a Limits,
        tell: &'a mut dyn FnMut(&Report),
    ) -> Stopper<'a> {
        shared.lag.fade();
        let mut stopper = Stopper {
            shared,
            limits,
            tell,
            budget: shared.lag.budget(limits, shared.parameters.overhead()),
            clock_since: None,
            expected: shared.expected,
            best: None,
            best_since: shared.began,
            told: shared.began,
            told_best: None,
            discovered: (0, 0),
        };
        if !limits.ponder {
            stopper.start_clock(shared.began);
        }
        stopper
    }

    fn start_clock(&mut self, since: Instant) {
        self.clock_since = Some(since);
        if let Some(budget) = self.budget {
            self.shared.set_deadline(since + budget.hard);
        }
    }

    /// Returns whether the search must end; sends a report if one is due.
    pub(crate) fn check(&mut self) -> bool {
        let (over, due) = {
            let _inside = self.shared.gate.read();
            (self.is_over(), self.due_report())
        };
        if let Some(report) = due {
            (self.tell)(&report);
        }
        if over {
            self.shared.stop();
        }
        over
    }

    fn is_over(&mut self) -> bool {
        if self.shared.stopped() {
            return true;
        }
        if self.clock_since.is_none()
            && let Some(hit) = self.shared.control.ponder_hit_at()
        {
            self.start_clock(hit);
        }
        let root = self.shared.tree.root();
        // Even a search that is stopped before it begins evaluates the root position once.
        if root.visits() == 0 {
            return false;
        }
        if self.shared.control.stopped() {
            return true;
        }
        let now = self.shared.control.now();
        let budget = self
            .shared
            .lag
            .budget(self.limits, self.shared.parameters.overhead());
        if self.budget != budget {
            self.budget = budget;
            if let Some(since) = self.clock_since {
                self.start_clock(since);
            }
        }
        let choice = RootChoice::of(self.shared);
        let mv = choice.as_ref().map(|choice| choice.chosen().edge.mv());
        if mv != self.best {
            self.best = mv;
            self.best_since = now;
        }
        let is_found = self.is_proven(root) || self.is_deep_enough();
        let saves_time = self.budget.is_some_and(|time| time.flexible);
        is_found && self.shared.has_lines()
            || self.is_exhausted() && (self.limits.depth.is_some() || saves_time)
            || self.is_time_up(root, choice, now)
    }

    /// Returns a report if one is due.
    fn due_report(&mut self) -> Option<Report> {
        let now = self.shared.control.now();
        let since = now.saturating_duration_since(self.told);
        let changed = self.best != self.told_best;
        let due = since >= MOST_INTERVAL || changed && since >= LEAST_INTERVAL;
        (due && self.best.is_some()).then(|| {
            self.told = now;
            self.told_best = self.best;
            report(self.shared).0
        })
    }

    /// Returns whether further visits cannot change the choice, because a mate is proven (for `go
    /// mate`, a short enough one) or every move is proven. A tablebase win suffices only if the
    /// search may save time; otherwise the search continues, because it may still find a mate.
    fn is_proven(&self, root: Node<'_>) -> bool {
        let header = root.header();
        match header.outcome() {
            Outcome::Unknown => false,
            Outcome::Loss | Outcome::Draw => true,
            Outcome::Win => {
                let enough = !self.limits.infinite
                    && match (header.mate(), self.limits.mate) {
                        (Some(plies), Some(moves)) => u32::from(plies).div_ceil(2) <= moves,
                        (Some(_), None) => true,
                        (None, _) => self.budget.is_some_and(|time| time.flexible),
                    };
                let tree = self.shared.tree;
                let proven = |edge: Edge<'_>| {
                    edge.node() != 0
                        && tree.node(edge.node()).header().outcome() != Outcome::Unknown
                };
                enough
                    || header.count() == u32::from(header.moves()) && tree.edges(header).all(proven)
            }
        }
    }

    fn is_deep_enough(&self) -> bool {
        self.limits
            .depth
            .is_some_and(|depth| self.shared.progress.mean_depth() >= f64::from(depth))
    }

    /// Returns whether visits have found nothing new for a long time.
    fn is_exhausted(&mut self) -> bool {
        let progress = &self.shared.progress;
        let (discoveries, visits) = (progress.discoveries(), progress.visits());
        if discoveries != self.discovered.0 {
            self.discovered = (discoveries, visits);
        }
        visits.saturating_sub(self.discovered.1) >= FRUITLESS
    }

    fn is_time_up(&mut self, root: Node<'_>, choice: Option<RootChoice<'_>>, now: Instant) -> bool {
        let (Some(budget), Some(since)) = (self.budget, self.clock_since) else {
            return false;
        };
        let elapsed = now.saturating_duration_since(since);
        if elapsed >= budget.hard {
            return true;
        }
        if !budget.flexible {
            return false;
        }
        if self.shared.root_moves.len() == 1 {
            return true;
        }
        let Some(choice) = choice else { return false };
        let searched = (now - self.shared.began).as_secs_f64();
        let chosen = choice.chosen().statistics;
        let value = chosen.q;
        let expected = *self.expected.get_or_insert(value);
        let limit = budget.limit(Stability {
            best_share: f64::from(chosen.visits) / f64::from(root.visits()),
            stable: (now - self.best_since).as_secs_f64() / searched.max(1e-9),
            fallen: (expected - value).max(0.0),
        });
        if elapsed >= limit {
            return true;
        }
        let visits = self.shared.progress.visits();
        let to_come = visits as f64 / searched * (limit - elapsed).as_secs_f64();
        // The first batches are not representative of the speed.
        visits > 2 * self.shared.batch_size() as u64
            && is_decided(
                choice.lead(),
                to_come,
                self.shared.parameters.smart_pruning.into(),
            )
            && !choice.may_change(to_come as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Uniform;
    use crate::chess::Game;
    use crate::play::Control;
    use crate::search::{Parameters, Search};
    use shakmaty::Position;
    use std::sync::Arc;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Calls `check` with the state of a search within these limits. The root has been visited if
    /// `visited` is true.
    fn with_shared(limits: &Limits, visited: bool, check: impl Fn(&Shared<'_>)) {
        let game = Game::default();
        let parameters = Parameters::default();
        let mut search = Search::new(Arc::new(Uniform::default()), &parameters);
        let control = Control::default();
        if visited {
            let few = Limits {
                nodes: Some(100),
                ..Limits::default()
            };
            search.run(&game, &few, &control, &mut |_| {}).unwrap();
        }
        let moves = game.position().legal_moves();
        check(&search.share(&game, moves, None, limits, &control, Instant::now()));
    }

    #[test]
    fn a_search_that_finds_nothing_new_ends() {
        for (fen, limits) in [
            ("8/8/4k3/8/8/4K3/4R3/8 w - - 99 80", 2),
            ("8/8/4k3/8/8/4K3/4R3/8 w - - 97 80", 9),
        ]
        .map(|(fen, depth)| {
            (
                fen,
                Limits {
                    depth: Some(depth),
                    ..Limits::default()
                },
            )
        }) {
            let game = Game::from_fen(fen, shakmaty::CastlingMode::Standard).unwrap();
            let parameters = Parameters {
                threads: 1,
                ..Parameters::default()
            };
            let mut search = Search::new(Arc::new(Uniform::default()), &parameters);
            let choice = search
                .run(&game, &limits, &Control::default(), &mut |_| {})
                .unwrap();
            assert!(choice.best.is_some());
            assert!(
                choice.report.new_nodes < 20_000_000,
                "{}",
                choice.report.new_nodes
            );
        }
    }

    #[test]
    fn what_takes_long_is_left_when_the_answer_is_waited_for() {
        let limits = Limits::default();
        with_shared(&limits, true, |shared| {
            assert!(!shared.is_urgent());
            shared.control.stop();
            assert!(shared.is_urgent());
        });
        with_shared(&limits, true, |shared| {
            shared.set_deadline(Instant::now() + MS(60_000));
            assert!(!shared.is_urgent());
            shared.set_deadline(Instant::now());
            assert!(shared.is_urgent());
        });
        // Before the first visit there is no move yet.
        with_shared(&limits, false, |shared| {
            shared.control.stop();
            shared.set_deadline(Instant::now());
            assert!(!shared.is_urgent());
        });
    }

    #[test]
    fn batches_are_short_enough_for_a_stop_unless_visits_are_counted() {
        let slow = |shared: &Shared<'_>| {
            let parts = (shared.batch_size(), MS(100));
            for _ in 0..100 {
                shared.latency.record(1, parts.1);
                shared.latency.record(parts.0, parts.1 * parts.0 as u32);
            }
            (shared.affordable_batch(), parts.0)
        };
        let counted = Limits {
            nodes: Some(10_000),
            ..Limits::default()
        };
        with_shared(&counted, true, |shared| {
            let (affordable, wanted) = slow(shared);
            assert!(
                affordable == wanted && wanted >= 8,
                "{affordable} of {wanted}"
            );
        });
        with_shared(&Limits::default(), true, |shared| {
            let (affordable, _) = slow(shared);
            assert!((1..=5).contains(&affordable), "{affordable}");
            // Evaluating even a single position takes too long.
            (0..100).for_each(|_| shared.latency.record(1, MS(9000)));
            assert!(shared.affordable_batch() >= 1);
        });
    }
}
