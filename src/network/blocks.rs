//! Blocks over runs of tokens [B, T, width], of whatever the tokens stand for, and over
//! the squares of several boards.

mod adaln;
mod attention;
mod kv_cache;
mod mlp;
mod move_marks;
mod rotary;
mod time_attention;

pub(super) use adaln::AdaLnZero;
pub(super) use attention::Mask;
pub(super) use attention::SelfAttention;
pub(super) use kv_cache::KeyValues;
pub use kv_cache::KvCache;
pub(super) use mlp::Mlp;
pub(super) use move_marks::{MOVE_MARKS, move_marks};
pub(super) use rotary::Rotary;
pub(super) use time_attention::TimeAttention;
