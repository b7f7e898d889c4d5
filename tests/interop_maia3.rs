//! Tests Maia-3 checkpoints, which are read in the format that `torch.save` writes and evaluated
//! according to their formulas.

pub mod allocations;
mod checkpoint;
mod engine;
mod formulas;
mod hostile;
mod python;
mod reading;

use rand::Rng;
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use shakmaty::{CastlingMode, Color, Move, Position, Role, Square};
use tch::{Device, Tensor};
use tessera::chess::Game;
use tessera::encode::{BOARDS, HISTORY, PLANES_PER_BOARD, policy_index};
use tessera::network::maia3::{GabConfig, Maia3Config};
use tessera::network::{Architecture, Maia3, Network, Positions};

/// A parameter: name, shape, values.
type Parameter = (String, Vec<i64>, Vec<f32>);

/// Starting positions whose games include castling on both sides, promotions, en passant, and rook
/// and queen moves along the first rank from e1.
const BEGINNINGS: [&str; 8] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
    "1n2k1n1/P1P3P1/8/8/8/8/p1p3p1/1N2K1N1 b - - 0 1",
    "6k1/1P6/8/2pP4/8/8/1p4K1/4R3 w - c6 0 2",
    "2r1r2k/8/8/8/8/8/1K6/4Q3 w - - 0 1",
    // In the second of these positions, a queen and a rook move to promotion squares.
    "4n1n1/3P1P2/8/8/1k6/8/2p1p3/1N1N2K1 w - - 0 1",
    "8/P2P2QR/8/8/1k6/8/2p1p3/1N1N2K1 w - - 0 1",
];

/// Returns at least `count` positions from games of random moves.
fn games(count: usize) -> Vec<Game> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut games = Vec::new();
    while games.len() < count {
        for fen in BEGINNINGS {
            let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            for _ in 0..12 {
                games.push(game.clone());
                let moves = game.position().legal_moves();
                // Prefer rare moves, because they need testing most.
                let rare = |mv: &&Move| mv.is_castle() || mv.is_promotion() || mv.is_en_passant();
                let rare: Vec<&Move> = moves.iter().filter(rare).collect();
                let mv = match (moves.len(), rare.len()) {
                    (0, _) => break,
                    (_, several) if several > 0 && random.random_bool(0.2) => {
                        *rare[random.random_range(0..several)]
                    }
                    (all, _) => moves[random.random_range(0..all)],
                };
                game.play(mv);
            }
        }
    }
    games
}

/// Returns small configurations in which no two sizes are equal, one for each way to summarise the
/// board.
pub fn small() -> [Maia3Config; 2] {
    [None, Some(3)].map(|compress| Maia3Config {
        layers: 2,
        width: 24,
        heads: 4,
        feed_forward: 40,
        history: 8,
        rating: 5,
        hidden: 10,
        gab: GabConfig {
            compress,
            hidden: 14,
            generator: 7,
        },
    })
}

/// Returns the sizes of a network.
fn model(network: &Network) -> &Maia3Config {
    &network.downcast::<Maia3>().unwrap().config
}

/// Returns random parameters, each of which affects the outputs.
fn random_parameters(config: &Maia3Config, seed: u64) -> Vec<Parameter> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let maia3 = Maia3::new(config, Device::Cpu).unwrap();
    let parameters = maia3.parameters().iter();
    parameters
        .map(|parameter| {
            let (name, shape) = (parameter.name.clone(), parameter.shape.clone());
            let is_norm = shape.len() == 1 && name.ends_with("weight");
            let scale = match shape[..] {
                [_, inputs] => 1.2 / (inputs as f32).sqrt(),
                _ => 0.3,
            };
            let values = (0..shape.iter().product::<i64>()).map(|_| {
                let value: f32 = random.sample(StandardNormal);
                value * scale + f32::from(u8::from(is_norm))
            });
            let values = values.collect();
            (name, shape, values)
        })
        .collect()
}

/// Returns the ratings of the side to move and the opponent in position `index`, some of them out
/// of range.
fn ratings(index: usize) -> [i64; 2] {
    let rating = |step: usize| (index * step % 6400) as i64 - 500;
    [rating(577), rating(1123)]
}

