use super::*;
use crate::chess::Game;
use shakmaty::CastlingMode;
use std::cell::Cell;

fn game(fen: &str) -> Game {
    Game::from_fen(fen, CastlingMode::Standard).unwrap()
}

/// Returns the plies to the proven mate, after checking its line by the rules.
fn mate(game: &Game, goal: &Goal<'_>) -> Option<u32> {
    let mut prover = Prover::new(1 << 22);
    let found = prover.prove(game.position(), goal);
    let claimed = found.mate()?;
    let line = prover.line(game.position(), goal).unwrap();
    let mut end = game.clone();
    for &mv in &line {
        assert!(end.position().legal_moves().contains(&mv));
        end.play(mv);
    }
    assert!(end.position().is_checkmate());
    assert_eq!(end.position().turn(), goal.attacker.other());
    assert!(line.len() as u32 <= claimed, "{} of {claimed}", line.len());
    Some(line.len() as u32)
}

#[test]
fn mates_of_every_kind_are_proven() {
    for (fen, attack, plies) in [
        // Back-rank and smothered mates.
        ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", Attack::Checks, 1),
        ("r5rk/6pp/8/6N1/8/1Q6/8/6K1 w - - 0 1", Attack::Checks, 1),
        // A smothered mate after a sacrifice.
        ("5r1k/6pp/7N/8/8/1Q6/8/6K1 w - - 0 1", Attack::Checks, 3),
        // Mate with two rooks.
        ("7k/8/8/8/8/8/R7/1R2K3 w - - 0 1", Attack::All, 3),
        // Morphy's problem, which begins with a quiet sacrifice.
        ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", Attack::All, 3),
    ] {
        let game = game(fen);
        let goal = Goal {
            max_plies: plies,
            ..Goal::new(game.position().turn(), attack, 20_000)
        };
        assert_eq!(mate(&game, &goal), Some(plies), "{fen}");
        let shorter = Goal {
            max_plies: plies - 1,
            ..goal
        };
        assert_eq!(mate(&game, &shorter), None, "{fen}");
    }
}

#[test]
fn a_side_that_is_mated_whatever_it_does_is_seen() {
    let game = game("7k/8/6K1/8/8/8/8/R7 b - - 0 1");
    let goal = |attacker| Goal::new(attacker, Attack::All, 1000);
    assert_eq!(mate(&game, &goal(Color::White)), Some(2));
    assert_eq!(mate(&game, &goal(Color::Black)), None);
}

#[test]
fn stalemate_and_bare_kings_are_no_mates() {
    for fen in [
        "7k/8/6K1/8/8/8/8/8 w - - 0 1",
        "8/8/8/8/8/5k2/5p2/5K2 w - - 0 1",
        "8/8/8/4k3/8/8/4N3/4K3 w - - 0 1",
    ] {
        let game = game(fen);
        let goal = Goal::new(game.position().turn(), Attack::All, 10_000);
        let found = Prover::new(1 << 20).prove(game.position(), &goal);
        assert_eq!(found.mate(), None, "{fen}");
    }
}

#[test]
fn a_mate_comes_before_the_fifty_moves() {
    let mates = |clock: u32, max_plies: u32| {
        let game = game(&format!("8/8/8/8/k7/8/2K5/7R w - - {clock} 80"));
        let goal = Goal {
            max_plies,
            ..Goal::new(Color::White, Attack::All, 200_000)
        };
        mate(&game, &goal).is_some()
    };
    let shortest = (1..MAX_MATE_PLIES).find(|&plies| mates(0, plies)).unwrap();
    assert!(shortest >= 3, "{shortest}");
    // The mating move may be the hundredth ply.
    assert!(mates(100 - shortest, MAX_MATE_PLIES));
    assert!(!mates(101 - shortest, MAX_MATE_PLIES));
}

#[test]
fn claimable_draws_are_no_mates() {
    let game = game("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1");
    let goal = Goal::new(Color::White, Attack::Checks, 1000);
    assert_eq!(mate(&game, &goal), Some(1));
    let mut after = game.clone();
    after.play(game.parse_move("a1a8").unwrap());
    let draws = [after.current().key];
    let goal = Goal {
        draws: &draws,
        ..goal
    };
    assert_eq!(mate(&game, &goal), None);
}

#[test]
fn only_the_moves_asked_for_count() {
    let game = game("6k1/5ppp/8/8/8/8/8/RR5K w - - 0 1");
    let moves = [game.parse_move("b1b8").unwrap()];
    let goal = Goal {
        moves: Some(&moves),
        ..Goal::new(Color::White, Attack::All, 1000)
    };
    let mut prover = Prover::new(1 << 16);
    assert_eq!(prover.prove(game.position(), &goal).mate(), Some(1));
    assert_eq!(prover.line(game.position(), &goal).unwrap(), moves);
    let quiet = [game.parse_move("h1g1").unwrap()];
    let goal = Goal {
        moves: Some(&quiet),
        nodes: 1,
        ..goal
    };
    assert_eq!(prover.prove(game.position(), &goal).mate(), None);
}

