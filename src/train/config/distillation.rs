//! Configuration of distillation.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A teacher network, whose outputs are targets in addition to the data's (Hinton et al. 2015,
/// "Distilling the knowledge in a neural network").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillationConfig {
    /// The teacher: a network file as `train export` writes it.
    pub net: PathBuf,
    /// Temperature at which both policies are compared; the loss is multiplied by its square,
    /// which keeps the gradient's scale.
    #[serde(default = "one")]
    pub temperature: f64,
    /// Weight of the cross-entropy with the teacher's policy.
    #[serde(default = "one")]
    pub policy: f64,
    /// Weight of the cross-entropy with the teacher's win, draw and loss.
    #[serde(default = "one")]
    pub result: f64,
    /// Weight of the squared error to the teacher's q, if it has one.
    #[serde(default = "one")]
    pub q: f64,
}

fn one() -> f64 {
    1.0
}
