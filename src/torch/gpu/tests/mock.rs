//! A GPU for tests. Its kernels are emulated on the CPU, and any step can fail.

use super::driver::{Driver, Launch, Limits};
use super::{Sizes, emulate};
use crate::torch::TorchError;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;

/// A call of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Limits,
    Compile,
    Load,
    Launch,
}

/// A driver whose clones share the calls that they record.
#[derive(Clone, Debug)]
pub(crate) struct MockDriver {
    pub(super) limits: Limits,
    /// The step that fails, and the number of its calls that succeed before.
    failing: Option<(Step, usize)>,
    steps: Arc<Mutex<Vec<Step>>>,
}

thread_local! {
    static IN_USE: RefCell<Option<MockDriver>> = const { RefCell::new(None) };
}

/// Returns the driver that replaces those of this thread's devices.
pub(super) fn in_use() -> Option<MockDriver> {
    IN_USE.with_borrow(Clone::clone)
}

impl MockDriver {
    /// Returns the driver of a GPU with an H100's limits.
    pub fn new(failing: Option<(Step, usize)>) -> MockDriver {
        MockDriver {
            limits: Limits {
                capability: 90,
                of_block: 227 << 10,
                of_processor: 228 << 10,
            },
            failing,
            steps: Arc::default(),
        }
    }

    /// Lets the encoders that `work` creates run on this GPU instead of the CPU.
    pub fn replacing_the_cpu<R>(&self, work: impl FnOnce() -> R) -> R {
        IN_USE.set(Some(self.clone()));
        let result = work();
        IN_USE.set(None);
        result
    }

    /// Returns the calls since the last call of this function.
    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut *self.steps.lock())
    }

    fn record(&self, step: Step) -> Result<(), TorchError> {
        let mut steps = self.steps.lock();
        let earlier = steps.iter().filter(|&&other| other == step).count();
        steps.push(step);
        match self.failing {
            Some((failing, successes)) if failing == step && earlier >= successes => {
                Err(TorchError::new(&format!("CUDA: {step:?} fails")))
            }
            _ => Ok(()),
        }
    }
}

impl Driver for MockDriver {
    fn limits(&self) -> Result<Limits, TorchError> {
        self.record(Step::Limits)?;
        Ok(self.limits)
    }

    fn compile(&self, source: &str, architecture: &str) -> Result<Vec<u8>, TorchError> {
        self.record(Step::Compile)?;
        Ok(format!("{architecture}\n{source}").into())
    }

    fn load(&self, code: &[u8], sizes: &Sizes) -> Result<Launch, TorchError> {
        self.record(Step::Load)?;
        let code = String::from_utf8_lossy(code);
        let architecture = format!("sm_{}\n", self.limits.capability);
        if !code.starts_with(&architecture) || !code.contains(&sizes.listed()) {
            return Err(TorchError::new(
                "CUDA: no kernel for this GPU and these sizes",
            ));
        }
        let (driver, sizes) = (self.clone(), *sizes);
        Ok(Box::new(move |tensors| {
            driver.record(Step::Launch)?;
            emulate(&sizes, false, tensors)
        }))
    }
}
