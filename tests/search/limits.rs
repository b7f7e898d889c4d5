//! Tests when the searching player answers.

use crate::search::backends::{Scripted, hashed, uniform};
use crate::search::{choose, game, uci};
use cpu_time::ProcessTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tessera::agent::{AgentKind, ConfigurableAgent};
use tessera::backend::Value;
use tessera::chess::Game;
use tessera::play::{Agent, Choice, Control, Limits, Report};
use tessera::search::Parameters;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn mcts(backend: Scripted, threads: usize) -> Box<dyn ConfigurableAgent> {
    let parameters = Parameters {
        threads,
        hash: 16,
        move_overhead: 10,
        ..Parameters::default()
    };
    AgentKind::Mcts.build(backend.shared(), &parameters.clone().into())
}

/// Runs a search while `steer` controls it from another thread.
fn steered(
    agent: &mut dyn Agent,
    game: &Game,
    limits: &Limits,
    steer: impl FnOnce(&Control) + Send,
) -> (Choice, Duration) {
    let control = Control::default();
    let began = Instant::now();
    let choice = std::thread::scope(|scope| {
        scope.spawn(|| steer(&control));
        agent.choose(game, limits, &control, &mut |_| {}).unwrap()
    });
    (choice, began.elapsed())
}

#[test]
fn stop_takes_effect_within_a_batch() {
    for threads in [1, 2] {
        let mut agent = mcts(hashed().delayed(MS(5)), threads);
        let mut told = None;
        let limits = Limits {
            infinite: true,
            ..Limits::default()
        };
        let (choice, _) = steered(&mut *agent, &Game::default(), &limits, |control| {
            std::thread::sleep(MS(150));
            control.stop();
            told = Some(Instant::now());
        });
        let delay = told.unwrap().elapsed();
        assert!(delay < MS(300), "{delay:?}");
        assert!(choice.report.nodes > 10);
    }
}

#[test]
fn depth_is_the_mean_depth_of_the_leaves() {
    let limits = Limits {
        depth: Some(4),
        ..Limits::default()
    };
    let choice = choose(&mut *mcts(hashed(), 1), &Game::default(), &limits);
    assert_eq!(choice.report.depth, 4);
    assert!(choice.report.selective_depth > 4);
}

#[test]
fn a_fixed_time_is_kept() {
    let limits = Limits {
        move_time: Some(MS(200)),
        ..Limits::default()
    };
    let began = Instant::now();
    let choice = choose(
        &mut *mcts(hashed().delayed(MS(2)), 1),
        &Game::default(),
        &limits,
    );
    let taken = began.elapsed();
    assert!(taken > MS(120) && taken < MS(320), "{taken:?}");
    assert!(choice.best.is_some());
}

#[test]
fn the_clock_is_respected_even_when_it_runs_out() {
    for (time, within) in [(10, 120), (100, 160), (1000, 700)] {
        let limits = Limits {
            time: Some(MS(time)),
            opponent_time: Some(MS(time)),
            ..Limits::default()
        };
        let mut agent = mcts(hashed().delayed(MS(3)), 1);
        let mut game = Game::default();
        for _ in 0..2 {
            let began = Instant::now();
            let choice = choose(&mut *agent, &game, &limits);
            let taken = began.elapsed();
            assert!(taken < MS(within), "{time}: {taken:?}");
            game.play(choice.best.unwrap());
        }
    }
}

#[test]
fn a_fall_of_the_value_extends_the_search() {
    let fallen = Arc::new(AtomicBool::new(false));
    let falls = Arc::clone(&fallen);
    let backend = Scripted::with_turn(move |turn, moves| {
        let white = if falls.load(Relaxed) { -0.4 } else { 0.5 };
        let value = Value {
            q: turn.fold_wb(white, -white),
            ..Value::default()
        };
        // One move is clearly the best, so only the value is uncertain.
        let mut logits = vec![0.0; moves.len()];
        logits[0] = 9.0;
        (value, logits)
    });
    let parameters = Parameters {
        threads: 1,
        hash: 16,
        move_overhead: 0,
        smart_pruning: 0.0,
        mate_search: false,
        ..Parameters::default()
    };
    let mut agent = AgentKind::Mcts.build(backend.shared(), &parameters.clone().into());
    let mut game = Game::default();
    let limits = Limits {
        nodes: Some(20),
        ..Limits::default()
    };
    let choice = choose(&mut *agent, &game, &limits);
    game.play(choice.best.unwrap());
    game.play(choice.ponder.unwrap());
    fallen.store(true, Relaxed);
    // The plan is 200 ms per move; a clear choice takes little more than half of that.
    let limits = Limits {
        time: Some(MS(5000)),
        ..Limits::default()
    };
    let began = Instant::now();
    choose(&mut *agent, &game, &limits);
    let taken = began.elapsed();
    assert!(taken > MS(180), "{taken:?}");
}

#[test]
fn a_slow_network_does_not_cost_the_game() {
    // A batch of 16 takes longer than the remaining time, so batches must shrink.
    let backend = hashed().delayed_each(MS(4));
    let mut agent = mcts(backend, 1);
    let limits = Limits {
        time: Some(MS(400)),
        ..Limits::default()
    };
    let began = Instant::now();
    choose(&mut *agent, &Game::default(), &limits);
    assert!(began.elapsed() < MS(400), "{:?}", began.elapsed());
}

#[test]
fn a_machine_that_stalls_does_not_change_a_search_without_a_clock() {
    let depth = Limits {
        depth: Some(3),
        ..Limits::default()
    };
    let nodes = Limits {
        nodes: Some(400),
        ..Limits::default()
    };
    for limits in [depth, nodes] {
        let found = |stall| {
            let mut agent = mcts(hashed().stalled(20, stall), 1);
            let choice = choose(&mut *agent, &Game::default(), &limits);
            (choice.report.nodes, choice.report.lines, choice.statistics)
        };
        // A stall of one second is twice as long as a batch that may delay a `stop`.
        assert_eq!(found(MS(0)), found(MS(1000)));
    }
}

