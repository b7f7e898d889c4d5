//! The session as a client sees it, with a player whose doings are scripted.

mod client;
mod edges;
mod mutate;
mod mutations;
mod strength;
