//! Trains in several processes, one per GPU, on one machine or many.
//!
//! Processes find each other like those of any PyTorch program, so torchrun, Slurm and Kubernetes'
//! PyTorchJob can start them ([`Launch`]). They communicate through libtorch's c10d, using Gloo on
//! the CPU and NCCL on CUDA ([`World`]).
//!
//! A step's batch is split into equal parts, one per process. Each process divides its losses by
//! the target weights of the whole batch, and the gradients are summed during backward. A step is
//! therefore the same, up to rounding, for any number of processes, and so are the batches, the
//! learning rate and the checkpoints. A run can be resumed with more or fewer processes.
//!
//! # Scaling model
//!
//! Suppose that a step of one process takes f seconds for forward, b for backward and s for the
//! optimizer, and that P parameters are summed over N processes. A ring moves 2·(N − 1)/N · 4·P
//! bytes through each link of B bytes per second. Each of k buckets incurs the latency l 2·(N − 1)
//! times:
//!
//! ```text
//! sum  = 8·P·(N − 1)/(N·B) + 2·(N − 1)·l·k
//! step = f + max(b, sum) + last + s
//! ```
//!
//! Here, `last` is the time to sum the bucket that backward completes last, which cannot be hidden.
//! The other sums overlap with backward, so the two together take at most `max(b, sum)` plus
//! `last`. The efficiency is (f + b + s)/step. Between machines, B is the network bandwidth, which
//! the GPUs of a machine share; NCCL first sums within each machine.

mod buckets;
mod group;
mod launch;
mod nodes;
mod shim;
#[cfg(test)]
pub(crate) mod tests;
mod world;

pub(crate) use buckets::Buckets;
pub use group::GroupError;
pub use launch::{Launch, LaunchError};
pub(crate) use world::Agreement;
pub use world::World;
