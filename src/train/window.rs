//! What has been measured since the last line of the metrics.

use super::loss::{Losses, NAMES};
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// Averages of the losses, in the order of [`NAMES`]; `None` where no sample
/// carried the target.
pub(super) type Averages = Vec<Option<f64>>;

/// Sums on the device, so that steps wait for nothing.
#[derive(Debug)]
pub(super) struct Window {
    /// f32 [2 · losses + 2]: each loss times what carried it, what carried it,
    /// the total loss and the gradient's length.
    sums: Tensor,
    steps: u64,
    samples: usize,
    started: Instant,
    paused: Duration,
    /// Steps and samples before this process took over; its clock knows nothing
    /// of them.
    inherited: (u64, usize),
}

/// What a window saw.
#[derive(Debug)]
pub(super) struct Measured {
    /// Mean of each loss over the samples that carried its target.
    pub averages: Averages,
    /// For each loss the weight of the samples that carried its target.
    pub carried: Vec<f64>,
    /// Mean of the weighted sum of losses.
    pub loss: f64,
    /// Mean length of the gradient before clipping.
    pub norm: f64,
    /// Samples a second.
    pub speed: f64,
    /// Seconds the window was open, pauses left out.
    pub seconds: f64,
    /// Steps taken in those seconds.
    pub steps: u64,
}

impl Window {
    pub fn new(device: Device) -> Window {
        let count = 2 * NAMES.len() + 2;
        Window {
            sums: Tensor::zeros([count as i64], (Kind::Float, device)),
            steps: 0,
            samples: 0,
            started: Instant::now(),
            paused: Duration::ZERO,
            inherited: (0, 0),
        }
    }

    /// Goes on with a window that a checkpoint carried.
    pub fn resume(sums: &Tensor, (steps, samples): (u64, usize), device: Device) -> Window {
        let fresh = Window::new(device);
        if sums.size() != fresh.sums.size() {
            return fresh;
        }
        Window {
            sums: sums.to_device(device),
            steps,
            samples,
            inherited: (steps, samples),
            ..fresh
        }
    }

    /// What a checkpoint carries: the sums, and steps and samples.
    pub fn state(&self) -> (Tensor, (u64, usize)) {
        (self.sums.copy(), (self.steps, self.samples))
    }

    pub fn add(&mut self, losses: &Losses, norm: &Tensor, samples: usize) {
        let _guard = tch::no_grad_guard();
        let scalars = Tensor::stack(&[&losses.total.detach(), norm], 0).to_kind(Kind::Float);
        let weighted = &losses.values * &losses.carried;
        self.sums += Tensor::cat(&[&weighted, &losses.carried, &scalars], 0);
        self.steps += 1;
        self.samples += samples;
    }

    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Takes time out that was spent on something else than training.
    pub fn pause(&mut self, time: Duration) {
        self.paused += time;
    }

    /// Mean total loss and mean length of the gradient so far.
    pub fn loss_and_norm(&self) -> (f64, f64) {
        let sums = self.fetch();
        let steps = self.steps.max(1) as f64;
        let [.., loss, norm] = sums.as_slice() else {
            unreachable!("two sums at least");
        };
        (loss / steps, norm / steps)
    }

    fn fetch(&self) -> Vec<f64> {
        let sums = self.sums.to_device(Device::Cpu).to_kind(Kind::Double);
        Vec::try_from(sums).expect("a vector of floats")
    }

    /// Fetches the averages and begins anew.
    pub fn close(&mut self) -> Measured {
        let sums = self.fetch();
        let (weighted, carried) = sums.split_at(NAMES.len());
        let carried = &carried[..NAMES.len()];
        let (loss, norm) = self.loss_and_norm();
        let seconds = self.started.elapsed().saturating_sub(self.paused);
        let seconds = seconds.as_secs_f64().max(1e-9);
        let averages = weighted.iter().zip(carried);
        let measured = Measured {
            averages: averages
                .map(|(&sum, &carried)| (carried > 0.0).then(|| sum / carried))
                .collect(),
            carried: carried.to_vec(),
            loss,
            norm,
            speed: (self.samples - self.inherited.1) as f64 / seconds,
            seconds,
            steps: self.steps - self.inherited.0,
        };
        *self = Window::new(self.sums.device());
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(value: f64, carried: f64) -> Losses {
        let all =
            |value: f64| Tensor::full([NAMES.len() as i64], value, (Kind::Float, Device::Cpu));
        Losses {
            total: Tensor::from(value as f32),
            values: all(value),
            carried: all(carried),
        }
    }

    #[test]
    fn averages_are_over_what_carried_the_target() {
        let mut window = Window::new(Device::Cpu);
        window.add(&losses(1.0, 3.0), &Tensor::from(2f32), 8);
        window.add(&losses(5.0, 1.0), &Tensor::from(4f32), 8);
        let (sums, counts) = window.state();
        for mut window in [window, Window::resume(&sums, counts, Device::Cpu)] {
            let measured = window.close();
            assert_eq!(measured.averages, vec![Some(2.0); NAMES.len()]);
            assert_eq!((measured.loss, measured.norm), (3.0, 3.0));
            let empty = window.close();
            assert_eq!(empty.averages, vec![None; NAMES.len()]);
        }
    }
}
