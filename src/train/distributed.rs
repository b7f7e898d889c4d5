//! Training in several processes: one for each GPU, on one machine or many.
//!
//! Processes find each other like those of any PyTorch program, so torchrun, Slurm and
//! Kubernetes' PyTorchJob can start them ([`Launch`]). They communicate through libtorch's c10d:
//! Gloo on the CPU, NCCL on CUDA ([`World`]).
//!
//! A step's batch is split into equal parts, one per process. A process divides its losses by the
//! target weights of the whole batch, and the gradients are summed during backward. So a step is
//! the same for any number of processes, up to rounding, and so are batches, learning rate and
//! checkpoints: a run can be resumed with more or fewer processes.
//!
//! # Scaling model
//!
//! Let a step of one process take f seconds forward, b backward and s in the optimizer, and let P
//! parameters be summed over N processes. A ring moves 2·(N − 1)/N · 4·P bytes through each link
//! of B bytes per second, and each of k buckets incurs the latency l 2·(N − 1) times:
//!
//! ```text
//! sum  = 8·P·(N − 1)/(N·B) + 2·(N − 1)·l·k
//! step = f + max(b, sum) + last + s
//! ```
//!
//! where `last` is the sum of the bucket that backward completes last, which cannot be hidden:
//! the rest overlaps with backward, and `max` is its bound. The efficiency is (f + b + s)/step.
//! Between machines B is the network's bandwidth, shared by the GPUs of a machine; NCCL sums
//! within each machine first.

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
