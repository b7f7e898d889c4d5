//! Tablebases in the search: decided leaves, and their reports.

use crate::tablebase::{Tables, choose, game, game_at, generated};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use shakmaty::{CastlingMode, Chess, Color, Piece, Position, Setup, Square};
use std::sync::Arc;
use std::time::Duration;
use tessera::agent::{AgentKind, ConfigurableAgent};
use tessera::backend::Random;
use tessera::chess::Game;
use tessera::play::{Agent, Limits, Score};
use tessera::search::Parameters;
use tessera::tablebase::{Tablebase, Verdict};

/// Creates a search that relies only on the tables.
fn mcts(tablebase: Tablebase, threads: usize) -> Box<dyn ConfigurableAgent> {
    with_mates(false, tablebase, threads)
}

/// Creates a search in which `mate_search` enables the mate prover, which also knows three-piece
/// endings.
fn with_mates(
    mate_search: bool,
    tablebase: Tablebase,
    threads: usize,
) -> Box<dyn ConfigurableAgent> {
    build(&Parameters {
        threads,
        hash: 4,
        tablebase,
        mate_search,
        ..Parameters::default()
    })
}

fn build(parameters: &Parameters) -> Box<dyn ConfigurableAgent> {
    AgentKind::Mcts.build(Arc::new(Random::new(1)), &parameters.clone().into())
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
fn a_capture_into_a_won_ending_is_a_win_but_not_a_mate() {
    // Capturing the knight with the rook wins; nothing else does.
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

#[test]
fn a_lost_ending_is_not_a_mate_either() {
    // The only legal move captures the pawn, and the remaining rook wins.
    let game = game("8/8/8/8/8/1R6/P7/k1K5 b - - 0 1");
    let tables = Tables::write();
    // The table does not reveal the mate.
    let agent = &mut *mcts(tables.tablebase(), 1);
    let choice = choose(agent, &game, &nodes(100));
    let line = &choice.report.lines[0];
    assert_eq!(line.score, Score::Tablebase { won: false });
    assert_eq!(line.wdl, [0.0, 0.0, 1.0]);
    assert_eq!(line.moves_left, None);
    // The mate in two takes precedence over the table's result.
    let agent = &mut *with_mates(true, tables.tablebase(), 1);
    let choice = choose(agent, &game, &nodes(100));
    assert_eq!(choice.report.lines[0].score, Score::Mate(-2));
}

#[test]
fn a_drawn_ending_is_a_draw() {
    // The only legal move captures the pawn; the other pawn cannot promote.
    let game = game("8/8/8/7p/5k1K/7P/8/8 w - - 0 1");
    let tables = Tables::write();
    let choice = choose(&mut *mcts(tables.tablebase(), 1), &game, &nodes(100));
    let line = &choice.report.lines[0];
    assert_eq!(
        (line.score, line.wdl),
        (Score::Expected(0.0), [0.0, 1.0, 0.0])
    );
    assert!(choice.report.tablebase_hits > 0);
}

/// Capturing the knight with the rook wins, but the king's move mates in two.
const MATE_IN_TWO: &str = "7k/8/5K2/8/8/8/8/R5n1 w - - 0 1";

#[test]
fn a_mate_is_preferred_to_a_tables_win() {
    let tables = Tables::write();
    let game = game(MATE_IN_TWO);
    for limits in [
        nodes(20_000),
        Limits {
            mate: Some(2),
            ..nodes(20_000)
        },
        Limits {
            // It ends with the proof.
            move_time: Some(Duration::from_secs(600)),
            ..Limits::default()
        },
    ] {
        for mate_search in [false, true] {
            let agent = &mut *with_mates(mate_search, tables.tablebase(), 1);
            let (best, score, _) = best(&game, agent, &limits);
            assert_eq!((&*best, score), ("f6g6", Score::Mate(2)), "{limits:?}");
        }
    }
}

#[test]
fn time_is_saved_when_a_table_proves_a_win() {
    let tables = Tables::write();
    let limits = Limits {
        time: Some(Duration::from_secs(600)),
        ..Limits::default()
    };
    let agent = &mut *mcts(tables.tablebase(), 1);
    let game = game("7k/8/8/3n4/8/8/8/K2R4 w - - 0 1");
    let report = choose(agent, &game, &limits).report;
    assert_eq!(report.lines[0].score, Score::Tablebase { won: true });
    // In the planned time, there would be millions.
    assert!(report.nodes < 10_000, "{} nodes", report.nodes);
}

#[test]
fn an_ending_spoiled_by_the_50_move_rule_is_reported_as_a_draw() {
    let tables = Tables::write();
    for (rule50, score) in [
        (0, Score::Tablebase { won: true }),
        (90, Score::Expected(0.0)),
    ] {
        // The kings are far apart, so mate takes longer than ten plies.
        let game = game(&format!("8/8/8/4k3/8/8/8/KR6 w - - {rule50} 80"));
        let agent = &mut *mcts(tables.tablebase(), 1);
        assert_eq!(best(&game, agent, &nodes(50)).1, score);
    }
}

#[test]
fn the_tree_is_kept_where_all_moves_keep_the_result() {
    let tables = Tables::write();
    let agent = &mut *mcts(tables.tablebase(), 1);
    let game = game("8/8/8/4k3/8/8/8/KR6 w - - 0 1");
    let first = choose(agent, &game, &nodes(400)).report;
    let again = choose(agent, &game, &nodes(500)).report;
    assert_eq!((first.new_nodes, again.new_nodes), (400, 100));
}

/// The search's results for four pieces, based on tables of three pieces, agree with the tables of
/// four.
#[test]
fn claims_agree_with_generated_tables() {
    let Some(folder) = generated() else { return };
    let oracle = Tablebase::new(folder.to_str().unwrap());
    let tables = Tables::write();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut counts = [0; 2];
    for round in 0..3000 {
        let pieces = [
            "KRkn", "KQkp", "KPkp", "KRkp", "KNPk", "KRkb", "KQkr", "KBPk",
        ];
        let Some(position) = scatter(pieces[round % pieces.len()], &mut random) else {
            continue;
        };
        let rule50 = random.random_range(0..95);
        let game = game_at(&position, rule50);
        let moves = position.legal_moves();
        let Some(known) = oracle.best_moves(&game, &moves) else {
            continue;
        };
        let agent = &mut *mcts(tables.tablebase(), 1);
        let choice = choose(agent, &game, &nodes(400));
        let claimed = match choice.report.lines[0].score {
            Score::Tablebase { won: true } | Score::Mate(1..) => Verdict::Win,
            Score::Tablebase { won: false } | Score::Mate(_) => Verdict::Loss,
            Score::Expected(_) => continue,
        };
        assert_eq!(claimed, known.verdict, "{position:?} {rule50}");
        counts[usize::from(claimed == Verdict::Loss)] += 1;
    }
    assert!(counts[0] > 100 && counts[1] > 3, "{counts:?}");
}

/// Places the pieces on random squares; returns `None` if the position is not playable.
fn scatter(pieces: &str, random: &mut impl Rng) -> Option<Chess> {
    let mut setup = Setup::empty();
    for piece in pieces.chars() {
        let square = Square::new(random.random_range(0..64));
        setup.board.set_piece_at(square, Piece::from_char(piece)?);
    }
    setup.turn = Color::from_white(random.random());
    let position: Chess = setup.position(CastlingMode::Standard).ok()?;
    let complete = position.board().occupied().count() == pieces.len();
    (complete && !position.legal_moves().is_empty()).then_some(position)
}
