//! The names of openings, from the built-in table of lichess-org/chess-openings (CC0). The file is
//! the output of `cat a.tsv b.tsv c.tsv d.tsv e.tsv | zstd -19`, with the heading lines removed
//! before compression.

use crate::chess::{Game, key_of};
use crate::data::pgn::parse_game;
use crate::data::replay::main_line;
use std::collections::{HashMap, HashSet};
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

/// The openings by the keys of their positions, and all positions that lead to them. A key includes
/// the side to move.
struct Table {
    named: HashMap<u64, Opening>,
    known: HashSet<u64>,
}

static ALL: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        named: HashMap::new(),
        known: HashSet::new(),
    };
    for (opening, game) in named_openings() {
        table.known.extend(game.plies().iter().map(|ply| ply.key));
        table.named.insert(key_of(game.position()), opening);
    }
    table
});

/// Returns all named openings with their moves.
fn named_openings() -> Vec<(Opening, Game)> {
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

/// Returns the opening of a game, which is the name of its last named position, by whatever moves
/// the game reached it. Also returns the number of plies after which the game left the table for
/// good.
pub fn named_opening(game: &Game) -> Option<(&'static Opening, usize)> {
    let table = &*ALL;
    let plies = game.plies();
    let name = plies
        .iter()
        .rev()
        .find_map(|ply| table.named.get(&ply.key))?;
    let left = plies
        .iter()
        .rposition(|ply| table.known.contains(&ply.key))?;
    Some((name, left))
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
        // The game leaves the table and returns to it.
        let grünfeld = "D90 Grünfeld Defense: Three Knights Variation".to_owned();
        assert_eq!(opening("Nf3 Nf6 c4 g6 Nc3 d5 d4"), Some((grünfeld, 7)));
        let left = "a4 a5 Ra3 Ra6 Ra1 Ra8 e4";
        assert_eq!(opening(left).map(|(_, plies)| plies), Some(2), "{left}");
        let french = "C00 French Defense".to_owned();
        assert_eq!(opening("e4 e6"), Some((french.clone(), 2)));
        // With the other side to move, the same board has another name or none.
        let lost = opening("e3 e6 e4");
        assert_ne!(lost.map(|(name, _)| name), Some(french));
        let game = |fen: &str| Game::from_fen(fen, shakmaty::CastlingMode::Standard).unwrap();
        assert_eq!(named_opening(&game("4k3/8/8/8/8/8/8/4K3 w - - 0 1")), None);
        // Games that start in the middle are named by the same rule.
        let sicilian = game("rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2");
        assert_eq!(named_opening(&sicilian).unwrap().0.name, "Sicilian Defense");
        assert!(ALL.named.len() > 3000);
    }
}
