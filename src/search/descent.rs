//! Visits: threads descend by PUCT, gather leaves, and back their values up.

pub(crate) mod backup;
pub(crate) mod picks;
pub(crate) mod select;
pub(crate) mod unvisited;
pub(crate) mod utility;
pub(crate) mod worker;
