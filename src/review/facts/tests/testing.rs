//! Positions and moves for the facts' tests.

use super::Fact;
use crate::chess::Game;
use shakmaty::{CastlingMode, Chess, Move};

pub(super) fn position(fen: &str) -> Chess {
    let game = Game::from_fen(fen, CastlingMode::Standard).expect(fen);
    game.position().clone()
}

pub(super) fn mv(position: &Chess, text: &str) -> Move {
    let game = Game::new(position.clone(), CastlingMode::Standard);
    game.read_move(text).expect(text)
}

/// Parses the moves of a line.
pub(super) fn line(position: &Chess, text: &str) -> Vec<Move> {
    let mut game = Game::new(position.clone(), CastlingMode::Standard);
    let mut moves = Vec::new();
    for word in text.split_whitespace() {
        let mv = game.read_move(word).expect(text);
        moves.push(mv);
        game.play(mv);
    }
    moves
}

/// Asserts that the fact about a move in a position is the expected one; an empty text means that
/// none is expected.
pub(super) fn check(fact: impl Fn(&Chess, Move) -> Option<Fact>, cases: &[(&str, &str, &str)]) {
    let wrong = cases.iter().filter_map(|&(fen, text, expected)| {
        let position = position(fen);
        let found = fact(&position, mv(&position, text));
        let found = found.map(|fact| fact.text).unwrap_or_default();
        (found != expected).then(|| format!("{text} in {fen}: {found:?}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
