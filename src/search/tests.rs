//! Whole searches, compared with simpler implementations, and searches in environments with other
//! rules.

mod dream;
mod imagining;
mod reference;
