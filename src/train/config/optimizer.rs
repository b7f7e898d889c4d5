//! Configuration of the optimizer.

use serde::{Deserialize, Serialize};

/// The optimization method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with Nesterov momentum (Dozat 2016) as implemented in PyTorch. The Chessformer paper
    /// uses this method.
    #[default]
    Nadam,
    /// Orthogonalised momentum (Jordan et al. 2024) for the hidden matrices, and NAdam for all
    /// other parameters. The steps of the matrices are scaled to the size of Adam's steps (Liu et
    /// al. 2025), so that one learning rate suits all parameters.
    Muon,
    /// Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024) for the hidden
    /// matrices, and NAdam for all other parameters. The steps of the matrices have the size of
    /// Adam's steps.
    Soap,
    /// Plain gradient descent, for comparisons.
    Sgd,
}

/// The weight decay of some parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecayRule {
    /// Pattern of the parameters' names, where `*` matches any text, as in `*.bias`.
    pub pattern: String,
    /// The weight decay: each step subtracts this share of a parameter, multiplied by the learning
    /// rate.
    pub weight_decay: f64,
}

/// The learning rate of some parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateRule {
    /// Pattern of the parameters' names, as in a [`DecayRule`].
    pub pattern: String,
    /// Factor by which the learning rate is multiplied.
    pub factor: f64,
}

/// Settings of the optimizer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// The method.
    pub kind: OptimizerKind,
    /// Decay of the running mean of the gradient.
    pub beta1: f64,
    /// Decay of the running mean of the squared gradient.
    pub beta2: f64,
    /// Added to the square root of the running mean of the squared gradient.
    pub epsilon: f64,
    /// Decay of Muon's momentum.
    pub muon_momentum: f64,
    /// Number of steps between two updates of SOAP's eigenbases.
    pub soap_frequency: u64,
    /// The weight decay of matrices: each step subtracts this share, multiplied by the learning
    /// rate. Biases, norms and position tables do not decay.
    pub weight_decay: f64,
    /// Weight decays that differ from `weight_decay`. For each parameter, the first matching rule
    /// applies; if none matches, `weight_decay` applies.
    pub decay: Vec<DecayRule>,
    /// Learning rates that differ from the schedule. For each parameter, the first matching rule
    /// applies; if none matches, the schedule applies unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateRule>,
    /// Norm to which longer gradients are clipped; 0 disables clipping.
    pub clip_norm: f64,
}

impl Default for OptimizerConfig {
    fn default() -> OptimizerConfig {
        OptimizerConfig {
            kind: OptimizerKind::Nadam,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-7,
            muon_momentum: 0.95,
            soap_frequency: 10,
            weight_decay: 0.0,
            decay: Vec::new(),
            rates: Vec::new(),
            clip_norm: 10.0,
        }
    }
}
