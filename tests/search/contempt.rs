//! Tests rescaled results (contempt) in the search.

use crate::search::backends::Scripted;
use crate::search::{choose, game, play, uci};
use tessera::agent::{AgentKind, ConfigurableAgent};
use tessera::backend::Value;
use tessera::play::{Limits, Score};
use tessera::search::{Contempt, ContemptMode, Parameters};

fn parameters(contempt: Contempt) -> Parameters {
    Parameters {
        threads: 1,
        hash: 16,
        contempt,
        ..Parameters::default()
    }
}

fn against(elo: f32) -> Contempt {
    Contempt {
        elo,
        ..Contempt::default()
    }
}

/// Returns a backend in which every position is even and draws have a probability of one half.
fn even() -> Scripted {
    Scripted::new(|_, moves| {
        let value = Value {
            d: 0.5,
            ..Value::default()
        };
        (value, vec![0.0; moves.len()])
    })
}

fn mcts(contempt: Contempt) -> Box<dyn ConfigurableAgent> {
    AgentKind::Mcts.build(even().shared(), &parameters(contempt).into())
}

fn nodes(nodes: u64) -> Limits {
    Limits {
        nodes: Some(nodes),
        ..Limits::default()
    }
}

/// Returns the reported value of the best move.
fn told(contempt: Contempt, limits: &Limits, moves: &str) -> (f32, [f32; 3]) {
    let choice = choose(&mut *mcts(contempt), &game("startpos", moves), limits);
    let line = &choice.report.lines[0];
    let Score::Expected(q) = line.score else {
        panic!("{line:?}");
    };
    assert_eq!(q, choice.statistics[0].q);
    assert!((line.wdl.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    assert!((line.wdl[0] - line.wdl[2] - q).abs() < 1e-5);
    (q, line.wdl)
}

#[test]
fn contempt_affects_the_tree_but_not_the_report() {
    let inside = |elo| Contempt {
        objectivity: 0.0,
        ..against(elo)
    };
    for moves in ["", "e2e4"] {
        let stronger = told(inside(100.0), &nodes(200), moves).0;
        assert!(stronger > 0.2, "{stronger}");
        let weaker = told(inside(-100.0), &nodes(200), moves).0;
        assert!((weaker + stronger).abs() < 1e-3, "{weaker} {stronger}");
        let objective = told(against(100.0), &nodes(200), moves).0;
        assert!(objective.abs() < 0.02, "{objective}");
        assert_eq!(told(inside(0.0), &nodes(200), moves).0, 0.0);
    }
    // An analysis takes the view of one colour, regardless of the side to move.
    let white = Contempt {
        mode: ContemptMode::WhiteSideAnalysis,
        ..inside(100.0)
    };
    assert!(told(white.clone(), &nodes(200), "").0 > 0.2);
    assert!(told(white, &nodes(200), "e2e4").0 < -0.2);
}

#[test]
fn draws_become_as_likely_as_between_such_players() {
    let strong = Contempt {
        calibration_elo: 3500.0,
        ..against(0.0)
    };
    let weak = Contempt {
        calibration_elo: 1500.0,
        ..against(0.0)
    };
    let drawn = |contempt| told(contempt, &nodes(100), "").1[1];
    let (strong, weak) = (drawn(strong), drawn(weak));
    assert!(strong > 0.8 && weak < 0.3, "{strong} {weak}");
}

#[test]
fn a_draw_is_for_the_weaker() {
    let mut game = game("4k3/8/7p/7P/8/8/8/R3K3 w - - 0 1", "");
    play(
        &mut game,
        "a1b1 e8e7 b1a1 e7e8 a1b1 e8e7 b1a1 e7e8 a1b1 e8e7",
    );
    for (elo, wanted) in [(-100.0, true), (100.0, false)] {
        let choice = choose(&mut *mcts(against(elo)), &game, &nodes(2000));
        let repeats = uci(&game, choice.best) == "b1a1";
        assert_eq!(repeats, wanted, "{:?}", choice.report.lines);
    }
}

#[test]
fn the_tree_is_kept_for_the_same_side_only() {
    let mut agent = mcts(against(100.0));
    let mut game = game("startpos", "");
    let choice = choose(&mut *agent, &game, &nodes(2000));
    let half = Contempt {
        objectivity: 0.5,
        ..against(100.0)
    };
    agent.adjust(&parameters(half).into());
    let again = choose(&mut *agent, &game, &nodes(2500));
    assert_eq!(again.report.new_nodes, 500);
    game.play(choice.best.unwrap());
    game.play(choice.ponder.unwrap());
    let next = choose(&mut *agent, &game, &nodes(2000));
    assert!(next.report.new_nodes < 2000);
    game.play(next.best.unwrap());
    let other = choose(&mut *agent, &game, &nodes(2000));
    assert_eq!(other.report.new_nodes, 2000);
    agent.adjust(&parameters(against(50.0)).into());
    let less = choose(&mut *agent, &game, &nodes(2000));
    assert_eq!(less.report.new_nodes, 2000);
}
