//! Players tested through their interface: their choices, reports and guarantees.

mod backends;
mod contempt;
mod faults;
mod limits;
mod mates;
mod mcts;
mod move_readers;
mod one_ply;
mod pondering;
mod proofs;
mod transpositions;

use shakmaty::{CastlingMode, Move};
use tessera::chess::Game;
use tessera::play::{Agent, Choice, Control, Limits, Report};

fn game(fen: &str, moves: &str) -> Game {
    let mut game = match fen {
        "startpos" => Game::default(),
        fen => Game::from_fen(fen, CastlingMode::Standard).unwrap(),
    };
    play(&mut game, moves);
    game
}

fn play(game: &mut Game, moves: &str) {
    for mv in moves.split_whitespace() {
        let mv = game.parse_move(mv).unwrap();
        game.play(mv);
    }
}

fn choose(agent: &mut dyn Agent, game: &Game, limits: &Limits) -> Choice {
    let mut quiet = |_: &Report| {};
    agent
        .choose(game, limits, &Control::default(), &mut quiet)
        .unwrap()
}

fn uci(game: &Game, mv: Option<Move>) -> String {
    mv.map_or("(none)".to_owned(), |mv| game.format_move(mv))
}
