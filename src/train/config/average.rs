//! Which average of the weights is validated and exported.

use serde::{Deserialize, Serialize};

/// How the weights of many steps are averaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum AverageConfig {
    /// A moving average that takes in every step.
    Exponential {
        /// What is left of it after a step, in 0…1; in the first steps less, so
        /// that the random start is soon forgotten.
        #[serde(default = "default_decay")]
        decay: f64,
    },
    /// Stochastic weight averaging as Lc0 does it: the mean of the weights at
    /// every so many steps, where at most so many count and older ones fade.
    Stochastic {
        /// Steps between two that are taken in.
        #[serde(default = "default_every")]
        every: u64,
        /// The newest weighs at least one part in so many.
        #[serde(default = "default_most")]
        most: u64,
    },
}

fn default_decay() -> f64 {
    0.999
}

fn default_every() -> u64 {
    100
}

fn default_most() -> u64 {
    10
}

impl Default for AverageConfig {
    fn default() -> AverageConfig {
        AverageConfig::Exponential {
            decay: default_decay(),
        }
    }
}

impl AverageConfig {
    /// The newest weights' share in the average after `step` steps (from 1); 0
    /// leaves the average alone.
    #[must_use]
    pub fn share(&self, step: u64) -> f64 {
        match *self {
            AverageConfig::Exponential { decay } => {
                // A young average would remember the random start for
                // 1/(1 − decay) steps.
                let young = step as f64 / (step as f64 + 9.0);
                1.0 - decay.min(young)
            }
            // Until the first is taken in, the average goes along.
            AverageConfig::Stochastic { every, .. } if step <= every => 1.0,
            AverageConfig::Stochastic { every, .. } if !step.is_multiple_of(every) => 0.0,
            AverageConfig::Stochastic { every, most } => 1.0 / (step / every).min(most) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The average of weights that are the step's number.
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
        // From the fourth on the newest counts a third.
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
