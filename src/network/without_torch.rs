//! The place of `network` in a program built without libtorch, which knows no family.

pub mod backends;
