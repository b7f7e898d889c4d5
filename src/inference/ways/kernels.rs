//! Runs a family's own code with weights packed for the CPU's kernels.

use super::ProgramFactory;
use crate::inference::candidate::Family;
use crate::inference::opened::Opened;
use crate::network::Program;
use crate::torch::{ComputeType, NetworkError};
use std::sync::Arc;
use tch::{Device, Kind};

pub(super) struct Kernels;

impl ProgramFactory for Kernels {
    fn supports(&self, family: Family, device: Device, dtype: ComputeType) -> bool {
        let is_own = !matches!(family, Family::Moves | Family::Foreign);
        is_own && device == Device::Cpu && dtype.kind != Kind::Half
    }

    fn prepare(
        &self,
        opened: &Opened,
        dtype: ComputeType,
    ) -> Result<Option<Arc<dyn Program>>, NetworkError> {
        Ok(Some(Arc::new(opened.freeze(dtype)?)))
    }
}
