//! Times each phase of a training step.
//!
//! On a CPU, every step is timed. A GPU computes asynchronously, and waiting for it after every
//! phase would slow training down. Therefore, only the first step of each window is timed on a GPU,
//! with the device synchronised after each phase, and its times are taken for all steps.

use serde::Serialize;
use std::time::{Duration, Instant};
use tch::{Cuda, Device};

/// The phases of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for the loader.
    Data,
    /// Moving the batch to the device and evaluating the teacher.
    Prepare,
    /// The forward pass with its losses. With several replicas, only the first one is timed.
    Forward,
    /// The backward pass. With several replicas, this is the backward pass of the first one and its
    /// wait for the others.
    Backward,
    /// Updating the parameters and their averages.
    Step,
}

/// Times the phases of steps.
#[derive(Debug)]
pub(super) struct Stopwatch {
    device: Device,
    last: Instant,
    is_timing: bool,
    /// Number of timed steps, and the total time of each phase.
    timed: u64,
    phases: [Duration; 5],
}

/// The share of a window's time that each phase takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Shares {
    /// Share of the time spent waiting for the loader, in 0…1.
    pub data: f64,
    /// Share of the time spent preparing batches, in 0…1.
    pub prepare: f64,
    /// Share of the time spent in the forward pass, in 0…1.
    pub forward: f64,
    /// Share of the time spent in the backward pass, in 0…1.
    pub backward: f64,
    /// Share of the time spent in the optimizer, in 0…1.
    pub step: f64,
    /// Share of the time spent on anything but the forward pass, the backward pass and the
    /// optimizer, in 0…1. It includes `data` and `prepare`.
    pub outside: f64,
}

impl Stopwatch {
    pub fn new(device: Device) -> Stopwatch {
        Stopwatch {
            device,
            last: Instant::now(),
            is_timing: true,
            timed: 0,
            phases: [Duration::ZERO; 5],
        }
    }

    /// Starts a step.
    pub fn begin(&mut self) {
        self.is_timing = !self.device.is_cuda() || self.timed == 0;
        self.wait();
        self.last = Instant::now();
    }

    /// Ends a phase of the step.
    pub fn mark(&mut self, phase: Phase) {
        if phase != Phase::Data {
            self.wait();
        }
        let now = Instant::now();
        // The wait for the loader needs no synchronisation, so it is timed in every step.
        if self.is_timing || phase == Phase::Data {
            self.phases[phase as usize] += now - self.last;
        }
        if phase == Phase::Step && self.is_timing {
            self.timed += 1;
        }
        self.last = now;
    }

    fn wait(&self) {
        if let (Device::Cuda(index), true) = (self.device, self.is_timing) {
            Cuda::synchronize(index as i64);
        }
    }

    /// Returns the phases' shares of a window that lasted `seconds` and took `steps`, and resets
    /// the stopwatch.
    pub fn close(&mut self, seconds: f64, steps: u64) -> Shares {
        let [data, rest @ ..] = self.phases.map(|time| time.as_secs_f64() / seconds);
        let factor = steps as f64 / self.timed.max(1) as f64;
        let [prepare, forward, backward, step] = rest.map(|share| share * factor);
        *self = Stopwatch::new(self.device);
        Shares {
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
                Phase::Data,
                Phase::Prepare,
                Phase::Forward,
                Phase::Backward,
                Phase::Step,
            ] {
                std::thread::sleep(Duration::from_millis(4));
                watch.mark(part);
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        let parts = watch.close(seconds, 3);
        let sum = parts.forward + parts.backward + parts.step + parts.outside;
        assert!((sum - 1.0).abs() < 1e-9, "{parts:?}");
        // A busy machine may make each phase longer than its sleeps, but none shorter.
        let least = 0.012 / seconds;
        let Shares {
            data,
            prepare,
            forward,
            backward,
            step,
            outside,
        } = parts;
        for share in [data, prepare, forward, backward, step] {
            assert!(share >= least, "{share} < {least}: {parts:?}");
        }
        assert!(outside >= data + prepare, "{parts:?}");
    }
}
