//! The positions as lines of JSON, for programs that query other players.

use super::Positions;
use crate::data::replay::{ReplayError, main_line};
use serde::Serialize;
use shakmaty::Position as _;

/// A position in the format for other programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The first position of the game; `None` is the initial position of chess.
    pub fen: Option<String>,
    /// The moves up to the position, in UCI notation.
    pub moves: Vec<String>,
    /// The move that was played in the position.
    pub played: String,
    /// The rating of the player to move.
    pub rating: u16,
    /// The opponent's rating, if it is known.
    pub opponent: Option<u16>,
}

/// Returns the positions in order.
///
/// # Errors
/// [`ReplayError`] if a game cannot be replayed.
pub fn list(positions: &Positions) -> Result<Vec<Listed>, ReplayError> {
    let mut listed = Vec::with_capacity(positions.positions.len());
    for (record, places) in &positions.games {
        let game = main_line(record)?;
        let played = game.plies().iter().filter_map(|ply| ply.played);
        let moves: Vec<String> = played.map(|mv| game.format_move(mv)).collect();
        for position in &positions.positions[places.clone()] {
            let turn = game.plies()[position.ply].position.turn();
            listed.push(Listed {
                fen: record.fen.clone(),
                moves: moves[..position.ply].to_vec(),
                played: moves[position.ply].clone(),
                rating: position.rating,
                opponent: turn.fold_wb(record.ratings.black, record.ratings.white),
            });
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::super::positions::tests::{ALL, positions};
    use super::*;

    #[test]
    fn positions_come_with_their_games_so_far() {
        let text = "[WhiteElo \"1500\"]\n[BlackElo \"1700\"]\n\n1. e4 e5 (1... c5) 2. Nf3 *\n";
        let listed = list(&positions(text, &ALL)).unwrap();
        let rows: Vec<_> = listed
            .iter()
            .map(|of| (of.moves.join(" "), &of.played[..], of.rating, of.opponent))
            .collect();
        let expected = [
            (String::new(), "e2e4", 1500, Some(1700)),
            ("e2e4".to_owned(), "e7e5", 1700, Some(1500)),
            ("e2e4 e7e5".to_owned(), "g1f3", 1500, Some(1700)),
        ];
        assert_eq!(rows, expected);
    }
}
