//! Configuration of weight averaging.

use crate::serde_default::number;
use serde::{Deserialize, Serialize};

/// How the weights of several steps are averaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum AverageConfig {
    /// An exponential moving average over all steps.
    Exponential {
        /// Share of the average that is kept at each step, in 0…1. The share is smaller in the
        /// first steps, so that the random initialization fades quickly.
        #[serde(default = "default_decay")]
        decay: f64,
    },
    /// Stochastic weight averaging as in Lc0: the mean of the weights sampled every `every` steps,
    /// in which older samples fade after `most` samples.
    Stochastic {
        /// Number of steps between two samples of the weights.
        #[serde(default = "number::<100, _>")]
        every: u64,
        /// Number of samples up to which the mean is a plain mean. Each later sample gets a share
        /// of 1 / `most`, so that older samples fade.
        #[serde(default = "number::<10, _>")]
        most: u64,
    },
}

fn default_decay() -> f64 {
    0.999
}

impl Default for AverageConfig {
    fn default() -> AverageConfig {
        AverageConfig::Exponential {
            decay: default_decay(),
        }
    }
}

impl AverageConfig {
    /// Returns the share of the newest weights in the average after `step` steps, counting from 1.
    /// A share of 0 leaves the average unchanged.
    pub fn share(&self, step: u64) -> f64 {
        match *self {
            AverageConfig::Exponential { decay } => {
                // Without this limit, the random initialization would affect the average for about
                // 1/(1 − decay) steps.
                let young = step as f64 / (step as f64 + 9.0);
                1.0 - decay.min(young)
            }
            // Until the first sample, the average equals the weights.
            AverageConfig::Stochastic { every, .. } if step <= every => 1.0,
            AverageConfig::Stochastic { every, .. } if !step.is_multiple_of(every) => 0.0,
            AverageConfig::Stochastic { every, most } => 1.0 / (step / every).min(most) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the average after each step for weights that equal the step number.
    fn averages(config: &AverageConfig, steps: u64) -> Vec<f64> {
        let mut average = 0.0;
        (1..=steps)
            .map(|step| {
                average += config.share(step) * (step as f64 - average);
                average
            })
            .collect()
    }

    #[test]
    fn stochastic_averages_are_means_of_every_nth() {
        let config = AverageConfig::Stochastic { every: 10, most: 3 };
        let averages = averages(&config, 45);
        assert_eq!(averages[..10], (1..=10).map(f64::from).collect::<Vec<_>>());
        assert_eq!(averages[15], 10.0);
        assert_eq!(averages[19], 15.0);
        assert_eq!(averages[29], 20.0);
        // From the fourth sample on, the newest weights have a share of a third.
        assert!((averages[44] - (20.0 * 2.0 + 40.0) / 3.0).abs() < 1e-9);
    }

    #[test]
    fn exponential_averages_forget_the_start() {
        let config = AverageConfig::Exponential { decay: 0.999 };
        assert!((config.share(1) - 0.9).abs() < 1e-9);
        assert!((config.share(100_000) - 0.001).abs() < 1e-9);
        let last = *averages(&config, 1000).last().unwrap();
        assert!(last > 850.0, "{last}");
    }
}
