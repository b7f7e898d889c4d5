//! The uniform backend: every position is even, every move equally likely.

use super::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use crate::encode::Encoder;

/// Evaluates every position as even and every move as equally likely: `q` and `d` are 0 (half the
/// games won, half lost), all logits 0.
///
/// Only the cost of the search itself remains, so this backend measures it.
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

/// Leaves that a search gathers in a large tree for a backend without a network: larger batches
/// reduce contention between the threads that share it.
const BATCH: usize = 1024;

/// Returns the properties of a backend whose computation costs almost nothing: each thread may
/// call it directly.
pub(super) fn without_network(name: &str) -> Properties {
    Properties {
        name: name.to_owned(),
        encoder: Encoder::Nothing,
        has_value: true,
        has_moves_left: false,
        has_error: false,
        reads_ratings: false,
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