#[test]
fn a_search_in_pieces_finds_what_one_finds() {
    let game = game("r4rk1/1bq1bppp/p3p3/1p2P3/3N4/2PB4/PP3QPP/R4RK1 w - - 0 1");
    let whole = Goal::new(Color::White, Attack::All, 5_000);
    let piece = Goal {
        nodes: 250,
        ..whole
    };
    let mut prover = Prover::new(1 << 20);
    for _ in 0..20 {
        let before = prover.nodes;
        prover.prove(game.position(), &piece);
        // Expanding a position creates all its children.
        assert!(prover.nodes - before < 250 + 218);
    }
    let in_pieces = prover.prove(game.position(), &piece);
    let at_once = Prover::new(1 << 20).prove(game.position(), &whole);
    assert!(!at_once.is_decided() && !in_pieces.is_decided());
    assert!(in_pieces.pn > 1 && at_once.pn > 1);
}

#[test]
fn stops_when_told_to() {
    let game = game("r4rk1/1bq1bppp/p3p3/1p2P3/3N4/2PB4/PP3QPP/R4RK1 w - - 0 1");
    let asked = Cell::new(0);
    let halt = || {
        asked.set(asked.get() + 1);
        asked.get() > 4
    };
    let goal = Goal {
        halt: &halt,
        ..Goal::new(Color::White, Attack::All, 1_000_000)
    };
    let mut prover = Prover::new(1 << 20);
    prover.prove(game.position(), &goal);
    let most = 4 * (HALT_INTERVAL + 218);
    let spent = prover.nodes;
    assert!((2 * HALT_INTERVAL..most).contains(&spent), "{spent}");
    // A stop requested by one goal does not affect the next.
    let patient = Goal::new(Color::White, Attack::All, 5_000);
    prover.prove(game.position(), &patient);
    assert!(prover.nodes >= spent + 5_000);
}

#[test]
fn every_move_on_the_walk_is_counted() {
    let game = game("5r1k/6pp/7N/8/8/1Q6/8/6K1 w - - 0 1");
    let goal = Goal::new(Color::White, Attack::All, 10_000);
    let mut prover = Prover::new(1 << 20);
    assert!(prover.prove(game.position(), &goal).mate().is_some());
    let before = prover.nodes;
    let line = prover.line(game.position(), &goal).unwrap();
    let mut end = game.clone();
    let mut looked_at = 0;
    for mv in line {
        looked_at += end.position().legal_moves().len() as u64;
        end.play(mv);
    }
    assert!(prover.nodes - before >= looked_at);
    for (nodes, halt) in [(looked_at / 2, false), (10_000, true)] {
        let halt = || halt;
        let little = Goal {
            nodes,
            halt: &halt,
            ..goal
        };
        assert_eq!(prover.line(game.position(), &little), None);
    }
    assert!(prover.line(game.position(), &goal).is_some());
}

#[test]
fn a_tiny_table_and_many_clears_are_as_sound() {
    let game = game("5r1k/6pp/7N/8/8/1Q6/8/6K1 w - - 0 1");
    let goal = Goal::new(Color::White, Attack::All, 10_000);
    let mut prover = Prover::new(1 << 12);
    for _ in 0..300 {
        prover.clear();
        let claimed = prover.prove(game.position(), &goal).mate().unwrap();
        let line = prover.line(game.position(), &goal).unwrap();
        assert!(line.len() as u32 <= claimed);
    }
}

/// Returns whether the side to move can mate within a number of plies, by exhaustive search.
fn mates_within(position: &Chess, plies: u32) -> bool {
    plies > 0
        && position.legal_moves().into_iter().any(|mv| {
            let mut after = position.clone();
            after.play_unchecked(mv);
            let replies = after.legal_moves();
            let drawn = after.is_insufficient_material() || after.halfmoves() >= 100;
            match replies.is_empty() {
                true => after.is_check(),
                false => {
                    !drawn
                        && plies > 2
                        && replies.into_iter().all(|reply| {
                            let mut next = after.clone();
                            next.play_unchecked(reply);
                            mates_within(&next, plies - 2)
                        })
                }
            }
        })
}

/// In random games from open positions, some of them Chess960: every proven mate in two is correct,
/// and none is missed.
#[test]
fn exhaustive_search_agrees() {
    let starts = [
        "5rk1/5ppp/8/6N1/8/1Q5R/6PP/6K1 w - - 0 1",
        "r3k2r/8/3Q4/8/8/8/6q1/R3K2R w KQkq - 0 1",
        "8/P6k/8/6KN/8/8/1p6/8 w - - 90 90",
        "1rk3r1/p1p3p1/8/3B4/8/5Q2/8/1RK3R1 w GBgb - 0 1",
        "6k1/4Rp1p/8/6N1/5Pp1/8/7P/6K1 b - f3 0 1",
    ];
    let mut random = 7u64;
    let (mut mates, mut others) = (0, 0);
    for round in 0..60 {
        let mut game = game(starts[round % starts.len()]);
        for _ in 0..10 {
            if game.ending().is_some() {
                break;
            }
            let exists = mates_within(game.position(), 3);
            let goal = Goal {
                max_plies: 3,
                ..Goal::new(game.position().turn(), Attack::All, 100_000)
            };
            let found = mate(&game, &goal);
            assert_eq!(found.is_some(), exists, "{:?}", game.position());
            assert!(found.is_none_or(|plies| plies <= 3));
            match exists {
                true => mates += 1,
                false => others += 1,
            }
            let moves = game.position().legal_moves();
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            game.play(moves[(random >> 33) as usize % moves.len()]);
        }
    }
    assert!(mates > 50 && others > 50, "{mates} {others}");
}
