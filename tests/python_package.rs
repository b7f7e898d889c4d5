//! The Python package encodes positions and moves exactly as the engine does.

use crate::uci_python::python;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::{Value, json};
use shakmaty::{CastlingMode, Position};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use tessera::chess::Game;
use tessera::encode::{BOARDS, Input, policy_index};

/// Number of words in a row before the ratings.
const WORDS: usize = BOARDS + 7;

const STARTS: [&str; 9] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    // The initial position with other counters, and without one of its castling rights.
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 7 9",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQk - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 3 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    // En passant squares: one that can be captured on, one that no pawn can reach, and one that no
    // pawn can have passed.
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
    "rnbqkbnr/pppp1ppp/8/8/4p3/8/PPPPPPPP/RNBQKBNR w KQkq d6 0 3",
    // Chess960.
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
];

/// Returns random games from each starting position, cut off at random points. Half of the moves
/// undo the previous one, so that positions repeat.
fn games() -> Vec<Game> {
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut games = Vec::new();
    for fen in STARTS.iter().cycle().take(20 * STARTS.len()) {
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        for _ in 0..draw.random_range(0..60) {
            let moves = game.position().legal_moves();
            if moves.is_empty() {
                break;
            }
            let back = game.plies().iter().rev().nth(1).and_then(|ply| {
                let mv = ply.played?;
                let (from, to) = (mv.from()?, mv.to());
                moves
                    .iter()
                    .find(|mv| (mv.from(), mv.to()) == (Some(to), from))
            });
            let mv = match back {
                Some(&mv) if draw.random() => mv,
                _ => moves[draw.random_range(0..moves.len())],
            };
            game.play(mv);
        }
        games.push(game);
    }
    games
}

/// Returns a game in the format that the Python script reads.
fn told_as(game: &Game, fen: &str) -> Value {
    let mut played = Vec::new();
    let mut before = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    for mv in game.plies().iter().filter_map(|ply| ply.played) {
        played.push(before.format_move(mv));
        before.play(mv);
    }
    json!({
        "fen": fen,
        "moves": played,
        "chess960": game.mode() == CastlingMode::Chess960,
    })
}

#[test]
fn rows_and_policies_equal_the_engines() {
    let Some(python) = python() else { return };
    let games = games();
    let told = games.iter().zip(STARTS.iter().cycle());
    let told: Vec<Value> = told.map(|(game, fen)| told_as(game, fen)).collect();
    let lines: String = told.iter().map(|game| format!("{game}\n")).collect();
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/rows.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), games.len());
    let mut repeated = 0;
    for ((game, told), line) in games.iter().zip(told).zip(text.lines()) {
        let found: Value = serde_json::from_str(line).unwrap();
        let words: Vec<u64> = serde_json::from_value(found["words"].clone()).unwrap();
        let input = Input::encode(game);
        assert_eq!(words, input.words()[..WORDS], "{told}");
        let policy: BTreeMap<String, u16> =
            serde_json::from_value(found["policy"].clone()).unwrap();
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let expected = moves
            .iter()
            .map(|&mv| (game.format_move(mv), policy_index(mv, turn)));
        assert_eq!(policy, expected.collect(), "{told}");
        repeated += usize::from(input.is_repetition());
    }
    assert!(repeated > 10, "{repeated}");
}
