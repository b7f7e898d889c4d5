//! Moves at the root: those that are kept, and their results.

use crate::tablebase::{Tables, choose, game, game_at, generated, verdict_of};
use rand::seq::IndexedRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use shakmaty::{CastlingMode, Chess, Color, Move, MoveList, Position};
use std::fs;
use std::sync::Arc;
use tessera::agent::AgentKind;
use tessera::backend::Random;
use tessera::chess::{Ending, Game};
use tessera::play::{Limits, Score};
use tessera::search::Parameters;
use tessera::tablebase::{Tablebase, Verdict};

/// Returns the value of each move for the player: the number of plies to the mate or pawn move that
/// the winner can force, including this move; it is negative if the player loses.
fn move_values(tables: &Tables, game: &Game) -> Vec<(Move, i32)> {
    let moves = game.position().legal_moves();
    let worth = |mv: Move| {
        let mut game = game.clone();
        game.play(mv);
        match game.ending() {
            Some(Ending::Checkmate) => 1,
            Some(_) => 0,
            None => {
                let value = -tables.value(game.position()).unwrap();
                match mv.is_zeroing() {
                    true => value.signum(),
                    false => value + value.signum(),
                }
            }
        }
    };
    moves.into_iter().map(|mv| (mv, worth(mv))).collect()
}

fn those(moves: &[(Move, i32)], wanted: impl Fn(i32) -> bool) -> Vec<Move> {
    let wanted = moves.iter().filter(|&&(_, worth)| wanted(worth));
    wanted.map(|&(mv, _)| mv).collect()
}

/// Returns a sample of positions that have a legal move, from each endgame.
fn samples(tables: &Tables, step: usize) -> impl Iterator<Item = (Chess, i32)> {
    let all = tables.endgames.iter();
    all.flat_map(move |endgame| endgame.positions().step_by(step))
        .filter(|(position, _)| !position.legal_moves().is_empty())
}

fn best(tablebase: &Tablebase, game: &Game) -> (Vec<Move>, Verdict) {
    let moves = game.position().legal_moves();
    let best = tablebase.best_moves(game, &moves).unwrap();
    assert_eq!(best.hits, moves.len() as u64);
    (best.moves, best.verdict)
}

#[test]
fn exactly_the_moves_that_keep_the_result_are_kept() {
    let tables = Tables::write();
    let tablebase = tables.tablebase();
    for (position, value) in samples(&tables, 211) {
        let game = game_at(&position, 0);
        let worth = move_values(&tables, &game);
        let keeping = those(&worth, |worth| worth.signum() == value.signum());
        assert_eq!(best(&tablebase, &game), (keeping, verdict_of(value)));
    }
}

#[test]
fn near_the_50_move_rule_only_the_best_moves_are_kept() {
    let tables = Tables::write();
    let tablebase = tables.tablebase();
    let decided = samples(&tables, 211).filter(|&(_, value)| value != 0);
    for (position, value) in decided {
        let distance = value.unsigned_abs();
        for (rule50, verdict) in [
            (100 - distance, verdict_of(value)),
            (101 - distance, Verdict::Draw),
        ] {
            let game = game_at(&position, rule50);
            let worth = move_values(&tables, &game);
            // One ply later, the rule would already apply; a pawn move resets the counter.
            if rule50 >= 99
                || worth
                    .iter()
                    .any(|&(mv, worth)| worth > 0 && mv.is_zeroing())
            {
                continue;
            }
            // The quickest win or the slowest loss.
            let best_worth = worth
                .iter()
                .map(|&(_, worth)| worth)
                .filter(|&worth| worth != 0);
            let best_worth = match value > 0 {
                true => best_worth.filter(|&worth| worth > 0).min().unwrap(),
                false => best_worth.min().unwrap(),
            };
            let keeping = those(&worth, |worth| worth == best_worth);
            assert_eq!(
                best(&tablebase, &game),
                (keeping, verdict),
                "{position:?} {rule50}"
            );
        }
    }
}

#[test]
fn after_a_repetition_only_the_shortest_wins_are_kept() {
    let tables = Tables::write();
    let tablebase = tables.tablebase();
    let mut game = game("8/8/8/4k3/8/8/8/KR6 w - - 0 1");
    let all = game.position().legal_moves();
    assert_eq!(best(&tablebase, &game), (all.to_vec(), Verdict::Win));
    for mv in ["b1b2", "e5e4", "b2b1", "e4e5"] {
        game.play(game.parse_move(mv).unwrap());
    }
    assert_eq!(game.current().repetitions, 1);
    let worth = move_values(&tables, &game);
    let shortest = worth
        .iter()
        .map(|&(_, worth)| worth)
        .filter(|&worth| worth > 0);
    let shortest = shortest.min().unwrap();
    let (kept, verdict) = best(&tablebase, &game);
    assert_eq!(
        (&kept, verdict),
        (&those(&worth, |worth| worth == shortest), Verdict::Win)
    );
    assert!(kept.len() < all.len());
}

