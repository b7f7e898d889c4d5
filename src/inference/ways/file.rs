//! Runs the TorchScript code in a network's file.

use super::ProgramFactory;
use crate::inference::candidate::Family;
use crate::inference::opened::Opened;
use crate::network::Program;
use crate::torch::{ComputeType, NetworkError};
use std::sync::Arc;
use tch::Device;

pub(super) struct File;

impl ProgramFactory for File {
    fn supports(&self, family: Family, _: Device, dtype: ComputeType) -> bool {
        family != Family::Moves && !dtype.int8
    }

    fn prepare(
        &self,
        opened: &Opened,
        dtype: ComputeType,
    ) -> Result<Option<Arc<dyn Program>>, NetworkError> {
        let module = opened.module()?.freeze(opened.device, dtype.kind)?;
        Ok(Some(Arc::new(module)))
    }
}
