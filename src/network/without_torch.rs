//! Replaces `network` in programs that are built without libtorch, in which no families exist.

pub mod backends;
