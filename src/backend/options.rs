//! Options of backends.

use super::{Decoding, Devices, Precision, Way};
use std::path::PathBuf;

/// An implementation of the evaluation interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendKind {
    /// A network through libtorch.
    #[default]
    Torch,
    /// A network through libtorch, compared with the same network in f32 on the CPU.
    Check,
    /// No network: all moves equally likely, all positions even.
    Uniform,
    /// No network: values and priors are a hash of the position and a seed.
    Random,
}

/// The policy for code in network files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodePolicy {
    /// Only code like that of our exporters runs: see `torch::check`.
    #[default]
    Checked,
    /// All code in the file runs, with this program's permissions.
    Allowed,
}

impl CodePolicy {
    /// Returns the policy of a user who does or does not allow code.
    pub fn allowed_if(allowed: bool) -> CodePolicy {
        match allowed {
            true => CodePolicy::Allowed,
            false => CodePolicy::Checked,
        }
    }
}

/// The [`CodePolicy`] as command-line arguments.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CodeArguments {
    /// Skip the safety check of the network's code. Unsafe
    #[arg(long)]
    allow_code: bool,
}

impl CodeArguments {
    /// Returns the policy for opening files.
    pub fn policy(self) -> CodePolicy {
        CodePolicy::allowed_if(self.allow_code)
    }
}

/// The networks that can be built into the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuiltIn {
    /// The network that nets/default names, with which the engine itself plays.
    #[default]
    Main,
    /// nets/tessera-human.pt, which plays like people of a given rating.
    Human,
}

/// A network and the device to run it on. Loading one takes a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkOptions {
    /// The network's file; `None` selects a built-in network.
    pub net: Option<PathBuf>,
    /// The built-in network, if no file is given.
    pub built_in: BuiltIn,
    /// The policy for the file's code.
    pub code: CodePolicy,
    /// The devices.
    pub devices: Devices,
    /// The number format.
    pub precision: Precision,
    /// The way to run the network.
    pub way: Way,
    /// Settings for predicting futures.
    pub decoding: Decoding,
}

/// Options of a backend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendOptions {
    /// The implementation.
    pub kind: BackendKind,
    /// The network, for [`BackendKind::Torch`].
    pub network: NetworkOptions,
    /// Threads that will call the backend concurrently; 0 leaves it to the backend.
    pub threads: usize,
    /// Memory for the evaluation cache, in MiB; 0 disables it.
    pub cache: usize,
    /// Seed of the random backend.
    pub seed: u64,
}

impl BackendOptions {
    /// Returns whether a backend of `other` has the same network, if any.
    pub fn has_network_of(&self, other: &BackendOptions) -> bool {
        let needs_none = matches!(self.kind, BackendKind::Uniform | BackendKind::Random);
        self.kind == other.kind && (needs_none || self.network == other.network)
    }

    /// Returns whether a backend of `other` returns the same evaluations.
    pub fn evaluates_like(&self, other: &BackendOptions) -> bool {
        let is_same = self.kind != BackendKind::Random || self.seed == other.seed;
        is_same && self.has_network_of(other)
    }
}
