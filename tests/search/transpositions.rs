//! Tests positions that several paths reach.

use crate::search::backends::Scripted;
use crate::search::{choose, game, uci};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tessera::agent::AgentKind;
use tessera::backend::Value;
use tessera::play::{Choice, Limits};
use tessera::search::Parameters;

fn limits(nodes: u64) -> Limits {
    Limits {
        nodes: Some(nodes),
        ..Limits::default()
    }
}

fn parameters(transpositions: bool) -> Parameters {
    Parameters {
        threads: 1,
        minibatch: 1,
        hash: 16,
        transpositions,
        ..Parameters::default()
    }
}

fn unit(key: u64) -> f32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / (1 << 24) as f32
}

/// Returns a backend whose values and priors depend on the key, and its evaluation counts per
/// position.
fn counting() -> (Scripted, Arc<Mutex<HashMap<u64, usize>>>) {
    let counts: Arc<Mutex<HashMap<u64, usize>>> = Arc::default();
    let counted = Arc::clone(&counts);
    let backend = Scripted::new(move |key, moves| {
        *counted.lock().unwrap().entry(key).or_default() += 1;
        let value = Value {
            q: unit(key) * 1.2 - 0.6,
            ..Value::default()
        };
        (value, vec![0.0; moves.len()])
    });
    (backend, counts)
}

fn search(transpositions: bool, fen: &str, nodes: u64) -> (Choice, HashMap<u64, usize>) {
    let (backend, counts) = counting();
    let mut agent = AgentKind::Mcts.build(backend.shared(), &parameters(transpositions).into());
    let choice = choose(&mut *agent, &game(fen, ""), &limits(nodes));
    let counts = counts.lock().unwrap().clone();
    (choice, counts)
}

/// Kings and immobile pawns, so that many paths lead to every position.
const KINGS: &str = "8/8/4k3/1p1p1p1p/1P1P1P1P/4K3/8/8 w - - 0 1";

#[test]
fn a_position_is_evaluated_once_however_it_is_reached() {
    let (with, counts) = search(true, KINGS, 3000);
    assert_eq!(with.report.nodes, 3000);
    assert!(counts.values().all(|&count| count == 1), "{counts:?}");
    let (without, tree) = search(false, KINGS, 3000);
    assert_eq!(without.report.nodes, 3000);
    assert!(tree.values().any(|&count| count > 5));
    assert!(counts.len() < tree.values().sum::<usize>() / 2);
}

/// The graph's root value equals the tree's if both have the same information about every position,
/// because both converge to the same value.
#[test]
fn graph_and_tree_agree_on_a_full_search() {
    for fen in [KINGS, "startpos"] {
        let (graph, _) = search(true, fen, 20_000);
        let (tree, _) = search(false, fen, 20_000);
        let worth = |choice: &Choice| f64::from(choice.statistics[0].q);
        let difference = (worth(&graph) - worth(&tree)).abs();
        assert!(difference < 0.06, "{fen}: {difference}");
    }
}

/// The winning side must not repeat positions. A draw by repetition belongs to the path, not to the
/// position, so other paths to it are not affected.
#[test]
fn only_the_repeating_path_is_drawn() {
    // Black is hopelessly lost in every position, except by repetition.
    let backend = Scripted::with_turn(|turn, moves| {
        let q = match turn {
            shakmaty::Color::White => 0.9,
            shakmaty::Color::Black => -0.9,
        };
        let value = Value {
            q,
            ..Value::default()
        };
        (value, vec![0.0; moves.len()])
    });
    let mut agent = AgentKind::Mcts.build(backend.shared(), &parameters(true).into());
    let once = "e3d3 e6d6 d3e3 d6e6 ";
    let twice = game(KINGS, &once.repeat(2));
    let choice = choose(&mut *agent, &twice, &limits(2000));
    let q = |choice: &Choice, name: &str| {
        let mut found = choice.statistics.iter();
        let found = found.find(|found| uci(&twice, Some(found.mv)) == name);
        found.unwrap().q
    };
    assert_eq!(q(&choice, "e3d3"), 0.0);
    let best = uci(&twice, choice.best);
    assert!(best != "e3d3" && q(&choice, &best) > 0.8, "{best}");
    // The same position without that history, in the tree of the same agent.
    let choice = choose(&mut *agent, &game(KINGS, ""), &limits(2000));
    assert!(q(&choice, "e3d3") > 0.8, "{}", q(&choice, "e3d3"));
}

/// The game may be over at a node on one path, while other paths continue from the same node. Lines
/// must end where the game does.
#[test]
fn lines_end_where_the_game_does() {
    let parameters = Parameters {
        multi_pv: 50,
        two_fold_draws: false,
        ..parameters(true)
    };
    let mut longest = 0;
    for moves in ["", "e3d3 e6d6 d3e3 d6e6", "e3d3 e6d6 d3e3 d6e6 e3d3 e6d6"] {
        let game = game(KINGS, moves);
        for nodes in [500, 1000, 2000, 4000] {
            let mut agent =
                AgentKind::Mcts.build(counting().0.shared(), &parameters.clone().into());
            let choice = choose(&mut *agent, &game, &limits(nodes));
            for line in &choice.report.lines {
                let mut game = game.clone();
                for (place, &mv) in line.moves.iter().enumerate() {
                    let is_over = place > 0 && game.ending().is_some();
                    assert!(
                        !is_over,
                        "{nodes} nodes: {line:?} continues after {place} plies"
                    );
                    game.play(mv);
                }
                longest = longest.max(line.moves.len());
            }
        }
    }
    assert!(longest > 8, "lines of {longest} plies repeat nothing");
}
