//! Tests mates that the search finds outside its tree.

use crate::search::backends::hashed;
use crate::search::{choose, game, uci};
use tessera::agent::AgentKind;
use tessera::chess::{Ending, Game};
use tessera::play::{Choice, Limits, Score};
use tessera::search::Parameters;

/// Lasker against Thomas, London 1912: after Qxh7+, checks drive the king to g1.
const WALK: &str = "rn3rk1/pbppq1pp/1p2pb2/4N2Q/3PN3/3B4/PPP2PPP/R3K2R w KQ - 7 11";
/// Morphy's problem: White sacrifices the rook without giving check.
const QUIET: &str = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1";

fn parameters(mate_search: bool) -> Parameters {
    Parameters {
        threads: 1,
        minibatch: 4,
        hash: 16,
        mate_search,
        ..Parameters::default()
    }
}

fn nodes(nodes: u64) -> Limits {
    Limits {
        nodes: Some(nodes),
        ..Limits::default()
    }
}

fn think(game: &Game, limits: &Limits, parameters: &Parameters) -> Choice {
    let mut agent = AgentKind::Mcts.build(hashed().shared(), &parameters.clone().into());
    choose(&mut *agent, game, limits)
}

/// Returns the length of the announced mate, after checking that its line ends in mate.
fn announced(game: &Game, choice: &Choice) -> Option<i32> {
    let line = &choice.report.lines[0];
    let Score::Mate(moves) = line.score else {
        return None;
    };
    let mut end = game.clone();
    line.moves.iter().for_each(|&mv| end.play(mv));
    assert_eq!(end.ending(), Some(Ending::Checkmate), "{line:?}");
    let plies = if moves > 0 { 2 * moves - 1 } else { -2 * moves };
    assert_eq!(line.moves.len() as i32, plies, "{line:?}");
    assert_eq!(line.moves.first().copied(), choice.best);
    Some(moves)
}

#[test]
fn a_long_mate_is_announced_by_the_second_visit() {
    let position = game(WALK, "");
    let choice = think(&position, &nodes(2), &parameters(true));
    assert_eq!(uci(&position, choice.best), "h5h7");
    let moves = announced(&position, &choice).unwrap();
    assert!((6..=8).contains(&moves), "{moves}");
    // A plain tree search does not find a mate that far away.
    let choice = think(&position, &nodes(2_000), &parameters(false));
    assert_eq!(announced(&position, &choice), None);
}

#[test]
fn one_visit_plays_the_mate() {
    for fen in [WALK, QUIET] {
        let position = game(fen, "");
        let mated = think(&position, &nodes(2), &parameters(true));
        let choice = think(&position, &nodes(1), &parameters(true));
        assert_eq!(choice.best, mated.best);
    }
}

#[test]
fn a_side_that_is_mated_reports_it() {
    // After 1. Qxh7+ the king must walk.
    let position = game(WALK, "h5h7");
    let choice = think(&position, &nodes(50), &parameters(true));
    let moves = announced(&position, &choice).unwrap();
    assert!((-7..=-5).contains(&moves), "{moves}");
}

/// After 1. e4 e5 2. Qh5 Nc6 3. Bc4, most moves allow Qxf7#.
const THREAT: &str = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 3 3";

#[test]
fn moves_that_allow_a_mate_take_no_visit() {
    let position = game(THREAT, "");
    let choice = think(&position, &nodes(100), &parameters(true));
    let (lost, others): (Vec<_>, Vec<_>) =
        (choice.statistics.iter()).partition(|of| of.score == Score::Mate(-1));
    assert_eq!(lost.len(), 20);
    assert!(lost.iter().all(|of| of.visits == 0 && of.q == -1.0));
    // The other moves have all the visits except the root's own, and come first.
    assert_eq!(others.iter().map(|of| of.visits).sum::<u64>(), 99);
    let last = choice.statistics.iter().rev().take(lost.len());
    assert!(last.eq(lost.into_iter().rev()));
}

