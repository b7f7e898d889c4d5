//! Trains in several processes, one per GPU, on one machine or many.
//!
//! Processes find each other through PyTorch's environment variables, so torchrun, Slurm and
//! Kubernetes' PyTorchJob can start them ([`Launch`]). They communicate through libtorch's c10d,
//! using Gloo on the CPU and NCCL on CUDA ([`World`]).
//!
//! A step's batch is split into equal parts, one per process. Each process divides its losses by
//! the target weights of the whole batch, and the gradients are summed during backward. The number
//! of processes therefore changes a step only by rounding, and does not change the batches, the
//! learning rate or the checkpoint format. A run can be resumed with more or fewer processes.
//!
//! # Scaling model
//!
//! Suppose that each process spends f seconds of a step on forward, b on backward and s on the
//! optimizer, and that the gradients of P parameters are summed over N processes in k buckets. A
//! ring all-reduce moves 2·(N − 1)/N · 4·P bytes through each link. With a bandwidth of B bytes per
//! second and a latency of l seconds, which each bucket incurs 2·(N − 1) times:
//!
//! ```text
//! sum  = 8·P·(N − 1)/(N·B) + 2·(N − 1)·l·k
//! step = f + max(b, sum) + last + s
//! ```
//!
//! Here, `sum` is the time to sum all buckets, and `last` the time to sum the bucket that backward
//! completes last. The last sum cannot be hidden, but the others overlap with backward, so that
//! backward and all sums take at most `max(b, sum) + last`. The efficiency is (f + b + s)/step.
//! Between machines, B is the network bandwidth, which the GPUs of a machine share; NCCL first sums
//! within each machine.

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
