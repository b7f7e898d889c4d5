//! Games in PGN: reading streams of them, plain or compressed; parsing each game's
//! tree with the scores and lines in its comments; writing annotated games.

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
