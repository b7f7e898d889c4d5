//! Tests the behaviour of the search when a component fails.

use crate::search::backends::{Scripted, hashed, uniform};
use crate::search::{choose, game, uci};
use crate::waiting::PATIENCE;
use shakmaty::{Move, Position};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tessera::agent::{AgentKind, HIGHEST_RATING};
use tessera::backend::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use tessera::chess::{Game, Ratings};
use tessera::encode::policy_index;
use tessera::play::{Agent, Control, Limits, Report};
use tessera::search::{Parameters, Search};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A backend that panics on request, on the helper threads of a search that has been running for a
/// while.
struct BreaksOnHelpers {
    inner: Scripted,
    breaks: AtomicBool,
    calls: AtomicUsize,
}

impl Backend for BreaksOnHelpers {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let helps = thread::current()
            .name()
            .is_some_and(|name| name.starts_with("search "));
        let call = self.calls.fetch_add(1, Relaxed);
        assert!(
            !(helps && call > 100 && self.breaks.load(Relaxed)),
            "as the test wants"
        );
        self.inner.evaluate(batch, out)
    }
}

fn parameters() -> Parameters {
    Parameters {
        threads: 4,
        hash: 16,
        ..Parameters::default()
    }
}

/// Ends an infinite search with a panic; returns its last report.
fn breaks_off(
    mut search: Search,
    mut hear: impl FnMut(&Report) + Send + 'static,
) -> (Search, Option<Report>) {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let infinite = Limits {
            infinite: true,
            ..Limits::default()
        };
        let mut last = None;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut tell = |report: &Report| {
                last = Some(report.clone());
                hear(report);
            };
            search.choose(&Game::default(), &infinite, &Control::default(), &mut tell)
        }));
        assert!(ended.is_err(), "no panic came through");
        sender.send((search, last)).unwrap();
    });
    receiver.recv_timeout(PATIENCE).expect("the search ends")
}

#[test]
fn a_panic_of_a_helper_ends_the_search_with_its_results() {
    let backend = Arc::new(BreaksOnHelpers {
        inner: hashed().delayed(MS(1)),
        breaks: AtomicBool::new(true),
        calls: AtomicUsize::new(0),
    });
    let search = Search::new(backend.clone(), &parameters());
    let (mut search, last) = breaks_off(search, |_| {});
    let last = last.expect("a report");
    assert!(last.nodes > 50 && !last.lines[0].moves.is_empty());
    // The next search starts over.
    backend.breaks.store(false, Relaxed);
    let limits = Limits {
        nodes: Some(200),
        ..Limits::default()
    };
    let choice = choose(&mut search, &Game::default(), &limits);
    assert_eq!((choice.report.nodes, choice.report.new_nodes), (200, 200));
}

#[test]
fn a_panic_while_it_reports_ends_the_search() {
    let search = Search::new(uniform().shared(), &parameters());
    let mut reports = 0;
    let (_, last) = breaks_off(search, move |_| {
        reports += 1;
        assert!(reports > 1, "as the test wants");
    });
    assert!(last.is_some());
}

#[test]
fn results_are_reported_before_a_failure() {
    let mut search = Search::new(hashed().failing(20..21).shared(), &parameters());
    let mut last = None;
    let failed = search.choose(
        &Game::default(),
        &Limits::default(),
        &Control::default(),
        &mut |report: &Report| last = Some(report.clone()),
    );
    assert!(failed.is_err());
    assert!(last.expect("a report").nodes > 10);
}

/// Returns limits that leave little or no time.
fn hurried() -> Vec<Limits> {
    let clock = |time: Option<u64>, move_time: Option<u64>, nodes| Limits {
        time: time.map(MS),
        move_time: move_time.map(MS),
        nodes,
        ..Limits::default()
    };
    vec![
        clock(None, Some(100), None),
        clock(None, Some(1), None),
        clock(None, Some(0), None),
        clock(Some(50), None, None),
        clock(Some(1), None, None),
        clock(Some(0), None, None),
        clock(Some(0), Some(0), None),
        clock(Some(0), Some(1000), Some(100)),
        Limits {
            increment: MS(1000),
            moves_to_go: Some(1),
            ..clock(Some(0), None, None)
        },
    ]
}

#[test]
fn every_go_evaluates_at_least_once() {
    let backend = Scripted::new(|_, moves| {
        let last = moves.len() - 1;
        let logits = (0..moves.len()).map(|number| if number == last { 99.0 } else { 0.0 });
        (Value::default(), logits.collect())
    });
    let backend = backend.delayed(MS(30)).shared();
    let mut game = game("startpos", "");
    game.set_ratings(Ratings {
        white: Some(HIGHEST_RATING),
        black: None,
    });
    let last = game.position().legal_moves().last().copied();
    for kind in [
        AgentKind::Mcts,
        AgentKind::Policy,
        AgentKind::Value,
        AgentKind::Human,
    ] {
        for threads in [1, 3] {
            let parameters = Parameters {
                threads,
                ..parameters()
            };
            let mut agent = kind.build(backend.clone(), &parameters.clone().into());
            for limits in hurried() {
                agent.new_game();
                let choice = choose(&mut *agent, &game, &limits);
                assert_eq!(choice.best, last, "{kind:?}: {limits:?}");
                assert!(choice.report.nodes >= 1, "{kind:?}: {limits:?}");
            }
        }
    }
}

/// The position has 263 moves, more than the 248 that a node can hold.
const CROWD: &str = "QQQQQQQQ/Q6Q/Q6Q/Q6Q/Q6Q/Q5QQ/Q4Qpp/KQQQQQbk w - - 0 1";

#[test]
fn of_too_many_moves_the_likeliest_are_searched() {
    let game = game(CROWD, "");
    let mates = |mv: &Move| {
        let mut after = game.clone();
        after.play(*mv);
        after.position().is_checkmate()
    };
    let quiet: Vec<Move> = game.position().legal_moves().into_iter().collect();
    let quiet: Vec<Move> = quiet.into_iter().filter(|mv| !mates(mv)).collect();
    assert!(quiet.len() > 248, "{}", quiet.len());
    let liked = *quiet.last().unwrap();
    let index = policy_index(liked, game.position().turn());
    let backend = Scripted::new(move |_, moves| {
        let logit = |&mv: &u16| if mv == index { 9.0 } else { 0.0 };
        (Value::default(), moves.iter().map(logit).collect())
    });
    let mut search = Search::new(backend.shared(), &parameters());
    let limits = Limits {
        nodes: Some(300),
        search_moves: quiet,
        ..Limits::default()
    };
    let choice = choose(&mut search, &game, &limits);
    let searched = choice.statistics.iter().find(|of| of.mv == liked);
    assert!(
        searched.is_some_and(|of| of.visits > 100),
        "{}",
        uci(&game, Some(liked))
    );
}
