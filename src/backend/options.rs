//! Options of backends.

use super::{Decoding, Devices, Precision};
use std::path::PathBuf;

/// An implementation of the evaluation interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendKind {
    /// A network through libtorch.
    #[default]
    Torch,
    /// The same, compared with the network in f32 on the CPU.
    Check,
    /// No network: every move alike, every position even.
    Uniform,
    /// No network: values and priors are a hash of the position and a seed.
    Random,
}

/// How the code in a network file is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodePolicy {
    /// Only code like that of our exporters runs: see `torch::check`.
    #[default]
    Checked,
    /// Whatever the file brings runs, and may do what this program may do.
    Allowed,
    /// None of it runs: on every device, families known here run by their own code.
    Ignored,
}

impl CodePolicy {
    /// The policy of a user who allows code, or does not.
    #[must_use]
    pub fn allowed_if(allowed: bool) -> CodePolicy {
        match allowed {
            true => CodePolicy::Allowed,
            false => CodePolicy::Checked,
        }
    }
}

/// The [`CodePolicy`] as commands are told it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CodeArguments {
    /// Run code of a network file that no network of the engine's has: it may do anything
    #[arg(long)]
    allow_code: bool,
}

impl CodeArguments {
    /// The policy to open files by.
    #[must_use]
    pub fn policy(self) -> CodePolicy {
        CodePolicy::allowed_if(self.allow_code)
    }
}

/// The networks that can be built into the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuiltIn {
    /// The one that nets/default names: the engine's own play.
    #[default]
    Main,
    /// nets/tessera-human.pt: what people play, by their ratings.
    Human,
}

/// A network and the device to run it on. Loading one takes a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkOptions {
    /// The network's file; `None` is one built into the program.
    pub net: Option<PathBuf>,
    /// The built-in network, if no file is named.
    pub built_in: BuiltIn,
    /// The treatment of the file's code.
    pub code: CodePolicy,
    /// The devices.
    pub devices: Devices,
    /// The number format.
    pub precision: Precision,
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
    /// Threads that will call the backend at once; 0 leaves it to the backend.
    pub threads: usize,
    /// Memory for remembered evaluations, in MiB; 0 remembers none.
    pub cache: usize,
    /// Seed of the random backend.
    pub seed: u64,
}

impl BackendOptions {
    /// Returns whether a backend of `other` has the same network, if any.
    #[must_use]
    pub fn has_network_of(&self, other: &BackendOptions) -> bool {
        let needs_none = matches!(self.kind, BackendKind::Uniform | BackendKind::Random);
        self.kind == other.kind && (needs_none || self.network == other.network)
    }

    /// Returns whether a backend of `other` evaluates every position alike.
    #[must_use]
    pub fn evaluates_like(&self, other: &BackendOptions) -> bool {
        let is_same = self.kind != BackendKind::Random || self.seed == other.seed;
        is_same && self.has_network_of(other)
    }
}
