//! Training in several processes: one for each GPU, on one machine or many.
//!
//! The processes find each other as those of any PyTorch program do, so
//! torchrun, Slurm and Kubernetes' PyTorchJob start them ([`Launch`]), and they
//! speak through libtorch's c10d: Gloo on the CPU, NCCL on CUDA ([`World`]).
//!
//! A step's batch is cut into equal slices, one a process; each averages its
//! losses over the samples of the whole batch that carry the target, and the
//! gradients are summed while backward computes. So a step is the same step on
//! any number of processes, up to rounding, and so are the batches, the
//! learning rate and the checkpoints: a run may go on with more or fewer.

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
