//! Network files as they are played.

use crate::network::{self, ArchitectureConfig, Network};
use crate::nn::torch::{self, Module, NetworkError, Numbers, Program, TorchBackend, TorchError};
use crate::nn::{CodePolicy, Decoding, DeviceChoice, Metadata, Precision};
use std::sync::Arc;
use tch::Device;

/// Makes a network file ready to play on a device; `threads` will call at once, 0 leaves
/// their number to the backend.
///
/// On the CPU a network of a family known here runs by that family's own code, and none
/// of its file's; one that imagines futures does so everywhere. Elsewhere, and of others, the file's TorchScript runs, which
/// may bring code as the policy says.
///
/// On the CPU libtorch computes each call on its caller's thread alone, in the whole
/// process from now on: two callers with a thread each are faster than one with two.
///
/// # Errors
/// [`NetworkError`] if the file is no network, or cannot run there.
pub fn open(
    file: &[u8],
    policy: CodePolicy,
    device: DeviceChoice,
    precision: Precision,
    threads: usize,
) -> Result<TorchBackend, NetworkError> {
    open_to_imagine(
        file,
        policy,
        device,
        precision,
        threads,
        Decoding::default(),
    )
}

/// The same of a network that imagines futures in this way, if it does.
///
/// # Errors
/// As [`open`].
pub(super) fn open_to_imagine(
    file: &[u8],
    policy: CodePolicy,
    device: DeviceChoice,
    precision: Precision,
    threads: usize,
    decoding: Decoding,
) -> Result<TorchBackend, NetworkError> {
    let (device, formats) = torch::resolve(device, precision)?;
    if device == Device::Cpu {
        // Threads that had been started would wait for work, and spin meanwhile.
        tch::set_num_threads(1);
    }
    let opened = Opened {
        decoding,
        ..Opened::new(file, policy, device)?
    };
    let backend = match formats[..] {
        [numbers] => {
            let metadata = opened.metadata.clone();
            TorchBackend::of_program(opened.into_program(numbers)?, &metadata, device, numbers)?
        }
        _ => TorchBackend::fastest(file, &opened.metadata, device, &formats, |numbers| {
            opened.program(numbers)
        })?,
    };
    Ok(backend.with_threads(threads))
}

/// A network file, opened for a device.
#[derive(Debug)]
pub(crate) struct Opened {
    /// What it says of itself.
    pub metadata: Metadata,
    device: Device,
    source: Source,
    /// How it imagines futures, if it does.
    decoding: Decoding,
}

/// What evaluates positions.
#[derive(Debug)]
enum Source {
    /// The code of a family known here.
    Family(Box<Network>),
    /// That of the file.
    Script(Module),
}

impl Opened {
    /// Opens a file for a device; see [`open`].
    pub fn new(file: &[u8], policy: CodePolicy, device: Device) -> Result<Opened, NetworkError> {
        let opened = |metadata, source| Opened {
            metadata,
            device,
            source,
            decoding: Decoding::default(),
        };
        if is_ours(file, device) {
            let (metadata, tensors) = torch::contents(file, policy)?;
            if let Ok(network) = Network::from_tensors(&metadata, tensors) {
                return Ok(opened(metadata, Source::Family(Box::new(network))));
            }
        }
        let (module, metadata) = torch::open(file, policy)?;
        Ok(opened(metadata, Source::Script(module)))
    }

    /// The network in these numbers.
    pub fn program(&self, numbers: Numbers) -> Result<Arc<dyn Program>, NetworkError> {
        Ok(match &self.source {
            Source::Family(network) => {
                let frozen = network.freeze_on(self.device, numbers, self.decoding);
                Arc::new(frozen.map_err(|error| TorchError::new(&error.to_string()))?)
            }
            Source::Script(module) => Arc::new(module.copy()?.freeze(self.device, numbers.kind)?),
        })
    }

    /// The same without a copy of what the file holds.
    pub fn into_program(self, numbers: Numbers) -> Result<Arc<dyn Program>, NetworkError> {
        match self.source {
            Source::Script(module) => Ok(Arc::new(module.freeze(self.device, numbers.kind)?)),
            Source::Family(_) => self.program(numbers),
        }
    }
}

/// Whether a network runs by our own code on a device: on the processor all but graphs,
/// elsewhere only what takes several steps.
fn is_ours(file: &[u8], device: Device) -> bool {
    let config = network::architecture(file);
    config.is_ok_and(|config| match config {
        ArchitectureConfig::Onnx { .. } => false,
        ArchitectureConfig::Diffusion { .. } => true,
        _ => device == Device::Cpu,
    })
}

#[cfg(test)]
mod tests;
