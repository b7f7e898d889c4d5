//! Time: evaluation latency, interruptions and time management.

pub(crate) mod lag;
pub(crate) mod latency;
pub(crate) mod time;
