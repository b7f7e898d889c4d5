//! The uniform backend, for which all positions are even and all moves equally likely.

use super::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use crate::encode::Encoder;

/// Evaluates every position as even and every move as equally likely. `q` and `d` are 0 (half the
/// games are won and half lost), and so are all logits.
///
/// Evaluations cost almost nothing, so this backend measures the cost of the search itself.
#[derive(Debug)]
pub struct Uniform {
    properties: Properties,
}

impl Default for Uniform {
    fn default() -> Uniform {
        Uniform {
            properties: without_network("uniform"),
        }
    }
}

impl Backend for Uniform {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        for index in 0..batch.len() {
            let logits = std::iter::repeat_n(0.0, batch.moves(index).len());
            out.push(Value::default(), logits);
        }
        Ok(())
    }
}

/// Number of leaves that a search gathers in a large tree for a backend without a network. Larger
/// batches reduce contention between the threads that share the tree.
const BATCH: usize = 1024;

/// Returns the properties of a backend whose evaluations cost almost nothing, so each thread may
/// call it directly.
pub(super) fn without_network(name: &str) -> Properties {
    Properties {
        name: name.to_owned(),
        encoder: Encoder::Nothing,
        has_value: true,
        has_moves_left: false,
        has_error: false,
        reads_ratings: false,
        correction: None,
        recommended_batch: BATCH,
        recommended_threads: 1,
        format: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::positions;

    #[test]
    fn everything_is_even() {
        let batch = positions(5, false);
        let mut out = Evaluations::default();
        Uniform::default().evaluate(&batch, &mut out).unwrap();
        assert_eq!(out.len(), batch.len());
        for index in 0..batch.len() {
            assert_eq!(out.value(index).wdl(), [0.5, 0.0, 0.5]);
            assert_eq!(out.logits(index), vec![0.0; batch.moves(index).len()]);
        }
    }
}
