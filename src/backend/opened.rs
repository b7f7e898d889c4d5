//! Network files as they are played.

use crate::network::{Graph, Network};
use crate::nn::torch::{self, NetworkError, TorchBackend, TorchError};
use crate::nn::{CodePolicy, DeviceChoice, Precision};
use std::sync::Arc;
use tch::Device;

/// Makes a network file ready to play on a device; `threads` will call at once, 0 leaves
/// their number to the backend.
///
/// On the CPU a network of a family known here runs by that family's own code, and none
/// of its file's. Elsewhere, and of other families, the file's TorchScript runs, which
/// may bring code as the policy says.
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
    let (device, formats) = torch::resolve(device, precision)?;
    let (module, metadata) = torch::open(file, policy)?;
    let place = (device, &formats[..]);
    let network = match device {
        Device::Cpu => Network::from_tensors(&metadata, module.tensors()?).ok(),
        _ => None,
    };
    match network.filter(|network| network.downcast::<Graph>().is_none()) {
        Some(network) => TorchBackend::fastest(file, &metadata, place, threads, |numbers| {
            let frozen = network.freeze(numbers);
            let frozen = frozen.map_err(|error| TorchError::new(&error.to_string()))?;
            Ok(Arc::new(frozen))
        }),
        None => TorchBackend::of_script(file, module, &metadata, place, threads),
    }
}
