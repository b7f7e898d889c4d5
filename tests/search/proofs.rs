//! Compares announced mates with an exhaustive search.

use crate::search::backends::{hashed, uniform};
use crate::search::{choose, game};
use shakmaty::Position;
use tessera::agent::AgentKind;
use tessera::chess::{Ending, Game};
use tessera::play::{Limits, Score};
use tessera::search::Parameters;

/// Returns whether the side to move can force mate within this many moves.
fn mates_within(game: &mut Game, moves: u32) -> bool {
    let ours = game.position().legal_moves();
    moves > 0
        && ours.into_iter().any(|mv| {
            game.play(mv);
            let mates = is_mated_within(game, moves - 1);
            game.undo();
            mates
        })
}

/// Returns whether the side to move gets mated within this many moves, whatever it plays.
fn is_mated_within(game: &mut Game, moves: u32) -> bool {
    match game.ending() {
        Some(Ending::Checkmate) => return true,
        Some(_) => return false,
        None => {}
    }
    let theirs = game.position().legal_moves();
    moves > 0
        && theirs.into_iter().all(|mv| {
            game.play(mv);
            let drawn = game.ending().is_some();
            let mated = !drawn && mates_within(game, moves);
            game.undo();
            mated
        })
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn every_claimed_mate_stands_up_to_exhaustive_search() {
    let starts = [
        "8/8/8/4k3/8/8/8/RR2K3 w - - 0 1",
        "3k4/8/3K4/8/8/8/8/4R3 w - - 0 1",
        "8/1Q6/8/8/3k4/8/1p6/3K4 b - - 0 1",
        "r5k1/5ppp/8/8/8/8/q4PPP/2R3K1 b - - 92 90",
        "k7/8/1K6/8/8/8/8/6R1 b - - 0 1",
        "7k/5K2/8/8/8/8/8/R7 b - - 0 1",
        "5rk1/5ppp/8/6N1/8/1Q5R/6PP/6K1 w - - 0 1",
    ];
    let parameters = Parameters {
        threads: 1,
        minibatch: 4,
        hash: 2,
        ..Parameters::default()
    };
    let limits = Limits {
        nodes: Some(1500),
        ..Limits::default()
    };
    let mut agent = AgentKind::Mcts.build(hashed().shared(), &parameters.clone().into());
    let (mut wins, mut losses) = (0, 0);
    let mut random = 1u64;
    for round in 0..42 {
        let mut game = game(starts[round % starts.len()], "");
        agent.new_game();
        // The tree, including its proofs, is kept between moves.
        for _ in 0..8 {
            if game.ending().is_some() {
                break;
            }
            let choice = choose(&mut *agent, &game, &limits);
            match choice.report.lines[0].score {
                Score::Mate(moves @ 1..=3) => {
                    wins += 1;
                    assert!(mates_within(&mut game.clone(), moves as u32), "{choice:?}");
                }
                Score::Mate(moves @ -2..=-1) => {
                    losses += 1;
                    let moves = moves.unsigned_abs();
                    assert!(is_mated_within(&mut game.clone(), moves), "{choice:?}");
                }
                _ => {}
            }
            let moves = game.position().legal_moves();
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            game.play(moves[(random >> 33) as usize % moves.len()]);
        }
    }
    assert!(wins > 20 && losses > 5, "{wins} {losses}");
}

/// mates2000.epd gives the shortest mate of each position, and no announced mate may be shorter.
#[test]
fn no_claim_is_shorter_than_the_shortest_mate() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/epd/mates2000.epd"
    );
    let Ok(suite) = std::fs::read_to_string(path) else {
        crate::skip::skip(path);
        return;
    };
    let parameters = Parameters {
        threads: 1,
        minibatch: 8,
        hash: 4,
        ..Parameters::default()
    };
    let limits = Limits {
        nodes: Some(20_000),
        ..Limits::default()
    };
    let mut agent = AgentKind::Mcts.build(uniform().shared(), &parameters.clone().into());
    let (mut tried, mut found, mut checked) = (0, 0, 0);
    for line in suite.lines() {
        let Some((fen, mate)) = line.split_once(" bm #") else {
            continue;
        };
        let shortest: i32 = mate.trim_end_matches(';').trim().parse().unwrap();
        // Longer mates need a network.
        if shortest.abs() > 3 {
            continue;
        }
        let game = game(fen, "");
        agent.new_game();
        tried += 1;
        let choice = choose(&mut *agent, &game, &limits);
        let Score::Mate(moves) = choice.report.lines[0].score else {
            continue;
        };
        assert_eq!(moves.signum(), shortest.signum(), "{line}");
        assert!(moves.abs() >= shortest.abs(), "{line}: {moves}");
        found += 1;
        let (mut game, plain) = (game, moves.unsigned_abs());
        if plain <= 2 {
            checked += 1;
            let stands = match moves > 0 {
                true => mates_within(&mut game, plain),
                false => is_mated_within(&mut game, plain),
            };
            assert!(stands, "{line}: {moves}");
        }
        let mut end = game.clone();
        choice.report.lines[0]
            .moves
            .iter()
            .for_each(|&mv| end.play(mv));
        assert_eq!(end.ending(), Some(Ending::Checkmate), "{line}");
    }
    assert!(tried >= 50 && 3 * found >= tried, "{found} of {tried}");
    assert!(checked >= 15, "{checked}");
}
