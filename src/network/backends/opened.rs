//! Network files opened for play.

use crate::backend::{CodePolicy, Decoding, DeviceChoice, Metadata, Precision};
use crate::network::{self, ArchitectureConfig, Chessformer, Playable};
use crate::torch::{self, ComputeType, Module, NetworkError, NetworkFile, Program, TorchBackend};
use std::sync::Arc;
use tch::Device;

/// Prepares a network file for play on a device. `threads` is the number of concurrent callers; if
/// it is 0, the backend chooses.
///
/// On the CPU, a network of a known family runs the family's own code instead of the code in the
/// file. Networks that predict futures do so on every device. On other devices, and for unknown
/// families, the file's TorchScript runs, subject to the code policy. [`CodePolicy::Ignored`]
/// selects the family's code on every device, and [`CodePolicy::Preferred`] the file's code.
///
/// On the CPU, this function limits libtorch to one thread per call, for the whole process: two
/// callers with one thread each are faster than one caller with two threads.
///
/// # Errors
/// [`NetworkError`] if the file is not a network, or cannot run on the device.
pub fn open(
    file: &[u8],
    policy: CodePolicy,
    device: DeviceChoice,
    precision: Precision,
    threads: usize,
) -> Result<TorchBackend, NetworkError> {
    let (device, formats) = torch::resolve_for(policy, device, precision)?;
    let opened = Opened::new(file, policy, device)?;
    let backend = opened.into_backend(file, &formats, Decoding::default())?;
    Ok(backend.with_threads(threads))
}

/// A network file, opened once for a device.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The file's metadata.
    pub metadata: Metadata,
    device: Device,
    /// The network, if our own code runs it.
    pub(super) network: Option<Playable>,
    /// The file's code, if it evaluates positions.
    script: Option<Module>,
    /// Whether the network runs in a form with few kernel launches and copies, whatever the device.
    has_few_launches: bool,
}

impl Opened {
    /// Opens a file for a device, as [`open`] describes.
    pub fn new(file: &[u8], policy: CodePolicy, device: Device) -> Result<Opened, NetworkError> {
        use ArchitectureConfig::{Diffusion, Gpt, World};
        let (is_ignored, is_preferred) = match policy {
            CodePolicy::Ignored => (true, false),
            CodePolicy::Preferred => (false, true),
            CodePolicy::Checked | CodePolicy::Allowed => (false, false),
        };
        let mut file = NetworkFile::open(file, policy)?;
        let config = network::described(&file.metadata.architecture);
        // No network file contains code that reads games or imagines boards.
        let is_special = matches!(config, Ok(Gpt { .. } | World { .. }));
        let is_ours = match config {
            Err(_) => false,
            Ok(Diffusion { .. }) => true,
            Ok(_) => is_special || is_ignored || device == Device::Cpu && !is_preferred,
        };
        let mut network = None;
        if is_ours {
            let tensors = file.tensors()?;
            let found = Playable::from_tensors(&file.metadata, tensors);
            network = match is_special {
                true => Some(found?),
                false => found.ok(),
            };
        }
        let has_code = match network {
            None => true,
            Some(Playable::World(_)) => is_preferred || device != Device::Cpu && !is_ignored,
            Some(_) => false,
        };
        Ok(Opened {
            metadata: file.metadata.clone(),
            device,
            network,
            script: has_code.then(|| file.into_module()).transpose()?,
            has_few_launches: is_ignored || is_preferred,
        })
    }

    /// Returns a backend in the fastest of these formats. `file` is the file that `self` was opened
    /// from. `decoding` applies if the network predicts futures.
    pub fn into_backend(
        self,
        file: &[u8],
        formats: &[ComputeType],
        decoding: Decoding,
    ) -> Result<TorchBackend, NetworkError> {
        if self.device == Device::Cpu {
            // Threads started earlier would spin while they wait for work.
            tch::set_num_threads(1);
        }
        TorchBackend::require(&self.metadata)?;
        let (metadata, device) = (self.metadata.clone(), self.device);
        let has_few_launches = self.has_few_launches;
        let backend = match *formats {
            [dtype] => {
                let program = self.into_program(dtype, decoding)?;
                TorchBackend::of_program(program, &metadata, device, dtype)
            }
            _ => TorchBackend::fastest(file, &metadata, device, formats, |dtype| {
                self.program(dtype, decoding)
            }),
        }?;
        Ok(match has_few_launches {
            true => backend.exchanging(),
            false => backend,
        })
    }

    /// Returns a program that runs the network in this dtype.
    fn program(
        &self,
        dtype: ComputeType,
        decoding: Decoding,
    ) -> Result<Arc<dyn Program>, NetworkError> {
        if let Some(script) = &self.script {
            return Ok(Arc::new(script.copy()?.freeze(self.device, dtype.kind)?));
        }
        if let Some(folded) = self.folded(dtype)? {
            return Ok(Arc::new(folded));
        }
        let frozen = match &self.network {
            Some(Playable::Positions(network)) => {
                network.freeze_on(self.device, dtype, decoding)?
            }
            Some(Playable::World(network)) => network.freeze_on(self.device, dtype, decoding)?,
            Some(Playable::Moves(network)) => network.freeze_on(self.device, dtype, decoding)?,
            None => return Err(NetworkError::Foreign),
        };
        Ok(Arc::new(frozen))
    }

    /// Returns the network in a form with few operators, if that is requested and such a form
    /// exists.
    fn folded(&self, dtype: ComputeType) -> Result<Option<impl Program + use<>>, NetworkError> {
        let folded = || match &self.network {
            Some(Playable::Positions(network)) => {
                let chessformer: &Chessformer = network.downcast()?;
                chessformer.fold(&network.weights, dtype.kind, self.device)
            }
            Some(Playable::World(network)) => {
                let encoder = network.architecture.encoder();
                encoder.fold(&network.weights, dtype.kind, self.device)
            }
            _ => None,
        };
        match self.has_few_launches {
            true => Ok(torch::caught(folded)?),
            false => Ok(None),
        }
    }

    /// Returns the program without copying the file's tensors, if the program can own them.
    pub fn into_program(
        self,
        dtype: ComputeType,
        decoding: Decoding,
    ) -> Result<Arc<dyn Program>, NetworkError> {
        match (self.script, self.network) {
            (Some(script), _) => Ok(Arc::new(script.freeze(self.device, dtype.kind)?)),
            (None, Some(Playable::Positions(network)))
                if self.device == Device::Cpu && !self.has_few_launches =>
            {
                Ok(Arc::new(network.into_frozen(dtype, decoding)))
            }
            (script, network) => Opened {
                script,
                network,
                ..self
            }
            .program(dtype, decoding),
        }
    }
}

#[cfg(test)]
mod tests;
