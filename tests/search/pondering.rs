//! Tests thinking on the opponent's time, and the use of its results afterwards.

use crate::search::backends::hashed;
use crate::search::{choose, game, play};
use shakmaty::Position;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera::agent::{AgentKind, ConfigurableAgent};
use tessera::chess::Game;
use tessera::play::{Agent, Choice, Control, Limits, Report};
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

/// Ponders with these limits, and gives this signal after 200 ms.
fn ponder(agent: &mut dyn Agent, game: &Game, limits: &Limits, end: fn(&Control)) -> Choice {
    let limits = Limits {
        ponder: true,
        ..limits.clone()
    };
    let control = Control::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(MS(200));
            end(&control);
        });
        let mut quiet = |_: &Report| {};
        agent.choose(game, &limits, &control, &mut quiet).unwrap()
    })
}

/// Searches for a move in a game and ponders on the expected reply; returns the game after that
/// reply, and the result of pondering.
fn pondered(agent: &mut dyn Agent) -> (Game, Choice) {
    let mut game = game("startpos", "e2e4 e7e5");
    let choice = choose(agent, &game, &nodes(3000));
    game.play(choice.best.unwrap());
    game.play(choice.ponder.unwrap());
    let thought = ponder(agent, &game, &nodes(4000), Control::stop);
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
    // A move may take at most half a second of the clock.
    let limits = Limits {
        time: Some(MS(1100)),
        ..Limits::default()
    };
    let mut game = Game::default();
    play(&mut game, "d2d4");
    let began = Instant::now();
    let choice = ponder(&mut *mcts(), &game, &limits, Control::ponder_hit);
    let taken = began.elapsed();
    assert!(taken >= MS(200) && taken < MS(1000), "{taken:?}");
    assert!(choice.best.is_some());
}

#[test]
fn batches_are_small_while_a_short_clock_waits() {
    let parameters = Parameters {
        threads: 1,
        hash: 16,
        move_overhead: 0,
        ..Parameters::default()
    };
    // With the short clock, a move may take 4 ms, which is enough to evaluate three positions.
    for (clock, most) in [(25, 4), (100_000, 16)] {
        let backend = Arc::new(hashed().delayed_each(MS(1)));
        let mut agent = AgentKind::Mcts.build(backend.clone(), &parameters.clone().into());
        let limits = Limits {
            time: Some(MS(clock)),
            ..Limits::default()
        };
        let choice = ponder(&mut *agent, &Game::default(), &limits, Control::stop);
        assert!(choice.report.nodes > 3);
        let largest = backend.largest();
        assert!(largest <= most, "{largest}");
        assert_eq!(largest > 4, clock > 25, "{largest}");
    }
}
