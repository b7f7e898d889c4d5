//! Tests the results of the searching player.

use crate::search::backends::{Scripted, hashed, uniform};
use crate::search::{choose, game, play, uci};
use tessera::agent::{AgentKind, ConfigurableAgent, Options};
use tessera::backend::Value;
use tessera::chess::Game;
use tessera::encode::policy_index;
use tessera::play::{Choice, Control, Limits, Score};
use tessera::search::{FpuStrategy, Parameters};

fn parameters() -> Parameters {
    Parameters {
        threads: 1,
        hash: 16,
        ..Parameters::default()
    }
}

fn mcts(backend: Scripted, parameters: &Parameters) -> Box<dyn ConfigurableAgent> {
    AgentKind::Mcts.build(backend.shared(), &parameters.clone().into())
}

fn nodes(nodes: u64) -> Limits {
    Limits {
        nodes: Some(nodes),
        ..Limits::default()
    }
}

/// Returns everything that does not depend on the clock.
fn essence(choice: &Choice) -> String {
    let mut choice = choice.clone();
    choice.report.elapsed = Default::default();
    format!("{choice:?}")
}

fn check_visits(choice: &Choice) {
    let visits: u64 = choice.statistics.iter().map(|move_| move_.visits).sum();
    assert_eq!(visits + 1, choice.report.nodes);
}

#[test]
fn the_node_limit_is_exact() {
    for limit in [1, 2, 3, 17, 100, 1000, 5000] {
        for threads in [1, 3] {
            let parameters = Parameters {
                threads,
                ..parameters()
            };
            let mut agent = mcts(hashed(), &parameters);
            let choice = choose(&mut *agent, &game("startpos", ""), &nodes(limit));
            assert_eq!(choice.report.nodes, limit);
            assert_eq!(choice.report.new_nodes, limit);
            assert_eq!(choice.statistics.len(), 20);
            check_visits(&choice);
        }
    }
}

#[test]
fn one_node_is_the_policy() {
    let game = game("startpos", "");
    let favourite = policy_index(game.parse_move("c2c4").unwrap(), shakmaty::Color::White);
    let backend = Scripted::new(move |_, moves| {
        let logit = |&mv: &u16| if mv == favourite { 1.0 } else { 0.0 };
        (Value::default(), moves.iter().map(logit).collect())
    });
    let choice = choose(&mut *mcts(backend, &parameters()), &game, &nodes(1));
    assert_eq!(uci(&game, choice.best), "c2c4");
    let prior = choice.statistics[0].prior;
    let exact = {
        let e = (1.0f32 / 1.359).exp();
        e / (e + 19.0)
    };
    assert!((prior / exact - 1.0).abs() < 0.02);
}

#[test]
fn a_search_stopped_before_it_begins_plays_the_policys_move() {
    let game = game("startpos", "");
    let favourite = policy_index(game.parse_move("g1f3").unwrap(), shakmaty::Color::White);
    let backend = Scripted::new(move |_, moves| {
        let logit = |&mv: &u16| if mv == favourite { 1.0 } else { 0.0 };
        (Value::default(), moves.iter().map(logit).collect())
    });
    let control = Control::default();
    control.stop();
    let choice = mcts(backend, &parameters())
        .choose(&game, &Limits::default(), &control, &mut |_| {})
        .unwrap();
    assert_eq!(uci(&game, choice.best), "g1f3");
    assert!(choice.report.nodes >= 1);
}

#[test]
fn one_thread_repeats_itself() {
    let position = game("startpos", "e2e4 c7c5");
    let run = || {
        let mut agent = mcts(hashed(), &parameters());
        let first = choose(&mut *agent, &position, &nodes(3000));
        let mut next = position.clone();
        next.play(first.best.unwrap());
        next.play(first.ponder.unwrap());
        let second = choose(&mut *agent, &next, &nodes(3000));
        (essence(&first), essence(&second))
    };
    assert_eq!(run(), run());
    let changed = Parameters {
        cpuct: 2.0,
        ..parameters()
    };
    let other = choose(&mut *mcts(hashed(), &changed), &position, &nodes(3000));
    assert_ne!(essence(&other), run().0);
}

