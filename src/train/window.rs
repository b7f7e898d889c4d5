//! What has been measured since the last line of the metrics.

use super::distributed::{GroupError, World};
use super::loss::{Losses, NAMES};
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// Averages of the losses, in the order of [`NAMES`]; `None` where no sample
/// carried the target.
pub(super) type Averages = Vec<Option<f64>>;

/// Sums on the device, so that steps wait for nothing.
#[derive(Debug)]
pub(super) struct Window {
    /// f32 [3 · losses + 2]: each loss times the weight that carried its target,
    /// that weight, the samples that did, the total loss and the gradient's
    /// length. Of this process; the sum over all is that of the run.
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
    /// For each loss the number of samples that carried its target.
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
        let count = 3 * NAMES.len() + 2;
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
            // A copy, for the sums grow in place.
            sums: sums.to_device(device).copy(),
            steps,
            samples,
            inherited: (steps, samples),
            ..fresh
        }
    }

    /// What a checkpoint carries: the sums over all processes, and steps and
    /// samples.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone; so for all that sums.
    pub fn state(&self, world: &World) -> Result<(Tensor, (u64, usize)), GroupError> {
        Ok((self.joint(world)?, (self.steps, self.samples)))
    }

    fn joint(&self, world: &World) -> Result<Tensor, GroupError> {
        let sums = self.sums.copy();
        world.sum(&sums, "summing losses")?;
        Ok(sums)
    }

    /// Adds a part of a batch: its losses, the weights `carried` and the samples
    /// `counts` that carried their targets, f32 `[losses]`, and its part of the
    /// gradient's length.
    pub fn add(&mut self, losses: &Losses, (carried, counts): (&Tensor, &Tensor), norm: &Tensor) {
        let _guard = tch::no_grad_guard();
        let scalars = Tensor::stack(&[&losses.total.detach(), norm], 0).to_kind(Kind::Float);
        self.sums += Tensor::cat(&[&losses.sums, carried, counts, &scalars], 0);
    }

    /// Counts a batch, of which all processes together saw `samples`.
    pub fn count(&mut self, samples: usize) {
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
    pub fn loss_and_norm(&self, world: &World) -> Result<(f64, f64), GroupError> {
        Ok(self.means(&self.fetch(world)?))
    }

    fn means(&self, sums: &[f64]) -> (f64, f64) {
        let steps = self.steps.max(1) as f64;
        let [.., loss, norm] = sums else {
            unreachable!("two sums at least");
        };
        (loss / steps, norm / steps)
    }

    fn fetch(&self, world: &World) -> Result<Vec<f64>, GroupError> {
        let sums = self.joint(world)?.to_device(Device::Cpu);
        Ok(Vec::try_from(sums.to_kind(Kind::Double)).expect("a vector of floats"))
    }

    /// Fetches the averages and begins anew.
    pub fn close(&mut self, world: &World) -> Result<Measured, GroupError> {
        let sums = self.fetch(world)?;
        let (loss, norm) = self.means(&sums);
        let mut parts = sums.chunks(NAMES.len());
        let mut part = || parts.next().expect("three parts and more");
        let (weighted, carried, counts) = (part(), part(), part());
        let seconds = self.started.elapsed().saturating_sub(self.paused);
        let seconds = seconds.as_secs_f64().max(1e-9);
        let averages = weighted.iter().zip(carried);
        let measured = Measured {
            averages: averages
                .map(|(&sum, &carried)| (carried > 0.0).then(|| sum / carried))
                .collect(),
            carried: counts.to_vec(),
            loss,
            norm,
            speed: (self.samples - self.inherited.1) as f64 / seconds,
            seconds,
            steps: self.steps - self.inherited.0,
        };
        *self = Window::new(self.sums.device());
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(value: f64) -> Tensor {
        Tensor::full([NAMES.len() as i64], value, (Kind::Float, Device::Cpu))
    }

    fn losses(total: f64, sum: f64) -> Losses {
        Losses {
            total: Tensor::from(total as f32),
            sums: all(sum),
        }
    }

    #[test]
    fn averages_are_over_what_carried_the_target() {
        let alone = World::alone();
        let mut window = Window::new(Device::Cpu);
        window.add(&losses(1.0, 3.0), (&all(3.0), &all(6.0)), &2f32.into());
        window.count(8);
        window.add(&losses(5.0, 5.0), (&all(1.0), &all(2.0)), &4f32.into());
        window.count(8);
        let (sums, counts) = window.state(&alone).unwrap();
        for mut window in [window, Window::resume(&sums, counts, Device::Cpu)] {
            let measured = window.close(&alone).unwrap();
            assert_eq!(measured.averages, vec![Some(2.0); NAMES.len()]);
            assert_eq!(measured.carried, vec![8.0; NAMES.len()]);
            assert_eq!((measured.loss, measured.norm), (3.0, 3.0));
            let empty = window.close(&alone).unwrap();
            assert_eq!(empty.averages, vec![None; NAMES.len()]);
        }
    }
}
