//! Visits: threads descend by PUCT, gather leaves, and back up their values.

pub(crate) mod backup;
pub(crate) mod picks;
pub(crate) mod select;
pub(crate) mod unvisited;
pub(crate) mod utility;
pub(crate) mod worker;
