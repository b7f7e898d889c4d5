//! Counts evaluations.

use crate::backend::{
    Backend, BackendError, Batch, Evaluations, Imagination, Imagined, Properties, Scene,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A backend that counts the evaluations of another one, including positions evaluated in
/// imagination and every denoising step of predicted futures. Several counters may share one count.
pub(crate) struct EvaluationCounter {
    inner: Arc<dyn Backend>,
    evaluations: Arc<AtomicU64>,
}

impl EvaluationCounter {
    /// Wraps `inner`, adding the number of its evaluations to `evaluations`.
    pub(crate) fn new(inner: Arc<dyn Backend>, evaluations: Arc<AtomicU64>) -> EvaluationCounter {
        EvaluationCounter { inner, evaluations }
    }
}

impl Backend for EvaluationCounter {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let evaluations = batch.len() * batch.steps.unwrap_or(1).max(1);
        self.evaluations.fetch_add(evaluations as u64, Relaxed);
        self.inner.evaluate(batch, out)
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        let inner = self.inner.imagination()?;
        let evaluations = Arc::clone(&self.evaluations);
        Some(Arc::new(CountedImagination { inner, evaluations }))
    }

    fn forget(&self) {
        self.inner.forget();
    }
}

struct CountedImagination {
    inner: Arc<dyn Imagination>,
    evaluations: Arc<AtomicU64>,
}

impl Imagination for CountedImagination {
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn context(&self) -> usize {
        self.inner.context()
    }

    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError> {
        self.evaluations.fetch_add(scenes.len() as u64, Relaxed);
        self.inner.imagine(scenes, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Random, evaluate_games, evaluate_with_futures};
    use crate::chess::Game;

    #[test]
    fn networks_that_follow_each_other_are_counted_together() {
        let evaluations = Arc::<AtomicU64>::default();
        let counter = |seed| {
            let evaluations = Arc::clone(&evaluations);
            EvaluationCounter::new(Arc::new(Random::new(seed)), evaluations)
        };
        let game = Game::default();
        let (first, second) = (counter(1), counter(2));
        evaluate_games(&first, [&game, &game]).unwrap();
        evaluate_games(&second, [&game]).unwrap();
        evaluate_with_futures(&first, [&game], 4).unwrap();
        assert_eq!(evaluations.load(Relaxed), 2 + 1 + 4);
    }
}
