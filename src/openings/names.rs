//! The names of openings, from the built-in table of lichess-org/chess-openings (CC0). The file is
//! the output of `cat a.tsv b.tsv c.tsv d.tsv e.tsv | zstd -19`, with the heading lines removed
//! before compression.

use crate::chess::{Game, key_of};
use crate::data::pgn::parse_game;
use crate::data::replay::main_line;
use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &[u8] = include_bytes!("names.tsv.zst");

/// A named position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The code in the Encyclopaedia of Chess Openings.
    pub eco: String,
    /// The name.
    pub name: String,
}

/// The openings by the keys of their positions, and all positions that lead to them.
struct Table {
    named: HashMap<u64, Opening>,
    known: std::collections::HashSet<u64>,
}

static ALL: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        named: HashMap::new(),
        known: std::collections::HashSet::new(),
    };
    for (opening, game) in named_openings() {
        table.known.extend(game.plies().iter().map(|ply| ply.key));
        table.named.insert(key_of(game.position()), opening);
    }
    table
});

/// Returns all named openings with their moves.
#[must_use]
pub fn named_openings() -> Vec<(Opening, Game)> {
    let text = zstd::decode_all(TABLE).unwrap_or_default();
    let text = String::from_utf8(text).unwrap_or_default();
    text.lines().filter_map(read).collect()
}

/// Parses a line of the table.
fn read(line: &str) -> Option<(Opening, Game)> {
    let [eco, name, moves] = line.split('\t').collect::<Vec<_>>()[..] else {
        return None;
    };
    let record = parse_game(moves.as_bytes()).ok()?;
    let opening = Opening {
        eco: eco.to_owned(),
        name: name.to_owned(),
    };
    Some((opening, main_line(&record).ok()?))
}

/// Returns the opening that a game has reached, which is that of its last named position, and the
/// number of plies after which the game left the table.
#[must_use]
pub fn named_opening(game: &Game) -> Option<(&'static Opening, usize)> {
    if !game.from_initial_position() {
        return None;
    }
    let table = &*ALL;
    let known = game
        .plies()
        .iter()
        .take_while(|ply| table.known.contains(&ply.key));
    let known: Vec<u64> = known.map(|ply| ply.key).collect();
    let name = known.iter().rev().find_map(|key| table.named.get(key))?;
    Some((name, known.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(moves: &str) -> Option<(String, usize)> {
        let mut game = Game::default();
        for mv in moves.split_whitespace() {
            game.play(game.read_move(mv).unwrap());
        }
        named_opening(&game)
            .map(|(opening, plies)| (format!("{} {}", opening.eco, opening.name), plies))
    }

    #[test]
    fn openings_are_named_by_position() {
        let ruy = "C60 Ruy Lopez".to_owned();
        assert_eq!(opening("e4 e5 Nf3 Nc6 Bb5"), Some((ruy.clone(), 5)));
        // The moves come in a different order, and further moves follow.
        assert_eq!(opening("e4 Nc6 Nf3 e5 Bb5"), Some((ruy.clone(), 5)));
        assert_eq!(opening("e4 e5 Nf3 Nc6 Bb5 h5 h4"), Some((ruy, 5)));
        assert_eq!(opening(""), None);
        let fen = "4k3/8/8/8/8/8/8/4K3 w - - 0 1";
        let game = Game::from_fen(fen, shakmaty::CastlingMode::Standard).unwrap();
        assert_eq!(named_opening(&game), None);
        assert!(ALL.named.len() > 3000);
    }
}