#[test]
fn no_temperature_draws_a_move_that_is_proven_to_lose() {
    let position = game(THREAT, "");
    let mut visited = 0;
    for seed in 0..20 {
        let parameters = Parameters {
            temperature: 100.0,
            seed,
            // Without the mate search, moves are visited before the search sees that they lose.
            ..parameters(false)
        };
        let choice = think(&position, &nodes(200), &parameters);
        let drawn = choice
            .statistics
            .iter()
            .find(|of| Some(of.mv) == choice.best);
        assert!(!drawn.unwrap().is_lost());
        let lost = choice.statistics.iter().filter(|of| of.is_lost());
        visited += lost.filter(|of| of.visits > 0).count();
    }
    assert!(visited > 20, "{visited}");
}

#[test]
fn the_same_search_finds_the_same() {
    let start = "r4rk1/1bq1bppp/p3p3/1p2P3/3N4/2PB4/PP3QPP/R4RK1 w - - 0 1";
    for fen in [start, QUIET, WALK] {
        let position = game(fen, "");
        let mut agent = AgentKind::Mcts.build(hashed().shared(), &parameters(true).into());
        let mut again = || {
            agent.new_game();
            let choice = choose(&mut *agent, &position, &nodes(500));
            (choice.report.nodes, choice.report.lines, choice.statistics)
        };
        assert_eq!(again(), again());
    }
}

#[test]
fn go_mate_accepts_no_longer_mate() {
    let position = game(WALK, "");
    let limits = |moves| Limits {
        mate: Some(moves),
        ..nodes(3_000)
    };
    let found = think(&position, &limits(8), &parameters(true));
    assert!(announced(&position, &found).is_some_and(|moves| moves <= 8));
    assert!(found.report.nodes < 3_000);
    // There is no mate that short, so the search continues.
    let none = think(&position, &limits(3), &parameters(true));
    assert_eq!(none.report.nodes, 3_000);
}

#[test]
fn only_the_searched_moves_mate() {
    let position = game(WALK, "");
    let other = position.parse_move("e1c1").unwrap();
    let limits = Limits {
        search_moves: vec![other],
        ..nodes(100)
    };
    let choice = think(&position, &limits, &parameters(true));
    assert_eq!(choice.best, Some(other));
    assert_eq!(announced(&position, &choice), None);
}

#[test]
fn a_mate_is_carried_out() {
    let mut position = game(WALK, "");
    let parameters = parameters(true);
    let mut agent = AgentKind::Mcts.build(hashed().shared(), &parameters.clone().into());
    let mut left = i32::MAX;
    while position.ending().is_none() {
        let choice = choose(&mut *agent, &position, &nodes(50));
        let moves = announced(&position, &choice).expect("a mate was announced before");
        assert!(moves < left && moves > 0, "{moves} after {left}");
        left = moves;
        position.play(choice.best.unwrap());
        if position.ending().is_none() {
            // The defender plays the first legal move.
            let reply = shakmaty::Position::legal_moves(position.position())[0];
            position.play(reply);
        }
    }
    assert_eq!(position.ending(), Some(Ending::Checkmate));
}

/// Plays both sides of an endgame with the search; returns how the game ended and the number of
/// moves.
fn played_out(fen: &str, visits: u64) -> (Option<Ending>, usize) {
    let mut position = game(fen, "");
    let mut announcements = Vec::new();
    while position.ending().is_none() {
        let choice = think(&position, &nodes(visits), &parameters(true));
        announcements.extend(announced(&position, &choice).map(i32::abs));
        position.play(choice.best.unwrap());
    }
    // Each side's path to the mate is optimal, so it becomes shorter with every move.
    assert!(
        announcements.is_sorted_by(|a, b| a >= b),
        "{announcements:?}"
    );
    (position.ending(), announcements.len())
}

