//! Tablebases: reading, probing at the root and in the search, and messages.

mod endgame;
mod messages;
mod reading;
mod rook_knight;
mod root;
mod searching;
mod table;

use endgame::Endgame;
use shakmaty::{Bitboard, CastlingMode, Chess, EnPassantMode, Position, Role};
use std::path::PathBuf;
use tempfile::TempDir;
use tessera::chess::Game;
use tessera::play::{Agent, Choice, Control, Limits};
use tessera::tablebase::{Tablebase, Verdict};

/// Solved endgames and a folder with their tables.
struct Tables {
    folder: TempDir,
    endgames: [Endgame; 3],
}

impl Tables {
    fn write() -> Tables {
        let folder = tempfile::tempdir().unwrap();
        let queen = Endgame::solve(Role::Queen, &[]);
        let rook = Endgame::solve(Role::Rook, &[]);
        let pawn = Endgame::solve(Role::Pawn, &[&queen, &rook]);
        let endgames = [queen, rook, pawn];
        for endgame in &endgames {
            table::write_wdl(folder.path(), endgame);
            table::write_dtz(folder.path(), endgame);
        }
        for minor in [Role::Bishop, Role::Knight] {
            table::write_flat(folder.path(), minor, [table::DRAW; 2]);
        }
        Tables { folder, endgames }
    }

    fn tablebase(&self) -> Tablebase {
        Tablebase::new(self.folder.path().to_str().unwrap())
    }

    /// Returns the [`Endgame::value`] of a position from any of the endgames.
    fn value(&self, position: &Chess) -> Option<i32> {
        let is_of = |endgame: &&Endgame| {
            let board = position.board();
            let pieces = board.by_role(endgame.role) | board.kings();
            board.by_role(endgame.role) != Bitboard::EMPTY && pieces == board.occupied()
        };
        self.endgames.iter().find(is_of)?.value(position)
    }
}

/// Returns the folder of tables from Syzygy's generator, if it exists.
fn generated() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/syzygy");
    let folder = std::env::var("SYZYGY_PATH").unwrap_or_else(|_| beside.to_owned());
    let folder = PathBuf::from(folder);
    if !folder.is_dir() {
        crate::skip::skip(&format!(
            "tables of Syzygy's generator in {}; SYZYGY_PATH can name another folder",
            folder.display()
        ));
        return None;
    }
    Some(folder)
}

fn game(fen: &str) -> Game {
    Game::from_fen(fen, CastlingMode::Standard).unwrap()
}

/// Creates a game that starts from a position reached after this many plies without a capture or
/// pawn move.
fn game_at(position: &Chess, rule50: u32) -> Game {
    let mut setup = position.to_setup(EnPassantMode::Legal);
    setup.halfmoves = rule50;
    let mode = CastlingMode::Standard;
    Game::new(setup.position(mode).unwrap(), mode)
}

fn choose(agent: &mut dyn Agent, game: &Game, limits: &Limits) -> Choice {
    agent
        .choose(game, limits, &Control::default(), &mut |_| {})
        .unwrap()
}

fn verdict_of(value: i32) -> Verdict {
    match value {
        1.. => Verdict::Win,
        0 => Verdict::Draw,
        ..0 => Verdict::Loss,
    }
}