#[test]
fn a_forced_move_is_played_at_once() {
    let game = game("k7/8/8/8/8/8/8/1R2K3 b - - 0 1", "");
    let limits = Limits {
        time: Some(MS(60_000)),
        ..Limits::default()
    };
    let began = Instant::now();
    let choice = choose(&mut *mcts(hashed(), 1), &game, &limits);
    assert_eq!(choice.statistics.len(), 1);
    assert!(began.elapsed() < MS(500));
}

#[test]
fn pondering_ends_with_the_hit_and_its_own_time() {
    let limits = Limits {
        ponder: true,
        time: Some(MS(5000)),
        ..Limits::default()
    };
    let (choice, taken) = steered(
        &mut *mcts(hashed(), 1),
        &Game::default(),
        &limits,
        |control| {
            std::thread::sleep(MS(100));
            control.ponder_hit();
        },
    );
    assert!(taken >= MS(100) && taken < MS(2800), "{taken:?}");
    assert!(choice.best.is_some());
    // Before the ponder hit, only a stop ends the search, whatever other limits have been reached.
    let limits = Limits {
        ponder: true,
        nodes: Some(50),
        ..Limits::default()
    };
    let (choice, taken) = steered(
        &mut *mcts(hashed(), 1),
        &Game::default(),
        &limits,
        |control| {
            std::thread::sleep(MS(80));
            control.stop();
        },
    );
    assert!(taken >= MS(80));
    assert_eq!(choice.report.nodes, 50);
}

#[test]
fn infinite_waits_even_when_all_is_proven() {
    let game = game("6k1/8/6K1/8/8/8/8/R7 b - - 0 1", "");
    let limits = Limits {
        infinite: true,
        ..Limits::default()
    };
    let (choice, taken) = steered(&mut *mcts(uniform(), 1), &game, &limits, |control| {
        std::thread::sleep(MS(300));
        control.stop();
    });
    assert!(taken >= MS(300));
    assert!(choice.best.is_some());
}

#[test]
fn a_failing_backend_ends_the_search_and_can_be_retried() {
    for threads in [1, 3] {
        let mut agent = mcts(hashed().failing(5..12), threads);
        let limits = Limits {
            nodes: Some(5000),
            ..Limits::default()
        };
        let game = Game::default();
        let mut failures = 0;
        let choice = loop {
            match agent.choose(&game, &limits, &Control::default(), &mut |_| {}) {
                Ok(choice) => break choice,
                Err(_) => failures += 1,
            }
        };
        assert!(failures > 0);
        assert_eq!(choice.report.nodes, 5000);
        let visits: u64 = choice.statistics.iter().map(|move_| move_.visits).sum();
        assert_eq!(visits, 4999);
    }
}

#[test]
fn news_are_reported_during_the_search() {
    let limits = Limits {
        move_time: Some(MS(1500)),
        ..Limits::default()
    };
    let mut reports: Vec<Report> = Vec::new();
    let control = Control::default();
    let game = Game::default();
    let choice = mcts(hashed().delayed(MS(1)), 1)
        .choose(&game, &limits, &control, &mut |report| {
            reports.push(report.clone());
        })
        .unwrap();
    assert!((2..=15).contains(&reports.len()), "{}", reports.len());
    assert_eq!(reports.last(), Some(&choice.report));
    assert!(
        reports
            .windows(2)
            .all(|pair| pair[0].nodes <= pair[1].nodes)
    );
    assert_eq!(
        uci(&game, choice.best),
        uci(&game, choice.report.lines[0].moves.first().copied())
    );
}

#[test]
fn interruptions_leave_the_tree_whole() {
    let parameters = Parameters {
        threads: 4,
        minibatch: 8,
        hash: 1,
        ..Parameters::default()
    };
    let mut agent = AgentKind::Mcts.build(hashed().shared(), &parameters.clone().into());
    let mut game = Game::default();
    for round in 0..60u64 {
        if game.ending().is_some() {
            game = Game::default();
        }
        let limits = match round % 3 {
            0 => Limits {
                infinite: true,
                ..Limits::default()
            },
            1 => Limits {
                ponder: true,
                time: Some(MS(300)),
                ..Limits::default()
            },
            _ => Limits {
                time: Some(MS(400)),
                increment: MS(1),
                ..Limits::default()
            },
        };
        let (choice, _) = steered(&mut *agent, &game, &limits, |control| {
            std::thread::sleep(MS(round * 7 % 40));
            match round % 2 {
                0 => control.ponder_hit(),
                _ => control.stop(),
            }
            std::thread::sleep(MS(round * 3 % 20));
            control.stop();
        });
        let best = choice.best.unwrap();
        assert!(shakmaty::Position::legal_moves(game.position()).contains(&best));
        let visits: u64 = choice.statistics.iter().map(|move_| move_.visits).sum();
        assert!(visits < choice.report.nodes.max(1));
        game.play(best);
    }
}

/// Threads that wait for each other leave the CPU to those that search, however many there are.
#[test]
fn a_thousand_threads_leave_processor_time_for_each_other() {
    let mut agent = mcts(hashed().delayed(MS(1)), 1024);
    let limits = Limits {
        nodes: Some(2000),
        ..Limits::default()
    };
    let before = ProcessTime::now();
    let choice = choose(&mut *agent, &Game::default(), &limits);
    let taken = before.elapsed();
    assert_eq!(choice.report.nodes, 2000);
    assert!(taken < MS(4000), "{taken:?}");
}
