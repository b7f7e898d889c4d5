//! Where a step's time goes.
//!
//! A CPU works while it is watched, so every step is timed. A GPU works behind
//! the program's back, and waiting for it at every mark would slow it down: of
//! each window only the first step is timed, with the device waited for at its
//! marks, and stands for the others.

use serde::Serialize;
use std::time::{Duration, Instant};
use tch::{Cuda, Device};

/// The parts of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Waiting for the loader.
    Data,
    /// The batch onto the device, and what a teacher says of it.
    Prepare,
    /// The forward pass with its losses; the first replica's, where there are
    /// several.
    Forward,
    /// The backward pass; the first replica's, and its wait for the others.
    Backward,
    /// The optimizer and the averages.
    Step,
}

/// Times the parts of steps.
#[derive(Debug)]
pub(super) struct Stopwatch {
    device: Device,
    last: Instant,
    is_timing: bool,
    /// Steps timed, and what their parts took together.
    timed: u64,
    parts: [Duration; 5],
}

/// What the parts took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Parts {
    /// Share of the time in which the loader was waited for, 0…1.
    pub data: f64,
    /// Share of the time in which batches were readied, 0…1.
    pub prepare: f64,
    /// Share of the time of the forward pass, 0…1.
    pub forward: f64,
    /// Share of the time of the backward pass, 0…1.
    pub backward: f64,
    /// Share of the time of the optimizer, 0…1.
    pub step: f64,
    /// Share of the time outside forward, backward and step, 0…1.
    pub outside: f64,
}

impl Stopwatch {
    pub fn new(device: Device) -> Stopwatch {
        Stopwatch {
            device,
            last: Instant::now(),
            is_timing: true,
            timed: 0,
            parts: [Duration::ZERO; 5],
        }
    }

    /// A step begins.
    pub fn begin(&mut self) {
        self.is_timing = !self.device.is_cuda() || self.timed == 0;
        self.wait();
        self.last = Instant::now();
    }

    /// A part of the step is done.
    pub fn mark(&mut self, part: Part) {
        if part != Part::Data {
            self.wait();
        }
        let now = Instant::now();
        // Waiting for the loader never waits for the device, and is always timed.
        if self.is_timing || part == Part::Data {
            self.parts[part as usize] += now - self.last;
        }
        if part == Part::Step && self.is_timing {
            self.timed += 1;
        }
        self.last = now;
    }

    fn wait(&self) {
        if let (Device::Cuda(index), true) = (self.device, self.is_timing) {
            Cuda::synchronize(index as i64);
        }
    }

    /// The parts' shares of a window of `seconds` and `steps`; begins anew.
    pub fn close(&mut self, seconds: f64, steps: u64) -> Parts {
        let [data, rest @ ..] = self.parts.map(|time| time.as_secs_f64() / seconds);
        let factor = steps as f64 / self.timed.max(1) as f64;
        let [prepare, forward, backward, step] = rest.map(|share| share * factor);
        *self = Stopwatch::new(self.device);
        Parts {
            data,
            prepare,
            forward,
            backward,
            step,
            outside: (1.0 - forward - backward - step).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let started = Instant::now();
        let mut watch = Stopwatch::new(Device::Cpu);
        for _ in 0..3 {
            watch.begin();
            for part in [
                Part::Data,
                Part::Prepare,
                Part::Forward,
                Part::Backward,
                Part::Step,
            ] {
                std::thread::sleep(Duration::from_millis(4));
                watch.mark(part);
            }
        }
        let parts = watch.close(started.elapsed().as_secs_f64(), 3);
        let sum = parts.forward + parts.backward + parts.step + parts.outside;
        assert!((sum - 1.0).abs() < 1e-9, "{parts:?}");
        assert!(
            parts.data > 0.1 && parts.outside >= parts.data + parts.prepare,
            "{parts:?}"
        );
    }
}
