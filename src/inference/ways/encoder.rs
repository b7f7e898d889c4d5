//! Runs a Chessformer's encoder in a single CUDA kernel. On the CPU the kernel is emulated, so that
//! it can be examined without a GPU.

use super::ProgramFactory;
use crate::inference::candidate::Family;
use crate::inference::opened::Opened;
use crate::network::Program;
use crate::torch::{self, ComputeType, NetworkError};
use std::sync::Arc;
use tch::{Device, Kind};

pub(super) struct Encoder;

impl ProgramFactory for Encoder {
    fn supports(&self, family: Family, _: Device, dtype: ComputeType) -> bool {
        family == Family::Chessformer && dtype.kind == Kind::Half
    }

    fn prepare(
        &self,
        opened: &Opened,
        _: ComputeType,
    ) -> Result<Option<Arc<dyn Program>>, NetworkError> {
        let Some((chessformer, weights)) = opened.network().and_then(|it| it.chessformer()) else {
            return Ok(None);
        };
        let device = opened.device;
        let folded = torch::caught(|| chessformer.fold_with_kernel(weights, device))??;
        Ok(folded.map(|folded| Arc::new(folded) as _))
    }
}

#[cfg(test)]
mod tests;
