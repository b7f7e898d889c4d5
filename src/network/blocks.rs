//! Blocks over token sequences [B, T, width] of any meaning, and over the squares of several
//! boards.

mod adaln;
mod attention;
mod kv_cache;
mod mlp;
mod move_embedding;
mod move_marks;
mod rotary;
mod time_attention;

pub(super) use adaln::AdaLnZero;
pub(super) use attention::{Mask, SelfAttention, attention};
pub(super) use kv_cache::KeyValues;
pub use kv_cache::KvCache;
pub(super) use mlp::Mlp;
pub(super) use move_embedding::MoveEmbedding;
pub(super) use move_marks::{LearnedMarks, MOVE_MARKS, move_marks, move_parts};
pub(super) use rotary::{Rotary, Rotations};
pub(super) use time_attention::TimeAttention;
