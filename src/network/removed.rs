//! Keys that earlier versions wrote into files.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt::Debug;

/// Reads a key with only one remaining value, so that files which state that value still open.
///
/// # Errors
/// Names the key and states that its other values were removed.
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
