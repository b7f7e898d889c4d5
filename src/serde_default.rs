//! Defaults of keys in configuration files.

/// Returns a number: the default of a key that the table does not state.
pub(crate) fn number<const NUMBER: u16, T: From<u16>>() -> T {
    NUMBER.into()
}
