//! Sums the losses and gradient norms since the last metrics line.

use super::distributed::{GroupError, World};
use super::losses::Losses;
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// The mean of each term, or `None` if no sample has its target.
pub(super) type Averages = Vec<Option<f64>>;

/// Sums of the losses and gradient norms, kept on the device so that steps need not wait for it.
#[derive(Debug)]
pub(super) struct Window {
    /// The sums of this process, f32 [3 · L + 2]: the weighted sums of all terms, their target
    /// weights, their target counts, and finally the total loss and the gradient norm.
    sums: Tensor,
    /// The number L of terms.
    terms: usize,
    steps: u64,
    pub samples: usize,
    started: Instant,
    paused: Duration,
    /// Numbers of steps and samples from the previous session, whose time is not included in
    /// `started`.
    inherited: (u64, usize),
}

/// The means over a window.
#[derive(Debug)]
pub(super) struct Measured {
    /// The mean of each term over the samples that have its target.
    pub averages: Averages,
    /// For each term, the number of samples that have its target.
    pub target_counts: Vec<f64>,
    /// The mean of the weighted sum of the losses.
    pub loss: f64,
    /// The mean norm of the gradient before clipping.
    pub norm: f64,
    /// The number of samples per second.
    pub speed: f64,
    /// The seconds for which the window was open, not counting pauses.
    pub seconds: f64,
    /// The number of steps taken in those seconds.
    pub steps: u64,
}

impl Window {
    /// Returns an empty window for this number of terms.
    pub fn new(terms: usize, device: Device) -> Window {
        let count = 3 * terms + 2;
        Window {
            sums: Tensor::zeros([count as i64], (Kind::Float, device)),
            terms,
            steps: 0,
            samples: 0,
            started: Instant::now(),
            paused: Duration::ZERO,
            inherited: (0, 0),
        }
    }

    /// Returns the window stored in a checkpoint if it has the same number of terms as this one,
    /// and otherwise an empty window.
    pub fn resume(&self, sums: &Tensor, (steps, samples): (u64, usize)) -> Window {
        let fresh = Window::new(self.terms, self.sums.device());
        if sums.size() != fresh.sums.size() {
            return fresh;
        }
        Window {
            // A copy, because the sums are updated in place.
            sums: sums.to_device(self.sums.device()).copy(),
            steps,
            samples,
            inherited: (steps, samples),
            ..fresh
        }
    }

    /// Returns the window's state for a checkpoint: the sums over all processes, and the numbers of
    /// steps and samples.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    pub fn state(&self, world: &World) -> Result<(Tensor, (u64, usize)), GroupError> {
        Ok((self.summed(world)?, (self.steps, self.samples)))
    }

    /// Returns the sums over all processes.
    fn summed(&self, world: &World) -> Result<Tensor, GroupError> {
        let sums = self.sums.copy();
        world.sum(&sums, "summing losses")?;
        Ok(sums)
    }

    /// Adds a part of a batch: its losses, the weights and counts of its targets, both f32 `[L]`,
    /// and its contribution to the gradient norm.
    pub fn add(&mut self, losses: &Losses, (weights, counts): (&Tensor, &Tensor), norm: &Tensor) {
        let _guard = tch::no_grad_guard();
        let scalars = Tensor::stack(&[&losses.total.detach(), norm], 0).to_kind(Kind::Float);
        self.sums += Tensor::cat(&[&losses.sums, weights, counts, &scalars], 0);
    }

    /// Counts a batch; `samples` is its total over all processes.
    pub fn count(&mut self, samples: usize) {
        self.steps += 1;
        self.samples += samples;
    }

    /// Excludes this time from the window, because it was not spent on training.
    pub fn pause(&mut self, time: Duration) {
        self.paused += time;
    }

    /// Returns the mean total loss and the mean gradient norm so far.
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
        let sums = self.summed(world)?.to_device(Device::Cpu);
        Ok(Vec::try_from(sums.to_kind(Kind::Double)).expect("a vector of floats"))
    }

    /// Returns the number of samples per second so far.
    pub fn speed(&self) -> f64 {
        (self.samples - self.inherited.1) as f64 / self.seconds()
    }

    /// Returns the seconds for which the window has been open, not counting pauses.
    fn seconds(&self) -> f64 {
        let seconds = self.started.elapsed().saturating_sub(self.paused);
        seconds.as_secs_f64().max(1e-9)
    }

    /// Returns the means and starts a new window.
    pub fn close(&mut self, world: &World) -> Result<Measured, GroupError> {
        let sums = self.fetch(world)?;
        let (loss, norm) = self.means(&sums);
        let mut parts = sums.chunks(self.terms);
        let mut part = || parts.next().expect("three parts and more");
        let (weighted, target_weights, target_counts) = (part(), part(), part());
        let averages = weighted.iter().zip(target_weights);
        let measured = Measured {
            averages: averages
                .map(|(&sum, &weight)| (weight > 0.0).then(|| sum / weight))
                .collect(),
            target_counts: target_counts.to_vec(),
            loss,
            norm,
            speed: self.speed(),
            seconds: self.seconds(),
            steps: self.steps - self.inherited.0,
        };
        *self = Window::new(self.terms, self.sums.device());
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: usize = 16;

    fn all(value: f64) -> Tensor {
        Tensor::full([TERMS as i64], value, (Kind::Float, Device::Cpu))
    }

    fn losses(total: f64, sum: f64) -> Losses {
        Losses {
            total: Tensor::from(total as f32),
            sums: all(sum),
        }
    }

    #[test]
    fn averages_are_over_the_samples_with_the_target() {
        let alone = World::alone();
        let mut window = Window::new(TERMS, Device::Cpu);
        window.add(&losses(1.0, 3.0), (&all(3.0), &all(6.0)), &2f32.into());
        window.count(8);
        window.add(&losses(5.0, 5.0), (&all(1.0), &all(2.0)), &4f32.into());
        window.count(8);
        let (sums, counts) = window.state(&alone).unwrap();
        let resumed = window.resume(&sums, counts);
        for mut window in [window, resumed] {
            let measured = window.close(&alone).unwrap();
            assert_eq!(measured.averages, vec![Some(2.0); TERMS]);
            assert_eq!(measured.target_counts, vec![8.0; TERMS]);
            assert_eq!((measured.loss, measured.norm), (3.0, 3.0));
            let empty = window.close(&alone).unwrap();
            assert_eq!(empty.averages, vec![None; TERMS]);
        }
    }
}
