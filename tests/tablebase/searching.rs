//! Tables in the search: leaves that they decide, and what is told of them.

use crate::{Tables, choose, game};
use std::sync::Arc;
use tessera::agent::{Agent, AgentKind, Limits, Score};
use tessera::chess::Game;
use tessera::nn::Random;
use tessera::search::Parameters;
use tessera::tablebase::Tablebase;

fn mcts(tablebase: Tablebase, threads: usize) -> Box<dyn Agent> {
    let parameters = Parameters {
        threads,
        hash: 4,
        tablebase,
        ..Parameters::default()
    };
    AgentKind::Mcts.build(Arc::new(Random::new(1)), &parameters)
}

fn nodes(nodes: u64) -> Limits {
    Limits {
        nodes: Some(nodes),
        ..Limits::default()
    }
}

fn best(game: &Game, agent: &mut dyn Agent, limits: &Limits) -> (String, Score, u64) {
    let choice = choose(agent, game, limits);
    let best = game.format_move(choice.best.unwrap());
    let hits = choice.report.tablebase_hits;
    (best, choice.report.lines[0].score, hits)
}

#[test]
fn a_capture_into_a_won_ending_is_a_win_but_no_mate() {
    // Rook takes knight; nothing else wins.
    let game = game("7k/8/8/3n4/8/8/8/K2R4 w - - 0 1");
    let tables = Tables::write();
    for threads in [1, 3] {
        let agent = &mut *mcts(tables.tablebase(), threads);
        let (best, score, hits) = best(&game, agent, &nodes(300));
        assert_eq!((&*best, score), ("d1d5", Score::Tablebase { won: true }));
        assert!(hits > 0);
    }
    let agent = &mut *mcts(Tablebase::default(), 1);
    let (_, score, hits) = best(&game, agent, &nodes(300));
    assert!(matches!(score, Score::Expected(_)) && hits == 0);
}
