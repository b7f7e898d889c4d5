//! Configuration of distillation.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A teacher network whose outputs are used as targets in addition to those in the data (Hinton et
/// al. 2015, "Distilling the knowledge in a neural network").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillationConfig {
    /// The teacher: a network file written by `tessera-train export`.
    pub net: PathBuf,
    /// Temperature at which the teacher's policy and the network's policy are compared. The loss is
    /// multiplied by the square of the temperature, which preserves the scale of the gradient.
    #[serde(default = "one")]
    pub temperature: f64,
    /// Weight of the cross-entropy with the teacher's policy.
    #[serde(default = "one")]
    pub policy: f64,
    /// Weight of the cross-entropy with the teacher's win, draw and loss probabilities.
    #[serde(default = "one")]
    pub result: f64,
    /// Weight of the squared error from the teacher's q, if the teacher predicts it.
    #[serde(default = "one")]
    pub q: f64,
}

fn one() -> f64 {
    1.0
}
