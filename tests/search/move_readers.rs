//! Tests networks that read a game's moves instead of its position.

use crate::search::backends::{Scripted, hashed, uniform};
use crate::search::{choose, game, uci};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tessera::agent::AgentKind;
use tessera::backend::{Cache, Value};
use tessera::play::{Control, Limits};
use tessera::search::Parameters;

const NODES: u64 = 2000;

fn limits() -> Limits {
    Limits {
        nodes: Some(NODES),
        ..Limits::default()
    }
}

fn parameters() -> Parameters {
    Parameters {
        threads: 1,
        minibatch: 1,
        hash: 16,
        mate_search: false,
        ..Parameters::default()
    }
}

#[test]
fn two_ways_to_a_position_are_two_games() {
    let counts: Arc<Mutex<HashMap<u64, usize>>> = Arc::default();
    let evaluated = |reads_moves: bool| {
        counts.lock().unwrap().clear();
        let counted = Arc::clone(&counts);
        let mut backend = Scripted::new(move |key, moves| {
            *counted.lock().unwrap().entry(key).or_default() += 1;
            (Value::default(), vec![0.0; moves.len()])
        });
        if reads_moves {
            backend = backend.reading_moves(512);
        }
        let backend = Arc::new(Cache::new(backend, 16 << 20));
        let mut agent = AgentKind::Mcts.build(backend, &parameters().into());
        let start = game("startpos", "");
        let choice = choose(&mut *agent, &start, &limits());
        assert_eq!(choice.report.nodes, NODES);
        let counts = counts.lock().unwrap();
        assert!(counts.values().all(|&count| count == 1));
        counts.len()
    };
    let (positions, games) = (evaluated(false), evaluated(true));
    // All positions are evaluated, except for mates and repetitions.
    assert!(games as u64 > NODES - 20, "{games}");
    assert!(positions < games - 50, "{positions} of {games}");
}

#[test]
fn a_position_without_its_moves_is_refused_by_every_agent() {
    let study = game("8/8/8/8/8/4k3/4p3/4K2R w K - 0 1", "");
    for kind in [
        AgentKind::Mcts,
        AgentKind::Policy,
        AgentKind::Value,
        AgentKind::Human,
    ] {
        let backend = hashed().reading_moves(512).shared();
        let mut agent = kind.build(backend, &parameters().into());
        let start = game("startpos", "e2e4 e7e5");
        let choice = choose(&mut *agent, &start, &limits());
        assert_ne!(uci(&start, choice.best), "(none)");
        let refusal = agent
            .choose(&study, &limits(), &Control::default(), &mut |_| {})
            .unwrap_err();
        assert!(
            refusal
                .to_string()
                .contains("it reads the moves from the initial position"),
            "{kind:?}: {refusal}"
        );
    }
}

#[test]
fn a_search_that_reaches_the_longest_game_ends_with_its_results() {
    let backend = uniform().reading_moves(4).shared();
    let mut agent = AgentKind::Mcts.build(backend, &parameters().into());
    let start = game("startpos", "e2e4");
    let mut nodes = 0;
    let error = agent
        .choose(&start, &limits(), &Control::default(), &mut |report| {
            nodes = report.nodes
        })
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("it reads up to 3 moves, and the game has 4"),
        "{error}"
    );
    assert!(nodes > 20, "{nodes}");
}
