//! Training data: from games and Lc0 chunks to the batches that a trainer consumes.
//!
//! [`pgn`] reads games into [`record::Record`]s, which are trees of moves with the engines' scores.
//! [`shard`] stores millions of them in one file, at about a byte per sample. [`label`] decides
//! which of a record's moves are training targets, and computes their values; [`replay`] plays
//! through a record and yields a [`Sample`] for each target. [`packing`] writes games to shards.
//! [`examples`] defines the units of training, such as positions or whole games, and [`loader`]
//! shuffles them from all shards into batches, in an order that can be resumed exactly. [`v6`]
//! reads Lc0's training chunks, which contain ready-made samples instead of games. [`Contents`]
//! tells these kinds of data apart. [`statistics`] counts the data. [`held_out`] removes the
//! positions of test sets.

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
