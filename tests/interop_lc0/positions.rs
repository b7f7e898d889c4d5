//! Positions from games of random moves.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{CastlingMode, Position};
use tch::Tensor;
use tessera::chess::Game;
use tessera::encode::{Input, WIDTH};

/// Positions with promotions and en passant available, which random games rarely reach.
const FENS: [&str; 4] = [
    "8/P5k1/8/8/8/8/1p4K1/8 w - - 0 1",
    "r3k2r/1P4P1/8/2pP4/8/8/8/R3K2R w KQkq c6 0 1",
    "rnbqkb1r/pp1p1ppp/8/2pPp3/4n3/5N2/PPP2PPP/RNBQKB1R w KQkq c6 0 5",
    "8/5k2/3p4/1p1Pp2p/pP2Pp1P/P4P1K/8/8 b - b3 60 90",
];

/// Returns every third position of random games; every second game starts from one of [`FENS`].
pub fn positions(count: usize, seed: u64) -> Vec<Input> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut inputs = Vec::new();
    let mut game = Game::default();
    let mut games = 0;
    while inputs.len() < count {
        if game.plies().len().is_multiple_of(3) {
            inputs.push(Input::encode(&game));
        }
        let moves = game.position().legal_moves();
        if moves.is_empty() || game.plies().len() > 60 {
            let fen = FENS[games % FENS.len()];
            games += 1;
            game = match games % 2 {
                0 => Game::default(),
                _ => Game::from_fen(fen, CastlingMode::Standard).unwrap(),
            };
        } else {
            game.play(moves[random.random_range(0..moves.len())]);
        }
    }
    inputs
}

/// Returns rows as i64 [B, 111].
pub fn rows(inputs: &[Input]) -> Tensor {
    let words: Vec<i64> = inputs
        .iter()
        .flat_map(|input| bytemuck::cast_slice::<u64, i64>(input.words()).to_vec())
        .collect();
    Tensor::from_slice(&words).view([-1, WIDTH as i64])
}
