//! Numbers with their nouns.

use std::fmt::Display;

/// Formats a number of things, such as `1 game` or `2 games`, given the singular noun.
pub fn counted<N: Display + From<u8> + PartialEq>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
