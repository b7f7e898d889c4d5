//! To come.

mod parameters;

pub use parameters::Parameters;
