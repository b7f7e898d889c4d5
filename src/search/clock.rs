//! Time: evaluation latency and time management.

pub(crate) mod latency;
pub(crate) mod time;
