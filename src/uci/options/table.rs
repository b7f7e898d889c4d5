//! The table of options, in the order in which they are listed.

mod exploration;
mod playing;
mod search;
mod values;

use super::Entry;
use clap::ValueEnum;

/// Every option.
pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        playing::ENTRIES,
        exploration::ENTRIES,
        values::ENTRIES,
        search::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

/// The names of all values of a type, as on the command line.
fn values_of<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().cloned().map(name).collect()
}

fn name<T: ValueEnum>(value: T) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

fn choose<T: ValueEnum>(target: &mut T, value: &str) {
    if let Ok(value) = T::from_str(value, true) {
        *target = value;
    }
}
