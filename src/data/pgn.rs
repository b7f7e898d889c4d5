//! Games in PGN: reads streams of games, plain or compressed, parses each game's tree, including
//! the scores and lines in comments, and writes annotated games.

mod boundary;
mod comment;
mod error;
mod expected;
mod game;
mod journal;
mod playable;
mod remarks;
mod stream;
mod tags;
mod token;
mod writer;

pub use error::{GameError, TokenPlace};
pub use game::{ParsedGame, parse_game, read_game};
pub use journal::{IDENTITY, Journal, JournalError, LABELLED};
pub use playable::{Playable, Unread, read_playable};
pub use remarks::Remarks;
pub use stream::{GamePlace, GameText, Games, open, open_converted};
pub use tags::{tag, tags};
pub(crate) use writer::Movetext;
pub use writer::{AnnotatedGame, Judged};
