//! Network files with the ways in which they may run.

use super::candidate::{Candidate, Family};
use super::choice::{self, Choice};
use super::opened::Opened;
use super::plan::plan;
use super::torch_backend::TorchBackend;
use super::ways::factory;
use crate::backend::{CodePolicy, Decoding, DeviceChoice, Metadata, Precision, Way};
use crate::network::{ArchitectureConfig, Program};
use crate::torch::{self, ComputeType, NetworkError};
use std::sync::Arc;
use tch::Device;

/// Prepares a network file for play on a device. `threads` is the number of concurrent callers; if
/// it is 0, the backend chooses.
///
/// On the CPU, a network of a known family runs the family's own code instead of the code in the
/// file. Networks that predict futures do so on every device. On other devices, several ways are
/// compared and the fastest one runs. Networks of unknown families run the file's TorchScript,
/// subject to the code policy.
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
    open_by(Way::Auto, file, policy, device, precision, threads)
}

/// Prepares a network file for play by a way, like [`open`].
///
/// # Errors
/// [`NetworkError`], also if the way does not support the network, the device or the precision.
pub fn open_by(
    way: Way,
    file: &[u8],
    policy: CodePolicy,
    device: DeviceChoice,
    precision: Precision,
    threads: usize,
) -> Result<TorchBackend, NetworkError> {
    let (device, formats) = torch::resolve_for(way, device, precision)?;
    let planned = Planned::new(file, policy, device, &formats, way)?;
    Ok(planned.backend()?.with_threads(threads))
}

/// A network file, opened for a device, with the ways in which it may run there.
#[derive(Debug)]
pub(crate) struct Planned<'f> {
    pub(super) opened: Opened<'f>,
    bytes: &'f [u8],
    /// In order of preference; never empty.
    pub candidates: Vec<Candidate>,
    /// Whether the user has named the way.
    is_named: bool,
}

impl<'f> Planned<'f> {
    /// Opens a file for a device that supports these formats.
    pub fn new(
        bytes: &'f [u8],
        policy: CodePolicy,
        device: Device,
        formats: &[ComputeType],
        way: Way,
    ) -> Result<Planned<'f>, NetworkError> {
        use ArchitectureConfig::{Gpt, World};
        let mut opened = Opened::new(bytes, policy, device)?;
        let config = opened.architecture();
        let mut candidates = plan(Family::of(config.as_ref()), device, formats, way);
        // No file contains code that reads games or imagines boards.
        let is_special = matches!(config, Some(Gpt { .. } | World { .. }));
        if is_special || candidates.iter().any(|it| it.way != Way::File) {
            match opened.read_network() {
                Err(error) if is_special => return Err(error.into()),
                Err(_) => candidates = plan(Family::Foreign, device, formats, way),
                Ok(()) => {}
            }
        }
        if candidates.is_empty() {
            return Err(NetworkError::Way(way));
        }
        Ok(Planned {
            opened,
            bytes,
            candidates,
            is_named: way != Way::Auto,
        })
    }

    /// Sets how the network predicts futures, if it does.
    pub fn with_decoding(mut self, decoding: Decoding) -> Planned<'f> {
        self.opened.decoding = decoding;
        self
    }

    pub fn metadata(&self) -> &Metadata {
        self.opened.metadata()
    }

    /// Returns a program for one of the ways, or `None` if it does not suit the network's sizes or
    /// the device.
    fn program(&self, candidate: Candidate) -> Result<Option<Arc<dyn Program>>, NetworkError> {
        match factory(candidate.way) {
            Some(factory) => factory.prepare(&self.opened, candidate.dtype),
            None => Ok(None),
        }
    }

    /// Returns a program for the way that is trusted most.
    pub fn trusted_program(&self) -> Result<Arc<dyn Program>, NetworkError> {
        let &last = self.candidates.last().expect("there is a way");
        let program = self.program(last)?;
        program.ok_or(NetworkError::Way(last.way))
    }

    /// Returns the way that is trusted most.
    pub fn trusted_way(&self) -> Way {
        self.candidates.last().expect("there is a way").way
    }

    /// Returns how the network runs, or which ways will be tried.
    pub fn outlook(&self) -> String {
        choice::outlook(&self.choice())
    }

    /// Returns a backend that runs by the best way.
    pub fn backend(&self) -> Result<TorchBackend, NetworkError> {
        if self.opened.device == Device::Cpu {
            // Threads started earlier would spin while they wait for work.
            tch::set_num_threads(1);
        }
        TorchBackend::require(self.metadata())?;
        choice::choose(&self.choice(), |candidate| self.prepare(candidate))
    }

    /// Returns a backend that runs by one of the ways, or `None` if it does not suit the network's
    /// sizes or the device.
    pub(super) fn prepare(
        &self,
        candidate: Candidate,
    ) -> Result<Option<TorchBackend>, NetworkError> {
        let (program, device) = (self.program(candidate)?, self.opened.device);
        let backend =
            |program| TorchBackend::of_program(program, self.metadata(), device, candidate);
        program.map(backend).transpose()
    }

    /// Returns what to choose from. The identity includes the file's code, because files with the
    /// same tensors may differ in their code.
    fn choice(&self) -> Choice<'_> {
        Choice {
            network: format!(
                "{}-{:08x}",
                self.metadata().hash,
                crc32fast::hash(self.bytes)
            ),
            device: self.opened.device,
            candidates: &self.candidates,
            is_named: self.is_named,
        }
    }
}

#[cfg(test)]
mod tests;
