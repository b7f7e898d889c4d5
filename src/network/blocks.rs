//! Blocks over runs of tokens [B, T, width], of whatever the tokens stand for.

mod attention;
mod kv_cache;
mod mlp;
mod rotary;

pub(super) use attention::Seen;
pub(super) use attention::SelfAttention;
pub(super) use kv_cache::KeyValues;
pub use kv_cache::KvCache;
pub(super) use mlp::Mlp;
pub(super) use rotary::Rotary;
