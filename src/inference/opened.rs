//! Network files opened for play.

use crate::backend::{CodePolicy, Decoding, Metadata};
use crate::network::{self, ArchitectureConfig, FrozenNetwork, OpenError, Playable};
use crate::torch::{ComputeType, Module, NetworkError, NetworkFile};
use std::cell::OnceCell;
use tch::Device;

/// A network file, opened once for a device.
#[derive(Debug)]
pub(crate) struct Opened<'f> {
    file: NetworkFile<'f>,
    pub device: Device,
    /// The network, if its family is known and it has been read.
    pub(super) network: Option<Playable>,
    /// The file's code, once a way needs it.
    module: OnceCell<Module>,
    /// How the network predicts futures, if it does.
    pub(super) decoding: Decoding,
}

impl<'f> Opened<'f> {
    /// Opens a file for a device. Only the metadata are read.
    pub fn new(
        bytes: &'f [u8],
        policy: CodePolicy,
        device: Device,
    ) -> Result<Opened<'f>, NetworkError> {
        Ok(Opened {
            file: NetworkFile::open(bytes, policy)?,
            device,
            network: None,
            module: OnceCell::new(),
            decoding: Decoding::default(),
        })
    }

    /// Returns the architecture that the file states, or `None` if its family is unknown.
    pub fn architecture(&self) -> Option<ArchitectureConfig> {
        network::described(&self.metadata().architecture).ok()
    }

    /// Reads the network.
    pub fn read_network(&mut self) -> Result<(), OpenError> {
        let tensors = self.file.tensors()?;
        self.network = Some(Playable::from_tensors(self.metadata(), tensors)?);
        Ok(())
    }

    pub fn metadata(&self) -> &Metadata {
        &self.file.metadata
    }

    /// Returns the network, if its own code may run.
    pub fn network(&self) -> Option<&Playable> {
        self.network.as_ref()
    }

    /// Returns a copy of the program in the file, on the CPU.
    pub fn module(&self) -> Result<Module, NetworkError> {
        let module = match self.module.get() {
            Some(module) => module,
            None => {
                let module = self.file.module()?;
                self.module.get_or_init(|| module)
            }
        };
        Ok(module.copy()?)
    }

    /// Returns the network, frozen in a dtype on the device.
    pub fn freeze(&self, dtype: ComputeType) -> Result<FrozenNetwork, NetworkError> {
        let network = self.network.as_ref().ok_or(NetworkError::Foreign)?;
        Ok(network.freeze(self.device, dtype, self.decoding)?)
    }
}
