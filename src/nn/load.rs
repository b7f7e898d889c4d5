//! From what a user asks for to a backend.

use super::{Backend, Random, Uniform};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// Which implementation evaluates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendKind {
    /// A network through libtorch.
    #[default]
    Torch,
    /// No network: every move alike, every position even.
    Uniform,
    /// No network: values and priors are a hash of the position and a seed.
    Random,
}

/// Where a network is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if there is one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DeviceChoice::Auto => formatter.write_str("auto"),
            DeviceChoice::Cpu => formatter.write_str("cpu"),
            DeviceChoice::Cuda(0) => formatter.write_str("cuda"),
            DeviceChoice::Cuda(number) => write!(formatter, "cuda:{number}"),
        }
    }
}

/// Why a text names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no device: write auto, cpu, cuda or, of several, cuda:1")]
pub struct ParseDeviceError(String);

impl FromStr for DeviceChoice {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<DeviceChoice, ParseDeviceError> {
        let unknown = || ParseDeviceError(text.to_owned());
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            other => {
                let number = other.strip_prefix("cuda:").ok_or_else(unknown)?;
                number
                    .parse()
                    .map(DeviceChoice::Cuda)
                    .map_err(|_| unknown())
            }
        }
    }
}

/// The floating-point format a network is computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    /// bf16 where the CPU computes in it, else f32; fp16 on CUDA.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision; CUDA only.
    Fp16,
}

/// What backend a user asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendOptions {
    /// Which implementation.
    pub kind: BackendKind,
    /// The network's file; `None` is the one built into the program.
    pub net: Option<PathBuf>,
    /// Where it is computed.
    pub device: DeviceChoice,
    /// In which format.
    pub precision: Precision,
    /// Threads that will call the backend at once; 0 leaves it to the backend.
    pub threads: usize,
    /// Memory for remembered evaluations, in MiB; 0 remembers none.
    pub cache: usize,
    /// Seed of the random backend.
    pub seed: u64,
}

/// Why a backend could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the network {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No file was named and the program was built without a network.
    #[error(
        "this program was built without a network: name the file of one (option Net, or --net)"
    )]
    NoneBuiltIn,
}

/// Loads what `options` ask for. Slow (a second) for networks.
///
/// # Errors
/// [`LoadError`], whose message says what is wrong and how to mend it.
pub fn load(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    match options.kind {
        BackendKind::Uniform => Ok(Arc::new(Uniform::default())),
        BackendKind::Random => Ok(Arc::new(Random::new(options.seed))),
        BackendKind::Torch => Err(LoadError::NoneBuiltIn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn devices_are_written_as_they_are_read() {
        for (text, device) in [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:1", DeviceChoice::Cuda(1)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("CUDA:0".parse(), Ok(DeviceChoice::Cuda(0)));
    }

    proptest! {
        #[test]
        fn what_is_no_device_is_refused(text in "(cuda|cpu|auto)?:?[-+a-z0-9 ]{0,24}") {
            if let Ok(device) = text.parse::<DeviceChoice>() {
                prop_assert_eq!(device.to_string().parse(), Ok(device));
            }
        }
    }
}
