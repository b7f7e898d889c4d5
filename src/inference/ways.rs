//! The ways to run a network, one file each.

mod encoder;
mod file;
mod kernels;
mod operators;

use super::candidate::Family;
use super::opened::Opened;
use crate::backend::Way;
use crate::network::Program;
use crate::torch::{ComputeType, NetworkError};
use std::sync::Arc;
use tch::Device;

/// Prepares networks to run by one way.
pub(super) trait ProgramFactory: Sync {
    /// Returns whether networks of a family can run by this way on a device in this dtype.
    fn supports(&self, family: Family, device: Device, dtype: ComputeType) -> bool;

    /// Prepares a network in a dtype. Returns `None` if the way does not suit the network's sizes
    /// or the device.
    ///
    /// # Errors
    /// [`NetworkError`] if the network cannot be prepared.
    fn prepare(
        &self,
        opened: &Opened,
        dtype: ComputeType,
    ) -> Result<Option<Arc<dyn Program>>, NetworkError>;
}

const FACTORIES: [(Way, &dyn ProgramFactory); 4] = [
    (Way::File, &file::File),
    (Way::Operators, &operators::Operators),
    (Way::Kernels, &kernels::Kernels),
    (Way::Encoder, &encoder::Encoder),
];

/// Returns the factory of a way, or `None` for [`Way::Auto`].
pub(super) fn factory(way: Way) -> Option<&'static dyn ProgramFactory> {
    let mut factories = FACTORIES.into_iter();
    factories.find(|(other, _)| *other == way).map(|(_, it)| it)
}