#[test]
fn many_threads_agree_on_the_count() {
    let parameters = Parameters {
        threads: 4,
        minibatch: 8,
        ..parameters()
    };
    let mut agent = mcts(hashed(), &parameters);
    let mut game = Game::default();
    for limit in [2_000, 20_000, 30_000] {
        let choice = choose(&mut *agent, &game, &nodes(limit));
        assert!(choice.report.nodes >= limit);
        check_visits(&choice);
        game.play(choice.best.unwrap());
    }
}

#[test]
fn mates_are_found_and_proven() {
    for (fen, moves, in_moves) in [
        ("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "a1a8", 1),
        // Mate with two rooks, from a distance and with Black to move.
        ("7k/8/8/8/8/8/R7/1R2K3 w - - 0 1", "a2a7 b1b7", 2),
        ("1r2k3/r7/8/8/8/8/8/7K b - - 0 1", "a7a2 b8b2", 2),
        // Morphy's problem: after Ra6, the pawn mates.
        ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", "a1a6", 2),
        // A smothered mate.
        ("r5rk/6pp/8/6N1/8/1Q6/8/6K1 w - - 0 1", "g5f7", 1),
        ("5r1k/6pp/7N/8/8/1Q6/8/6K1 w - - 0 1", "b3g8", 2),
    ] {
        let game = game(fen, "");
        let limits = Limits {
            mate: Some(in_moves),
            nodes: Some(200_000),
            ..Limits::default()
        };
        let choice = choose(&mut *mcts(uniform(), &parameters()), &game, &limits);
        let line = &choice.report.lines[0];
        assert_eq!(line.score, Score::Mate(in_moves as i32), "{fen} {line:?}");
        assert_eq!(line.moves.len(), 2 * in_moves as usize - 1);
        assert_eq!(line.wdl, [1.0, 0.0, 0.0]);
        if in_moves > 1 || fen.contains("r5rk") {
            let best = uci(&game, choice.best);
            assert!(moves.split(' ').any(|mv| mv == best), "{fen} {best}");
        }
        let mut end = game.clone();
        line.moves.iter().for_each(|&mv| end.play(mv));
        assert_eq!(end.ending(), Some(tessera::chess::Ending::Checkmate));
    }
}

#[test]
fn mate_in_three_is_proven() {
    // King and rook against king, the kings in opposition.
    let game = game("8/8/8/8/8/k1K5/8/7R w - - 0 1", "");
    let limits = Limits {
        mate: Some(3),
        nodes: Some(500_000),
        ..Limits::default()
    };
    let choice = choose(&mut *mcts(uniform(), &parameters()), &game, &limits);
    let Score::Mate(moves) = choice.report.lines[0].score else {
        panic!("no mate: {:?}", choice.report);
    };
    assert!((1..=3).contains(&moves), "{moves}");
}

#[test]
fn being_mated_is_proven_and_delayed() {
    // Kh7 and Kh8 both run into mate; nothing else is legal.
    let game = game("6k1/8/6K1/8/8/8/8/R7 b - - 0 1", "");
    let choice = choose(&mut *mcts(uniform(), &parameters()), &game, &nodes(100_000));
    let Score::Mate(moves) = choice.report.lines[0].score else {
        panic!("{:?}", choice.report);
    };
    assert!(moves < 0);
    assert!(choice.best.is_some());
}

#[test]
fn a_mated_side_has_no_choice() {
    for fen in [
        "6k1/5ppp/8/8/8/8/r4PPP/1r4K1 w - - 0 1",
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
    ] {
        let choice = choose(
            &mut *mcts(uniform(), &parameters()),
            &game(fen, ""),
            &nodes(10),
        );
        assert_eq!(choice.best, None);
        assert!(choice.statistics.is_empty());
    }
}

#[test]
fn stalemate_is_a_draw_and_is_avoided_when_winning() {
    let position = game("7k/8/6K1/8/8/5Q2/8/8 w - - 0 1", "");
    let choice = choose(
        &mut *mcts(uniform(), &parameters()),
        &position,
        &nodes(2000),
    );
    assert!(matches!(choice.report.lines[0].score, Score::Mate(1..=3)));
    assert_ne!(uci(&position, choice.best), "f3f7");
}

#[test]
fn insufficient_material_is_a_proven_draw() {
    // The only legal move takes the last piece.
    let position = game("8/8/8/8/8/2k5/1q6/K7 w - - 0 1", "");
    assert_eq!(position.ending(), Some(tessera::chess::Ending::Checkmate));
    let position = game("8/8/8/8/8/3k4/1q6/K7 w - - 0 1", "");
    let choice = choose(&mut *mcts(hashed(), &parameters()), &position, &nodes(100));
    assert_eq!(uci(&position, choice.best), "a1b2");
    assert_eq!(choice.report.lines[0].score, Score::Expected(0.0));
    assert_eq!(choice.report.lines[0].wdl, [0.0, 1.0, 0.0]);
}

/// Returns a backend in which every position has this value for White.
fn white_stands(q: f32) -> Scripted {
    Scripted::with_turn(move |turn, moves| {
        let q = turn.fold_wb(q, -q);
        let value = Value {
            q,
            ..Value::default()
        };
        (value, vec![0.0; moves.len()])
    })
}

#[test]
fn a_repetition_is_sought_by_the_losing_side_only() {
    for (q, wanted) in [(-0.6, true), (0.6, false)] {
        let mut game = game("4k3/8/7p/7P/8/8/8/R3K3 w - - 0 1", "");
        play(
            &mut game,
            "a1b1 e8e7 b1a1 e7e8 a1b1 e8e7 b1a1 e7e8 a1b1 e8e7",
        );
        let mut agent = mcts(white_stands(q), &parameters());
        let choice = choose(&mut *agent, &game, &nodes(3000));
        let repeats = uci(&game, choice.best) == "b1a1";
        assert_eq!(repeats, wanted, "{:?}", choice.report.lines);
    }
}

#[test]
fn draws_of_the_old_tree_are_forgotten_with_it() {
    // After White's first move, the starting position is no longer in the tree, so returning to it
    // is no longer a draw.
    let mut game = game("4k3/p7/8/8/8/8/7P/R3K3 w - - 0 1", "");
    let mut agent = mcts(white_stands(0.6), &parameters());
    choose(&mut *agent, &game, &nodes(20_000));
    for mv in ["a1b1", "e8e7"] {
        play(&mut game, mv);
    }
    let kept = choose(&mut *agent, &game, &nodes(40_000));
    let fresh = choose(
        &mut *mcts(white_stands(0.6), &parameters()),
        &game,
        &nodes(40_000),
    );
    let back = |choice: &Choice| {
        let back = choice
            .statistics
            .iter()
            .find(|move_| uci(&game, Some(move_.mv)) == "b1a1");
        back.unwrap().q
    };
    assert!(
        (back(&kept) - back(&fresh)).abs() < 0.05,
        "{} {}",
        back(&kept),
        back(&fresh)
    );
}

#[test]
fn the_fifty_move_rule_counts() {
    let position = game("8/8/8/8/8/k7/8/1R2K3 w - - 99 80", "");
    let choice = choose(
        &mut *mcts(white_stands(0.9), &parameters()),
        &position,
        &nodes(500),
    );
    for move_ in &choice.statistics {
        assert_eq!(move_.q, 0.0);
    }
    // Mate takes precedence over the rule.
    let position = game("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 99 80", "");
    let choice = choose(&mut *mcts(uniform(), &parameters()), &position, &nodes(500));
    assert_eq!(choice.report.lines[0].score, Score::Mate(1));
}

#[test]
fn the_tree_is_kept_while_the_game_continues() {
    let mut game = Game::default();
    let mut agent = mcts(hashed(), &parameters());
    let first = choose(&mut *agent, &game, &nodes(5000));
    game.play(first.best.unwrap());
    game.play(first.ponder.unwrap());
    let second = choose(&mut *agent, &game, &nodes(5000));
    assert_eq!(second.report.nodes, 5000);
    assert!(second.report.new_nodes < 5000, "{:?}", second.report);
    check_visits(&second);
    let again = choose(&mut *agent, &game, &nodes(6000));
    assert_eq!(again.report.new_nodes, 1000);
    agent.new_game();
    let fresh = choose(&mut *agent, &game, &nodes(5000));
    assert_eq!(fresh.report.new_nodes, 5000);
    // A different game that reaches the same position has a different history.
    let other = Game::from_fen(
        &shakmaty::fen::Fen::from_position(game.position(), shakmaty::EnPassantMode::Legal)
            .to_string(),
        game.mode(),
    );
    let choice = choose(&mut *agent, &other.unwrap(), &nodes(5000));
    assert_eq!(choice.report.new_nodes, 5000);
}

#[test]
fn only_the_requested_moves_are_searched() {
    let game = game("startpos", "");
    let mut agent = mcts(hashed(), &parameters());
    choose(&mut *agent, &game, &nodes(2000));
    let moves = ["a2a3", "h2h4", "b1c3"].map(|mv| game.parse_move(mv).unwrap());
    let limits = Limits {
        search_moves: moves.to_vec(),
        ..nodes(2000)
    };
    let choice = choose(&mut *agent, &game, &limits);
    assert_eq!(choice.statistics.len(), 3);
    assert!(
        choice
            .statistics
            .iter()
            .all(|move_| moves.contains(&move_.mv))
    );
    assert!(choice.statistics.iter().all(|move_| move_.visits > 0));
    check_visits(&choice);
    let all = choose(&mut *agent, &game, &nodes(2000));
    assert_eq!(all.statistics.len(), 20);
    assert_eq!(all.report.new_nodes, 2000);
}

#[test]
fn lines_come_in_the_order_of_choice() {
    let parameters = Parameters {
        multi_pv: 500,
        lcb_scale: 0.0,
        ..parameters()
    };
    let game = game("startpos", "");
    // The move with the highest lower bound comes first, regardless of the order of the others.
    let surest = Parameters {
        lcb_scale: 0.5,
        ..parameters.clone()
    };
    let both = (3..40).map(|hundreds| {
        [&parameters, &surest].map(|parameters| {
            let mut agent = mcts(hashed(), parameters);
            choose(&mut *agent, &game, &nodes(100 * hundreds))
        })
    });
    let mut differing = both.filter(|[choice, surest]| surest.best != choice.best);
    let [choice, surest] = differing.next().expect("it is always the most visited one");
    let moves = |choice: &Choice| -> Vec<shakmaty::Move> {
        choice.statistics.iter().map(|of| of.mv).collect()
    };
    let mut expected = moves(&choice);
    let place = expected
        .iter()
        .position(|&mv| Some(mv) == surest.best)
        .unwrap();
    expected[..=place].rotate_right(1);
    assert_eq!(moves(&surest), expected);
    let lines = &choice.report.lines;
    assert_eq!(lines.len(), 20);
    for (line, move_) in lines.iter().zip(&choice.statistics) {
        assert_eq!(line.moves[0], move_.mv);
        assert_eq!(line.score, Score::Expected(move_.q));
        assert_eq!(line.wdl, move_.wdl);
    }
    assert_eq!(choice.best, Some(lines[0].moves[0]));
    assert_eq!(choice.ponder, lines[0].moves.get(1).copied());
    for pair in choice.statistics.windows(2) {
        let key = |index: usize| (pair[index].visits, pair[index].q);
        assert!(pair[0].visits == 0 || key(0) >= key(1), "{pair:?}");
        assert!(pair[0].visits > 0 || pair[0].prior >= pair[1].prior);
    }
    for line in lines {
        let sum: f32 = line.wdl.iter().sum();
        assert!((sum - 1.0).abs() < 1e-5 && line.wdl.iter().all(|&p| p >= 0.0));
        let mut game = game.clone();
        for &mv in &line.moves {
            assert!(shakmaty::Position::legal_moves(game.position()).contains(&mv));
            game.play(mv);
        }
    }
}

#[test]
fn the_hash_bounds_the_tree_and_the_search_continues() {
    for (hash, limit) in [(1, 60_000), (2, 90_000)] {
        let parameters = Parameters {
            hash,
            ..parameters()
        };
        let mut agent = mcts(hashed(), &parameters);
        let mut game = game("startpos", "");
        for _ in 0..2 {
            let choice = choose(&mut *agent, &game, &nodes(limit));
            assert_eq!(choice.report.nodes, limit);
            let memory = choice.report.memory_use;
            assert!(memory > 0.3 && memory <= 1.0, "{memory}");
            game.play(choice.best.unwrap());
        }
    }
}

#[test]
fn many_threads_share_too_little_memory() {
    let parameters = Parameters {
        threads: 4,
        minibatch: 32,
        hash: 1,
        ..parameters()
    };
    let mut agent = mcts(hashed(), &parameters);
    let mut game = Game::default();
    for limit in [40_000, 60_000, 80_000] {
        let choice = choose(&mut *agent, &game, &nodes(limit));
        assert_eq!(choice.report.nodes, limit);
        // An evicted root has visits that none of its children has.
        let visits: u64 = choice.statistics.iter().map(|move_| move_.visits).sum();
        assert!(visits > 0 && visits < limit);
        game.play(choice.best.unwrap());
    }
}

#[test]
fn every_one_of_218_moves_is_considered() {
    let game = game("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1", "");
    let mut agent = mcts(hashed(), &parameters());
    let choice = choose(&mut *agent, &game, &nodes(20_000));
    assert_eq!(choice.statistics.len(), 218);
    assert_eq!(choice.report.lines[0].score, Score::Mate(1));

    let mates = |mv| {
        let mut after = game.clone();
        after.play(mv);
        shakmaty::Position::is_checkmate(after.position())
    };
    let mut others: Vec<_> = shakmaty::Position::legal_moves(game.position()).to_vec();
    others.retain(|&mv| !mates(mv));
    let limits = Limits {
        search_moves: others.clone(),
        ..nodes(20_000)
    };
    let choice = choose(&mut *agent, &game, &limits);
    assert_eq!(choice.statistics.len(), others.len());
    assert!(others.len() > 150, "{}", others.len());
    let prior: f32 = choice.statistics.iter().map(|move_| move_.prior).sum();
    assert!((prior - 1.0).abs() < 0.02, "{prior}");
}

#[test]
fn an_absolute_urgency_tries_every_move() {
    let game = game("startpos", "");
    let search = |parameters: &Parameters, limit| {
        choose(&mut *mcts(hashed(), parameters), &game, &nodes(limit))
    };
    let unvisited = |choice: &Choice| {
        let unvisited = choice.statistics.iter().filter(|move_| move_.visits == 0);
        unvisited.count()
    };
    let all = Parameters {
        fpu_strategy: FpuStrategy::Absolute,
        fpu_value: 1.0,
        ..parameters()
    };
    assert!(unvisited(&search(&parameters(), 40)) > 3);
    assert_eq!(unvisited(&search(&all, 40)), 0);
    // The optimistic values of untried moves are not reported.
    let early = search(&all, 5);
    assert!(unvisited(&early) > 10);
    assert!(early.statistics.iter().all(|move_| move_.q < 0.8));
}

#[test]
fn a_temperature_samples_moves_by_their_visits() {
    let game = game("startpos", "");
    let play = |seed| {
        let parameters = Parameters {
            temperature: 1.0,
            seed,
            ..parameters()
        };
        choose(&mut *mcts(hashed(), &parameters), &game, &nodes(400)).best
    };
    let moves: Vec<_> = (0..20).map(play).collect();
    assert_eq!(moves, (0..20).map(play).collect::<Vec<_>>());
    assert!(moves.iter().any(|&mv| mv != moves[0]));
}

#[test]
fn settings_that_do_not_affect_the_tree_keep_it() {
    let mut agent = mcts(hashed(), &parameters());
    let game = game("startpos", "");
    choose(&mut *agent, &game, &nodes(500));
    agent.adjust(&Options::from(Parameters {
        multi_pv: 3,
        ..parameters()
    }));
    let choice = choose(&mut *agent, &game, &nodes(600));
    assert_eq!(choice.report.lines.len(), 3);
    assert_eq!(choice.report.new_nodes, 100);
    agent.set_backend(std::sync::Arc::new(hashed()));
    agent.adjust(&Options::from(Parameters {
        threads: 3,
        ..parameters()
    }));
    let choice = choose(&mut *agent, &game, &nodes(700));
    assert_eq!(choice.report.new_nodes, 100);
    agent.adjust(&Options::from(Parameters {
        cpuct: 2.5,
        ..parameters()
    }));
    let choice = choose(&mut *agent, &game, &nodes(600));
    assert_eq!(choice.report.new_nodes, 600);
}

#[test]
fn gumbel_shares_few_visits_among_few_moves() {
    let parameters = Parameters {
        gumbel_moves: 4,
        ..parameters()
    };
    let game = game("startpos", "");
    let mut visited = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let parameters = Parameters {
            seed,
            ..parameters.clone()
        };
        let mut agent = mcts(uniform(), &parameters);
        let choice = choose(&mut *agent, &game, &nodes(33));
        assert_eq!(choice.report.nodes, 33);
        let drawn: Vec<_> = choice
            .statistics
            .iter()
            .filter(|move_| move_.visits > 0)
            .collect();
        assert_eq!(drawn.len(), 4);
        // Each move gets four visits in the first round and eight in the second.
        let visits: Vec<u64> = drawn.iter().map(|move_| move_.visits).collect();
        assert_eq!(visits, [12, 12, 4, 4]);
        let best = choice.best.unwrap();
        assert!(drawn[..2].iter().any(|move_| move_.mv == best));
        visited.extend(drawn.iter().map(|move_| game.format_move(move_.mv)));
    }
    // With equal priors, any move may be sampled.
    assert!(visited.len() > 12, "{visited:?}");
}

#[test]
fn root_noise_affects_only_the_root() {
    let noisy = Parameters {
        noise_epsilon: 0.5,
        ..parameters()
    };
    let game = game("startpos", "");
    let priors = |parameters: &Parameters| {
        let choice = choose(&mut *mcts(uniform(), parameters), &game, &nodes(200));
        let mut priors: Vec<f32> = choice.statistics.iter().map(|move_| move_.prior).collect();
        priors.sort_by(f32::total_cmp);
        priors
    };
    let even = priors(&parameters());
    assert!(even[19] / even[0] < 1.1);
    let uneven = priors(&noisy);
    assert!(uneven[19] > 2.0 * uneven[0], "{uneven:?}");
    // A repeated search samples moves at the root again, but the root's subtree is known.
    let mut agent = mcts(hashed(), &noisy);
    choose(&mut *agent, &game, &nodes(500));
    let again = choose(&mut *agent, &game, &nodes(500));
    assert_eq!(again.report.nodes, 500);
}
