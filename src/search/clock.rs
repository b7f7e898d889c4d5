//! Time: what evaluations take, and how much of the clock a move may.

pub(crate) mod latency;
pub(crate) mod time;
