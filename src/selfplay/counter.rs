//! Counting evaluations.

use crate::nn::{Backend, BackendError, Batch, Evaluations, Properties};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts the positions that another backend evaluates.
pub(crate) struct EvaluationCounter {
    inner: Arc<dyn Backend>,
    evaluations: AtomicU64,
}

impl EvaluationCounter {
    pub(crate) fn new(inner: Arc<dyn Backend>) -> EvaluationCounter {
        EvaluationCounter {
            inner,
            evaluations: AtomicU64::new(0),
        }
    }

    /// Positions evaluated.
    pub(crate) fn evaluations(&self) -> u64 {
        self.evaluations.load(Relaxed)
    }
}

impl Backend for EvaluationCounter {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        self.evaluations.fetch_add(batch.len() as u64, Relaxed);
        self.inner.evaluate(batch, out)
    }

    fn forget(&self) {
        self.inner.forget();
    }
}
