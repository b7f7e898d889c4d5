//! Runs a family's own code with libtorch's operators, in a form with few operators if the family
//! has one.

use super::ProgramFactory;
use crate::inference::candidate::Family;
use crate::inference::opened::Opened;
use crate::network::Program;
use crate::torch::{self, ComputeType, NetworkError};
use std::sync::Arc;
use tch::Device;

pub(super) struct Operators;

impl ProgramFactory for Operators {
    fn supports(&self, family: Family, _: Device, dtype: ComputeType) -> bool {
        family != Family::Foreign && !dtype.int8
    }

    fn prepare(
        &self,
        opened: &Opened,
        dtype: ComputeType,
    ) -> Result<Option<Arc<dyn Program>>, NetworkError> {
        let folded = torch::caught(|| {
            let (chessformer, weights) = opened.network()?.chessformer()?;
            chessformer.fold(weights, dtype.kind, opened.device)
        })?;
        Ok(Some(match folded {
            Some(folded) => Arc::new(folded),
            None => Arc::new(opened.freeze(dtype)?),
        }))
    }
}