#[test]
fn king_and_one_piece_win_in_the_fewest_moves() {
    for (fen, plies) in [
        ("8/8/8/4k3/8/8/8/K6R w - - 0 1", 29),
        ("8/8/8/4k3/8/8/8/K6R b - - 0 1", 30),
        ("8/8/3k4/8/8/8/q7/4K3 b - - 0 1", 7),
        ("4k3/8/4K3/4P3/8/8/8/8 w - - 0 1", 21),
    ] {
        let (ending, announced) = played_out(fen, 1);
        assert_eq!(ending, Some(Ending::Checkmate), "{fen}");
        assert_eq!(announced, plies, "{fen}");
    }
    // In a drawn endgame, no mate is announced.
    let (ending, announced) = played_out("k7/8/K7/P7/8/8/8/8 w - - 0 1", 30);
    assert_ne!(ending, Some(Ending::Checkmate));
    assert_eq!(announced, 0);
}

#[test]
fn every_allowed_move_of_king_and_one_piece_is_known() {
    // First the side with the rook is to move, then the bare king.
    for (fen, won) in [
        ("8/8/8/8/8/8/3k4/K6R w - - 0 1", true),
        ("8/8/8/8/4k3/8/8/K6R b - - 0 1", false),
    ] {
        let position = game(fen, "");
        let lengths = shakmaty::Position::legal_moves(position.position())
            .into_iter()
            .map(|mv| {
                let limits = Limits {
                    search_moves: vec![mv],
                    ..nodes(100)
                };
                let choice = think(&position, &limits, &parameters(true));
                assert_eq!(choice.best, Some(mv));
                announced(&position, &choice)
            });
        let lengths: Vec<Option<i32>> = lengths.collect();
        let (open, mut mates): (Vec<_>, Vec<_>) =
            lengths.into_iter().partition(|length| length.is_none());
        // The rook would be captured on c1, d1 or e1.
        assert_eq!(open.len(), if won { 3 } else { 0 }, "{fen}");
        mates
            .sort_unstable_by_key(|length| length.map(|length| if won { length } else { -length }));
        if !won {
            mates.reverse();
        }
        let all = Parameters {
            multi_pv: 3,
            ..parameters(true)
        };
        let choice = think(&position, &nodes(100), &all);
        let shown = choice.report.lines.iter().map(|line| match line.score {
            Score::Mate(moves) => Some(moves),
            _ => None,
        });
        assert!(
            shown.eq(mates.into_iter().take(3)),
            "{fen}: {:?}",
            choice.report.lines
        );
    }
}

#[test]
fn an_ending_is_recognised_before_it_is_reached() {
    // Either the rook takes the last pawn, or the king has to.
    let position = game("8/8/8/8/2k5/8/p7/R5K1 w - - 0 1", "");
    let choice = think(&position, &nodes(300), &parameters(true));
    assert_eq!(uci(&position, choice.best), "a1a2");
    assert!(announced(&position, &choice).is_some());
    let unaided = think(&position, &nodes(300), &parameters(false));
    assert_eq!(announced(&position, &unaided), None);
}

#[test]
fn no_mate_is_announced_beyond_the_50_move_rule() {
    let position = game("8/8/8/4k3/8/8/8/K6R w - - 85 90", "");
    let choice = think(&position, &nodes(100), &parameters(true));
    assert_eq!(announced(&position, &choice), None);
}

#[test]
fn the_signature_without_the_mate_prover_is_that_of_the_tree() {
    use std::sync::Arc;
    use tessera::backend::Random;
    use tessera::eval::bench::{POSITIONS, SIGNATURE_DEPTH, run};
    use tessera::search::Search;
    let games: Vec<Game> = POSITIONS.map(|fen| game(fen, "")).into();
    let parameters = Parameters {
        threads: 1,
        mate_search: false,
        ..Parameters::default()
    };
    let mut search = Search::new(Arc::new(Random::new(0)), &parameters);
    let limits = Limits {
        depth: Some(SIGNATURE_DEPTH),
        ..Limits::default()
    };
    let sum = run(&mut search, &games, &limits, || {}).unwrap();
    assert_eq!(sum.nodes, 352_325);
}
