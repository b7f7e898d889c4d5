//! Rescaling of win/draw/loss for players of given strength.

pub(crate) mod contempt;
pub(crate) mod rescaling;
