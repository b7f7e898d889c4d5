//! Training data: from games and Lc0 chunks to the batches that a trainer consumes.
//!
//! [`pgn`] parses games to [`record::Record`]s, which are trees of moves with the engines' scores.
//! [`shard`] stores millions of records in one file, at about a byte per sample. [`label`] decides
//! which of a record's moves are training targets, and computes the values of their positions;
//! [`replay`] plays through a record and returns a [`Sample`] for each label. [`packing`] writes
//! games to shards. [`examples`] defines the units of training, such as positions or whole games,
//! and [`loader`] shuffles the examples of all shards into batches, in an order that can be resumed
//! exactly. [`v6`] reads Lc0's training chunks, which contain ready-made samples instead of games.
//! [`Contents`] identifies the kind of data at a path. [`statistics`] counts games, samples and
//! targets. [`held_out`] excludes the positions of test sets from training.

mod contents;
pub mod copies;
pub mod curve;
pub mod examples;
pub mod held_out;
pub mod label;
pub mod legal;
pub mod loader;
pub mod packing;
pub mod pgn;
pub mod record;
pub mod replay;
pub mod sample;
pub mod san_moves;
pub mod shard;
pub mod statistics;
pub mod v6;

pub use crate::packed::is_stdin;
pub use contents::{Contents, ContentsError};
pub use curve::Curve;
pub use legal::Legal;
pub use sample::{Policy, Sample, Wdl};
