//! Replaces `network` in a program built without libtorch; it contains no families.

pub mod backends;
