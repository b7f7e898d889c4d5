//! Whole searches, against others that are simpler, and in places of other rules.

mod dream;
mod imagining;
mod reference;
