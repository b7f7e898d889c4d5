//! A game in which the built-in network had a win but that ended by repetition.

use crate::uci::Engine;
use shakmaty::CastlingMode;
use tessera::chess::{Ending, Game};

/// Results from before a repetition do not apply to moves that would now end the game, so an engine
/// that reuses its tree must not choose such moves.
#[test]
fn a_won_game_is_not_repeated_out_of_habit() {
    let start = "8/2k5/4R3/1p1P4/1N1K4/2P4r/8/8 w - - 7 50";
    let moves = "d5d6 c7b6 d6d7 b6c7 b4d5 c7d7 e6b6 b5b4 c3b4 d7c8 d4c5 h3h7 b4b5 h7g7 b6f6 c8b7 \
                 f6b6 b7a7 b6a6 a7b7 a6b6 b7a7 b6a6 a7b7";
    let moves: Vec<&str> = moves.split_whitespace().collect();
    let mut engine = Engine::start();
    engine.say("setoption name Threads value 1");
    let mut game = Game::from_fen(start, CastlingMode::Standard).unwrap();
    for (ply, mv) in moves.iter().enumerate() {
        if ply >= 14 && ply % 2 == 0 {
            engine.say(&format!(
                "position fen {start} moves {}",
                moves[..ply].join(" ")
            ));
            engine.say("go nodes 400");
            engine.best_move();
        }
        game.play(game.parse_move(mv).unwrap());
    }
    engine.say(&format!("position fen {start} moves {}", moves.join(" ")));
    engine.say("go nodes 400");
    let best = engine.best_move();
    game.play(game.parse_move(&best).unwrap());
    assert_ne!(game.ending(), Some(Ending::Repetition), "{best}");
}