/// Returns the square from the view of the side to move.
fn oriented(square: Square, turn: Color) -> usize {
    let seen = turn.fold_wb(square, square.flip_vertical());
    usize::from(seen)
}

/// Returns the square and kind (one of twelve) of each piece on the board `age` plies ago, or on
/// the first board of a shorter game, from the view of the side to move on that board.
fn board(game: &Game, age: usize) -> Vec<(usize, usize)> {
    let plies = game.plies();
    let position = &plies[plies.len() - 1 - age.min(plies.len() - 1)].position;
    let turn = position.turn();
    let pieces = position.board().clone().into_iter();
    pieces
        .map(|(square, piece)| {
            let theirs = if piece.color == turn { 0 } else { 6 };
            let kind = Role::ALL.iter().position(|&role| role == piece.role);
            (oriented(square, turn), theirs + kind.unwrap())
        })
        .collect()
}

/// Returns positions in the input format of a Maia-3 network, i64 [B, 106]. Words that the network
/// should ignore have all bits set.
fn rows(games: &[Game]) -> Tensor {
    let mut words = Vec::new();
    for (index, game) in games.iter().enumerate() {
        let mut row = vec![0i64; BOARDS];
        for age in 0..HISTORY {
            let planes = &mut row[age * PLANES_PER_BOARD..][..PLANES_PER_BOARD];
            for (square, kind) in board(game, age) {
                planes[kind] |= 1 << square;
            }
            planes[PLANES_PER_BOARD - 1] = -1;
        }
        row.extend(ratings(index));
        words.extend(row);
    }
    Tensor::from_slice(&words).view([games.len() as i64, -1])
}

/// Returns a move as Maia-3's own program writes it: in UCI notation from the view of the side to
/// move, with castling as the king's two-square move.
fn written(game: &Game, mv: Move) -> String {
    let mirrored = |letter: char| match letter.to_digit(10) {
        Some(rank) if game.position().turn().is_black() => (b'9' - rank as u8) as char,
        _ => letter,
    };
    game.format_move(mv).chars().map(mirrored).collect()
}

/// Returns Maia-3's moves in its order.
fn all_written() -> Vec<String> {
    let squares = Square::ALL;
    let pairs = squares
        .iter()
        .flat_map(|from| squares.iter().map(move |to| format!("{from}{to}")));
    let files = || 'a'..='h';
    let promotions = files().flat_map(|from| {
        files().flat_map(move |to| {
            ['q', 'r', 'b', 'n']
                .into_iter()
                .map(move |piece| format!("{from}7{to}8{piece}"))
        })
    });
    pairs.chain(promotions).collect()
}

/// Compares a network's outputs for `games` with those of Maia-3 itself: 4352 policy logits and
/// three logits, for loss, draw and win, per position. Returns the largest difference.
fn largest_difference(network: &Network, games: &[Game], expected: &[(Vec<f64>, Vec<f64>)]) -> f64 {
    let _guard = tch::no_grad_guard();
    let outputs = network.forward(Positions::Rows(&rows(games)));
    let [policy, wdl] = &outputs[..] else {
        panic!("not two outputs");
    };
    assert_eq!(policy.size(), [games.len() as i64, 1858]);
    assert_eq!(wdl.size(), [games.len() as i64, 3]);
    let names = all_written();
    let mut largest = 0.0f64;
    let mut compare = |found: f64, expected: f64| {
        assert!(found.is_finite() && expected.is_finite());
        largest = largest.max((found - expected).abs());
    };
    for (index, (game, (moves, result))) in games.iter().zip(expected).enumerate() {
        let turn = game.position().turn();
        for mv in game.position().legal_moves() {
            let name = written(game, mv);
            let place = names.iter().position(|other| *other == name).unwrap();
            let entry = policy_index(mv, turn).into();
            compare(policy.double_value(&[index as i64, entry]), moves[place]);
        }
        for (place, &logit) in result.iter().rev().enumerate() {
            compare(wdl.double_value(&[index as i64, place as i64]), logit);
        }
    }
    largest
}
