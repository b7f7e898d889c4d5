//! The fingerprint of a network's weights, which ties files that were fitted to a network to it.

use super::evaluator::floats;
use crate::network::Network;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a network's weights in f32, in hexadecimal.
pub(super) fn fingerprint(network: &Network) -> String {
    let mut hash = Sha256::new();
    for tensor in network.weights.tensors() {
        hash.update(bytemuck::cast_slice::<f32, u8>(&floats(tensor)));
    }
    format!("{:x}", hash.finalize())
}
