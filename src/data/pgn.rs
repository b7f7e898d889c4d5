//! Games in PGN: streams of them, plain or compressed, and each game's tree
//! with the scores and lines that engines left in its comments; and such games
//! written.

mod comment;
mod expected;
mod game;
mod journal;
mod stream;
mod writer;

pub use game::{GameError, parse_game};
pub use journal::{Journal, JournalError, tag};
pub use stream::{Games, open};
pub use writer::{AnnotatedGame, Judged};
