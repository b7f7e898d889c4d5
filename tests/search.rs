//! Players, seen from outside: what they choose, report and promise.

#[path = "search/backends.rs"]
mod backends;
#[path = "search/contempt.rs"]
mod contempt;
#[path = "search/faults.rs"]
mod faults;
#[path = "search/limits.rs"]
mod limits;
#[path = "search/mates.rs"]
mod mates;
#[path = "search/mcts.rs"]
mod mcts;
#[path = "search/move_readers.rs"]
mod move_readers;
#[path = "search/one_ply.rs"]
mod one_ply;
#[path = "search/pondering.rs"]
mod pondering;
#[path = "search/proofs.rs"]
mod proofs;
#[path = "search/transpositions.rs"]
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
