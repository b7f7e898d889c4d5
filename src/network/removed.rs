//! Keys that only earlier versions wrote to files.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt::Debug;

/// Reads a key for which only one value remains valid, so that files with this value can still be
/// opened.
///
/// # Errors
/// An error that names the key and states that the other values have been removed.
pub(crate) fn only_left<'de, D: Deserializer<'de>, T: Deserialize<'de> + PartialEq + Debug>(
    deserializer: D,
    key: &str,
    left: T,
) -> Result<(), D::Error> {
    let found = T::deserialize(deserializer)?;
    match found == left {
        true => Ok(()),
        false => Err(D::Error::custom(format!(
            "`{key} = {found:?}` was removed, as it gained nothing: leave `{key}` out"
        ))),
    }
}
