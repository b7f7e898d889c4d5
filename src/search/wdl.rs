//! What the network's results come to between players of given strength.

pub(crate) mod contempt;
pub(crate) mod rescaling;
