//! The session as a client sees it, with a scripted player.

mod client;
mod edges;
mod mutate;
mod mutations;
mod strength;
