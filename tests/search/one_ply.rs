//! Tests the players that do not search: `policy` and `value`.

use crate::search::backends::{Scripted, hashed, uniform};
use crate::search::{choose, game, uci};
use std::time::{Duration, Instant};
use tessera::agent::{AgentKind, Options};
use tessera::backend::Value;
use tessera::encode::policy_index;
use tessera::play::{Control, Limits, Score};

/// Returns a backend in which every position has the same value for the side to move.
fn content(q: f32) -> Scripted {
    Scripted::new(move |_, moves| {
        let value = Value {
            q,
            ..Value::default()
        };
        (value, vec![0.0; moves.len()])
    })
}

#[test]
fn policy_plays_the_greatest_prior() {
    let game = game("startpos", "");
    let favourite = game.parse_move("g1f3").unwrap();
    let index = policy_index(favourite, shakmaty::Color::White);
    let backend = Scripted::new(move |_, moves| {
        let logit = |&mv: &u16| if mv == index { 3.0 } else { 0.0 };
        (Value::default(), moves.iter().map(logit).collect())
    });
    let mut agent = AgentKind::Policy.build(backend.shared(), &Options::default());
    let choice = choose(&mut *agent, &game, &Limits::default());
    assert_eq!(uci(&game, choice.best), "g1f3");
    assert_eq!(choice.statistics.len(), 20);
    let sum: f32 = choice.statistics.iter().map(|move_| move_.prior).sum();
    assert!((sum - 1.0).abs() < 1e-5);
    assert!(choice.statistics[0].prior > 0.5);
    let limits = Limits {
        search_moves: vec![game.parse_move("a2a3").unwrap()],
        ..Limits::default()
    };
    let choice = choose(&mut *agent, &game, &limits);
    assert_eq!(uci(&game, choice.best), "a2a3");
    assert_eq!(choice.report.lines.len(), 1);
}

#[test]
fn without_a_legal_move_there_is_no_choice() {
    for fen in [
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
        "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1",
    ] {
        for kind in [AgentKind::Policy, AgentKind::Value] {
            let mut agent = kind.build(uniform().shared(), &Options::default());
            let choice = choose(&mut *agent, &game(fen, ""), &Limits::default());
            assert_eq!(choice.best, None);
        }
    }
}

#[test]
fn value_takes_mate_in_one_over_any_evaluation() {
    let game = game("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "");
    let mut agent = AgentKind::Value.build(content(-0.99).shared(), &Options::default());
    let choice = choose(&mut *agent, &game, &Limits::default());
    assert_eq!(uci(&game, choice.best), "a1a8");
    assert_eq!(choice.report.lines[0].score, Score::Mate(1));
}

#[test]
fn value_maximises_over_the_positions_that_arise() {
    let position = game("startpos", "");
    let key = game("startpos", "b2b4").current().key;
    let backend = Scripted::new(move |seen, moves| {
        let q = if seen == key { -0.3 } else { 0.1 };
        let value = Value {
            q,
            d: 0.2,
            ..Value::default()
        };
        (value, vec![0.0; moves.len()])
    });
    let mut agent = AgentKind::Value.build(backend.shared(), &Options::default());
    let choice = choose(&mut *agent, &position, &Limits::default());
    assert_eq!(uci(&position, choice.best), "b2b4");
    assert_eq!(choice.statistics[0].q, 0.3);
    assert!((choice.statistics[0].wdl[0] - 0.55).abs() < 1e-6);
    assert_eq!(choice.statistics[1].q, -0.1);
}

#[test]
fn value_stalemates_only_when_losing() {
    // Qf7 stalemates; all other moves keep the queen.
    let position = game("7k/8/6K1/8/8/5Q2/8/8 w - - 0 1", "");
    for (theirs, stalemate) in [(-0.5, false), (0.5, true)] {
        let mut agent = AgentKind::Value.build(content(theirs).shared(), &Options::default());
        let limits = Limits {
            search_moves: ["f3f7", "f3f5"]
                .map(|mv| position.parse_move(mv).unwrap())
                .to_vec(),
            ..Limits::default()
        };
        let choice = choose(&mut *agent, &position, &limits);
        assert_eq!(uci(&position, choice.best) == "f3f7", stalemate);
    }
}

#[test]
fn value_repeats_only_when_it_wants_a_draw() {
    let position = game(
        "4k3/8/8/8/8/8/8/R3K3 w - - 0 1",
        "a1b1 e8e7 b1a1 e7e8 a1b1 e8e7",
    );
    for (theirs, repeats) in [(-0.4, false), (0.4, true)] {
        let mut agent = AgentKind::Value.build(content(theirs).shared(), &Options::default());
        let choice = choose(&mut *agent, &position, &Limits::default());
        assert_eq!(uci(&position, choice.best) == "b1a1", repeats, "{theirs}");
    }
}

#[test]
fn value_sees_a_claim_that_the_opponent_could_make() {
    // After Ke7, Ra1 leads to a new position, but Ke8 then repeats the starting position for the
    // third time.
    let line = "a1b1 e8d7 b1a1 d7e8 a1b1 e8e7";
    let position = game("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", line);
    let mut agent = AgentKind::Value.build(content(-0.4).shared(), &Options::default());
    let choice = choose(&mut *agent, &position, &Limits::default());
    let rook = choice
        .statistics
        .iter()
        .find(|statistics| uci(&position, Some(statistics.mv)) == "b1a1")
        .unwrap();
    assert_eq!(rook.q, 0.0);
    assert!(choice.statistics[0].q > 0.3);
}

#[test]
fn an_early_answer_is_kept_back_while_pondering_or_infinite() {
    let game = game("startpos", "");
    for kind in [AgentKind::Policy, AgentKind::Value] {
        for (infinite, ponder) in [(true, false), (false, true), (true, true)] {
            let limits = Limits {
                infinite,
                ponder,
                ..Limits::default()
            };
            let control = Control::default();
            let mut agent = kind.build(hashed().shared(), &Options::default());
            let began = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    match infinite {
                        true => control.stop(),
                        false => control.ponder_hit(),
                    }
                });
                let choice = agent.choose(&game, &limits, &control, &mut |_| {}).unwrap();
                assert!(choice.best.is_some());
            });
            assert!(began.elapsed() >= Duration::from_millis(30));
        }
    }
}

#[test]
fn a_failing_backend_is_an_error() {
    let game = game("startpos", "");
    for kind in [AgentKind::Policy, AgentKind::Value] {
        let mut agent = kind.build(uniform().failing(0..9).shared(), &Options::default());
        let limits = Limits::default();
        let answer = agent.choose(&game, &limits, &Control::default(), &mut |_| {});
        assert!(answer.is_err());
    }
}
