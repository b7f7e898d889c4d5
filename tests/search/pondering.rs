//! Tests thinking on the opponent's time, and the use of its results afterwards.

use crate::search::backends::{Scripted, hashed};
use crate::search::{choose, game, play};
use shakmaty::Position;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tessera::agent::{AgentKind, ConfigurableAgent};
use tessera::chess::Game;
use tessera::play::{Agent, Choice, Clock, Control, Limits, Report};
use tessera::search::Parameters;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn mcts() -> Box<dyn ConfigurableAgent> {
    mcts_with(Parameters::default())
}

fn mcts_with(parameters: Parameters) -> Box<dyn ConfigurableAgent> {
    let parameters = Parameters {
        threads: 1,
        hash: 16,
        ..parameters
    };
    AgentKind::Mcts.build(hashed().shared(), &parameters.clone().into())
}

fn nodes(nodes: u64) -> Limits {
    Limits {
        nodes: Some(nodes),
        ..Limits::default()
    }
}

/// Ponders until this many nodes have been searched.
fn ponder(agent: &mut dyn Agent, game: &Game, nodes: u64) -> Choice {
    let limits = Limits {
        ponder: true,
        nodes: Some(nodes),
        ..Limits::default()
    };
    let control = Control::default();
    let mut stop = |report: &Report| {
        if report.nodes == nodes {
            control.stop();
        }
    };
    agent.choose(game, &limits, &control, &mut stop).unwrap()
}

/// Ponders with this time on the clock, which only the backend's delays advance, and gives this
/// signal in the backend's hundredth call. Returns the time after the signal.
fn ponder_on_clock(
    backend: Scripted,
    game: &Game,
    time: Duration,
    signal: fn(&Control),
) -> (Arc<Scripted>, Choice, Duration) {
    let clock = Clock::manual();
    let control = Arc::new(Control::with_clock(clock.clone()));
    let signalled = Arc::new(Mutex::new(None));
    let backend = Arc::new(backend.on_clock(&clock).watched({
        let (clock, control, signalled) = (clock.clone(), control.clone(), signalled.clone());
        move |call| {
            if call == 100 {
                signal(&control);
                *signalled.lock().unwrap() = Some(clock.now());
            }
        }
    }));
    // The clock would not count the mate search.
    let parameters = Parameters {
        threads: 1,
        hash: 16,
        move_overhead: 0,
        mate_search: false,
        ..Parameters::default()
    };
    let mut agent = AgentKind::Mcts.build(backend.clone(), &parameters.clone().into());
    let limits = Limits {
        ponder: true,
        time: Some(time),
        ..Limits::default()
    };
    let choice = agent.choose(game, &limits, &control, &mut |_| {}).unwrap();
    let taken = clock.now() - signalled.lock().unwrap().expect("a signal");
    (backend, choice, taken)
}

/// Searches for a move in a game and ponders on the expected reply; returns the game after that
/// reply, and the result of pondering.
fn pondered(agent: &mut dyn Agent) -> (Game, Choice) {
    let mut game = game("startpos", "e2e4 e7e5");
    let choice = choose(agent, &game, &nodes(3000));
    game.play(choice.best.unwrap());
    game.play(choice.ponder.unwrap());
    let thought = ponder(agent, &game, 4000);
    assert_eq!(thought.report.nodes, 4000);
    // The part of the reply's tree that is already known is not searched again.
    assert!(thought.report.new_nodes < 4000);
    (game, thought)
}

#[test]
fn a_stop_is_answered_with_a_move_of_the_position_sent() {
    let (game, thought) = pondered(&mut *mcts());
    let best = thought.best.unwrap();
    assert!(game.position().legal_moves().contains(&best));
}

#[test]
fn after_a_hit_nothing_is_searched_twice() {
    let mut agent = mcts();
    let (mut game, thought) = pondered(&mut *agent);
    let again = choose(&mut *agent, &game, &nodes(5000));
    assert_eq!(again.report.new_nodes, 1000);
    game.play(thought.best.unwrap());
    game.play(thought.ponder.unwrap());
    let next = choose(&mut *agent, &game, &nodes(4000));
    assert!(next.report.new_nodes < 4000);
}

#[test]
fn after_a_miss_earlier_results_are_reused() {
    let mut known = 0;
    for number in (0..).step_by(3) {
        let mut agent = mcts();
        let (mut game, _) = pondered(&mut *agent);
        game.undo();
        let Some(&reply) = game.position().legal_moves().get(number) else {
            break;
        };
        game.play(reply);
        let missed = choose(&mut *agent, &game, &nodes(500));
        let best = missed.best.unwrap();
        assert!(game.position().legal_moves().contains(&best));
        known += 500 - missed.report.new_nodes.min(500);
    }
    assert!(known > 50, "{known}");
}

#[test]
fn a_move_taken_back_finds_the_earlier_results() {
    // Choose by visits alone, because values change in the meantime but visits do not.
    let mut agent = mcts_with(Parameters {
        lcb_scale: 0.0,
        ..Parameters::default()
    });
    let mut game = game("startpos", "e2e4 e7e5");
    let first = choose(&mut *agent, &game, &nodes(3000));
    for mv in [first.best.unwrap(), first.ponder.unwrap()] {
        game.play(mv);
        choose(&mut *agent, &game, &nodes(3000));
    }
    game.undo();
    game.undo();
    let again = choose(&mut *agent, &game, &nodes(3000));
    assert_eq!(again.best, first.best);
    assert!(again.report.new_nodes < 10, "{}", again.report.new_nodes);
    // A different game does not reuse the tree.
    let other = crate::search::game("startpos", "d2d4 d7d5");
    let other = choose(&mut *agent, &other, &nodes(300));
    assert_eq!(other.report.new_nodes, 300);
}

#[test]
fn the_clock_begins_with_the_hit() {
    let mut game = Game::default();
    play(&mut game, "d2d4");
    // The plan is 40 ms for a move, and the signal comes after 100.
    let backend = hashed().delayed(MS(1));
    let (_, choice, taken) = ponder_on_clock(backend, &game, MS(1000), Control::ponder_hit);
    assert!(taken >= MS(10) && taken < MS(500), "{taken:?}");
    assert!(choice.best.is_some());
}

#[test]
fn batches_are_small_while_a_short_clock_waits() {
    // With the short clock, a move may take 4 ms, which is enough to evaluate three positions.
    for (clock, most) in [(25, 4), (100_000, 16)] {
        let backend = hashed().delayed_each(MS(1));
        let (backend, choice, _) =
            ponder_on_clock(backend, &Game::default(), MS(clock), Control::stop);
        assert!(choice.report.nodes > 3);
        let largest = backend.largest();
        assert!(largest <= most, "{largest}");
        assert_eq!(largest > 4, clock > 25, "{largest}");
    }
}
