//! Whole searches, compared with simpler ones, and in environments with other rules.

mod dream;
mod imagining;
mod reference;
