//! Detects unstable training by the criteria in [`GuardConfig`].

use super::config::GuardConfig;
use serde::{Deserialize, Serialize};

/// Minimum standard deviation, as a share of the mean loss, so that a small rise after a stretch of
/// constant loss does not count as a spike.
const LEAST_DEVIATION: f64 = 0.01;

/// Running statistics of the loss, which checkpoints include.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Guard {
    mean: f64,
    variance: f64,
    /// Number of metrics lines in the mean and the variance.
    seen: u32,
    /// Number of consecutive metrics lines with a high loss, up to the last line.
    high: u32,
}

/// A kind of instability.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Instability {
    /// The loss or the gradient is NaN or infinite.
    #[error("the loss is no longer finite")]
    NotFinite,
    /// The loss rose far above its running average.
    #[error("the loss has risen to {loss:.4}, from {usual:.4}")]
    Spike {
        /// The mean loss of the last line.
        loss: f64,
        /// The running average before that line.
        usual: f64,
    },
}

impl Guard {
    /// Checks the mean loss and mean gradient norm of a metrics line.
    ///
    /// # Errors
    /// [`Instability`] if the run should roll back.
    pub fn judge(&mut self, loss: f64, norm: f64, config: &GuardConfig) -> Result<(), Instability> {
        if !loss.is_finite() || !norm.is_finite() {
            return Err(Instability::NotFinite);
        }
        if self.is_high(loss, config) {
            self.high += 1;
            let usual = self.mean;
            return if self.high >= config.lines {
                Err(Instability::Spike { loss, usual })
            } else {
                Ok(())
            };
        }
        self.high = 0;
        self.seen = self.seen.saturating_add(1);
        // A plain mean of the first `memory` lines, and an exponential mean afterwards.
        let share = 1.0 / f64::from(self.seen.min(config.memory.max(1)));
        let difference = loss - self.mean;
        self.mean += share * difference;
        self.variance = (1.0 - share) * (self.variance + share * difference * difference);
        Ok(())
    }

    /// Returns whether a loss is far above the running average.
    pub fn is_high(&self, loss: f64, config: &GuardConfig) -> bool {
        let deviation = self.variance.sqrt().max(LEAST_DEVIATION * self.mean.abs());
        let is_settled = config.deviations > 0.0 && self.seen >= config.memory.max(1);
        is_settled && loss > self.mean + config.deviations * deviation
    }

    /// Returns whether the last line's loss was high, in which case the weights may be bad.
    pub fn is_alarmed(&self) -> bool {
        self.high > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a line's loss on a noisy falling curve.
    fn usual(line: u32) -> f64 {
        3.0 + 2.0 / f64::from(line + 1) + 0.05 * (f64::from(line) * 2.4).sin()
    }

    fn settled(config: &GuardConfig) -> Guard {
        let mut guard = Guard::default();
        for line in 0..200 {
            guard.judge(usual(line), 1.0, config).unwrap();
            assert!(!guard.is_alarmed(), "line {line}");
        }
        guard
    }

    #[test]
    fn non_finite_losses_roll_back_at_once() {
        let config = GuardConfig::default();
        for (loss, norm) in [(f64::NAN, 1.0), (2.0, f64::INFINITY)] {
            let verdict = Guard::default().judge(loss, norm, &config);
            assert_eq!(verdict, Err(Instability::NotFinite));
        }
    }

    #[test]
    fn a_spike_must_last() {
        let config = GuardConfig::default();
        let mut guard = settled(&config);
        for _ in 1..config.lines {
            guard.judge(6.0, 1.0, &config).unwrap();
            assert!(guard.is_alarmed());
        }
        let mut recovered = guard.clone();
        recovered.judge(3.0, 1.0, &config).unwrap();
        assert!(!recovered.is_alarmed());
        let verdict = guard.judge(6.0, 1.0, &config);
        let Err(Instability::Spike { loss, usual }) = verdict else {
            panic!("{verdict:?}");
        };
        assert!(loss == 6.0 && (2.9..3.1).contains(&usual));
    }

    #[test]
    fn the_watch_over_spikes_can_be_switched_off() {
        let config = GuardConfig {
            deviations: 0.0,
            ..GuardConfig::default()
        };
        let mut guard = settled(&config);
        for _ in 0..10 {
            guard.judge(1e9, 1.0, &config).unwrap();
        }
    }
}
