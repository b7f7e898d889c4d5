//! Games in PGN: streams of them, plain or compressed, and each game's tree
//! with the scores of its `[%eval]` comments.

mod game;
mod stream;

pub use game::{GameError, parse_game};
pub use stream::{Games, open};
