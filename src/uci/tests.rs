//! The session from a client's view, with a scripted player.

mod client;
mod edges;
mod mutate;
mod mutations;
mod strength;