#[test]
fn without_dtz_tables_wdl_tables_keep_the_result() {
    let tables = Tables::write();
    for name in ["KQvK.rtbz", "KRvK.rtbz", "KPvK.rtbz"] {
        fs::remove_file(tables.folder.path().join(name)).unwrap();
    }
    let tablebase = tables.tablebase();
    assert_eq!(
        (tablebase.inventory().wdl, tablebase.inventory().dtz),
        (5, 0)
    );
    for (position, value) in samples(&tables, 499) {
        let game = game_at(&position, 0);
        let worth = move_values(&tables, &game);
        let keeping = those(&worth, |worth| worth.signum() == value.signum());
        assert_eq!(best(&tablebase, &game), (keeping, verdict_of(value)));
    }
}

#[test]
fn positions_without_tables_keep_all_their_moves() {
    let tables = Tables::write();
    let tablebase = tables.tablebase();
    for fen in [
        "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
        "8/8/8/4kq2/8/8/8/K6Q w - - 0 1",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    ] {
        let game = game(fen);
        let moves = game.position().legal_moves();
        assert_eq!(tablebase.best_moves(&game, &moves), None, "{fen}");
    }
    let game = game("8/8/8/4k3/8/8/8/KR6 w - - 0 1");
    assert_eq!(tablebase.best_moves(&game, &[]), None);
}

/// Returns the defender's most stubborn reply.
fn stubborn(tables: &Tables, game: &Game) -> Move {
    let worth = move_values(tables, game);
    let resistance = |worth: i32| match worth {
        0 => i32::MAX,
        worth => -worth,
    };
    let best = worth.iter().max_by_key(|&&(_, worth)| resistance(worth));
    best.unwrap().0
}

#[test]
fn every_player_adopts_tables_set_later() {
    let tables = Tables::write();
    let without = Parameters {
        threads: 1,
        hash: 1,
        ..Parameters::default()
    };
    let with = Parameters {
        tablebase: tables.tablebase(),
        ..without.clone()
    };
    let limits = Limits {
        nodes: Some(4),
        ..Limits::default()
    };
    let game = game("8/8/8/4k3/8/8/8/KR6 w - - 0 1");
    for kind in [AgentKind::Mcts, AgentKind::Policy, AgentKind::Value] {
        let mut agent = kind.build(Arc::new(Random::new(1)), &without.clone().into());
        for (parameters, known) in [(&with, true), (&without, false)] {
            agent.adjust(&parameters.clone().into());
            let report = choose(&mut *agent, &game, &limits).report;
            assert_eq!(report.tablebase_hits > 0, known, "{kind:?}");
        }
    }
}

#[test]
fn every_player_wins_won_positions() {
    let tables = Tables::write();
    let parameters = Parameters {
        threads: 1,
        hash: 1,
        tablebase: tables.tablebase(),
        ..Parameters::default()
    };
    let limits = Limits {
        nodes: Some(4),
        ..Limits::default()
    };
    let won = samples(&tables, 4001)
        .filter(|&(ref position, value)| value > 0 && position.turn() == Color::White);
    let won: Vec<_> = won.collect();
    assert!(won.len() > 20, "{}", won.len());
    for kind in [AgentKind::Mcts, AgentKind::Policy, AgentKind::Value] {
        for (number, (position, value)) in won.iter().enumerate() {
            let mut agent = kind.build(
                Arc::new(Random::new(number as u64)),
                &parameters.clone().into(),
            );
            // Some positions leave slack under the 50-move rule, and others leave none.
            let rule50 = if number % 2 == 0 {
                0
            } else {
                100 - *value as u32
            };
            let mut game = game_at(position, rule50);
            while game.ending().is_none() {
                let choice = choose(&mut *agent, &game, &limits);
                let score = choice.report.lines[0].score;
                assert!(
                    matches!(score, Score::Tablebase { won: true } | Score::Mate(1..)),
                    "{score:?}"
                );
                assert!(choice.report.tablebase_hits > 0);
                game.play(choice.best.unwrap());
                if game.ending().is_none() {
                    game.play(stubborn(&tables, &game));
                }
            }
            assert_eq!(
                game.ending(),
                Some(Ending::Checkmate),
                "{kind:?} {position:?}"
            );
        }
    }
}

