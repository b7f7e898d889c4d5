//! Replaces `network` in programs that are built without libtorch. It contains no families.

pub mod backends;
