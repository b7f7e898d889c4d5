//! Foreign networks, in and out.

pub mod lc0;