#[test]
fn no_player_loses_drawn_positions() {
    let tables = Tables::write();
    let parameters = Parameters {
        threads: 1,
        hash: 1,
        tablebase: tables.tablebase(),
        ..Parameters::default()
    };
    let limits = Limits {
        nodes: Some(4),
        ..Limits::default()
    };
    let pawn = &tables.endgames[2];
    let drawn = pawn.positions().filter(|&(ref position, value)| {
        value == 0 && position.turn() == Color::Black && !position.legal_moves().is_empty()
    });
    let drawn: Vec<_> = drawn.step_by(3001).collect();
    for kind in [AgentKind::Mcts, AgentKind::Policy, AgentKind::Value] {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for (position, _) in &drawn {
            let mut agent = kind.build(Arc::new(Random::new(2)), &parameters.clone().into());
            let mut game = game_at(position, 0);
            while game.ending().is_none() {
                let choice = choose(&mut *agent, &game, &limits);
                let line = &choice.report.lines[0];
                assert_eq!(line.score, Score::Expected(0.0));
                assert_eq!(line.wdl, [0.0, 1.0, 0.0]);
                game.play(choice.best.unwrap());
                if game.ending().is_none() {
                    // White tries to win and pushes the pawn whenever possible.
                    let moves = game.position().legal_moves();
                    let push = moves.iter().find(|mv| mv.is_zeroing());
                    let mv = push.or_else(|| moves.choose(&mut random)).unwrap();
                    game.play(*mv);
                }
            }
            assert_ne!(
                game.ending(),
                Some(Ending::Checkmate),
                "{kind:?} {position:?}"
            );
        }
    }
}

#[test]
fn only_requested_moves_are_kept() {
    let tables = Tables::write();
    let game = game("8/8/8/4k3/8/8/8/KR6 w - - 0 1");
    // There are two winning moves; a third gives away the rook.
    let [first, second] = ["b1b2", "b1e1"].map(|mv| game.parse_move(mv).unwrap());
    let asked = |moves: &[Move]| Limits {
        search_moves: moves.to_vec(),
        nodes: Some(50),
        ..Limits::default()
    };
    let parameters = Parameters {
        threads: 1,
        hash: 1,
        tablebase: tables.tablebase(),
        ..Parameters::default()
    };
    for kind in [AgentKind::Mcts, AgentKind::Policy, AgentKind::Value] {
        let mut agent = kind.build(Arc::new(Random::new(1)), &parameters.clone().into());
        let choice = choose(&mut *agent, &game, &asked(&[first, second]));
        assert_eq!(choice.statistics.len(), 2, "{kind:?}");
        let choice = choose(&mut *agent, &game, &asked(&[second]));
        assert_eq!((choice.best, choice.statistics.len()), (Some(second), 1));
        // The tree of a single move is not reused for a search of all moves.
        let choice = choose(
            &mut *agent,
            &game,
            &Limits {
                nodes: Some(50),
                ..Limits::default()
            },
        );
        // `value` evaluates only some candidates.
        let least = if kind == AgentKind::Value { 3 } else { 11 };
        assert!(choice.statistics.len() >= least, "{kind:?}");
    }
}

/// With tables that these tests cannot solve themselves, playing the kept moves achieves the
/// promised result.
#[test]
fn generated_tables_keep_their_promises() {
    let Some(folder) = generated() else { return };
    let tablebase = Tablebase::new(folder.to_str().unwrap());
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut counts = [0; 3];
    for fen in [
        "8/8/8/8/3k4/8/8/KBN5 w - - 0 1",
        "8/8/3k4/8/8/2r5/8/KQ6 w - - 0 1",
        "8/8/3k4/8/8/2r5/8/KQ6 b - - 0 1",
        "8/3k4/8/8/3n4/8/8/K6R w - - 0 1",
        "8/3k4/8/8/4b3/8/8/K6R b - - 0 1",
        "8/8/1p6/8/3k4/8/6P1/K7 w - - 0 1",
        "8/7p/8/8/2k5/8/P7/K7 w - - 0 1",
        "8/8/8/8/8/k1p5/8/1K5Q b - - 0 1",
        "8/8/8/8/1p6/1k6/8/1K5R b - - 0 1",
        "8/8/8/2k5/8/8/5PP1/6K1 w - - 0 1",
        "8/8/8/8/8/1k6/1p6/1K5N w - - 0 1",
        "2k5/8/8/1KB5/P7/8/8/8 b - - 0 1",
    ] {
        for _ in 0..6 {
            let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let (_, promised) = best(&tablebase, &game);
            let mut plies = 0;
            while game.ending().is_none() {
                let moves: MoveList = game.position().legal_moves();
                let kept = match game.position().board().occupied().count() {
                    2.. if plies < 2_000 => tablebase.best_moves(&game, &moves).unwrap().moves,
                    _ => panic!("{fen} does not end"),
                };
                game.play(*kept.choose(&mut random).unwrap());
                plies += 1;
            }
            let verdict = match game.ending() {
                Some(Ending::Checkmate) if plies % 2 == 1 => Verdict::Win,
                Some(Ending::Checkmate) => Verdict::Loss,
                _ => Verdict::Draw,
            };
            assert_eq!(verdict, promised, "{fen}");
            counts[verdict as usize] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}
