//! Configuration of the optimizer.

use serde::{Deserialize, Serialize};

/// The optimizer's method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with Nesterov momentum (Dozat 2016), as PyTorch computes it and the paper uses.
    #[default]
    Nadam,
    /// Orthogonalised momentum (Jordan et al. 2024) for the matrices between hidden features,
    /// NAdam for the rest; matrix steps are scaled to Adam's size (Liu et al. 2025), so that one
    /// learning rate serves both.
    Muon,
    /// Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024) for the same
    /// matrices, NAdam for the rest. Its steps have Adam's size.
    Soap,
    /// Plain gradient descent, for comparisons.
    Sgd,
}

/// Weight decay of some parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecayRule {
    /// Pattern of the parameters' names, where `*` matches any text, as in `*.bias`.
    pub pattern: String,
    /// Share subtracted each step, times the learning rate.
    pub weight_decay: f64,
}

/// The learning rate of some parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateRule {
    /// Pattern of the parameters' names, as in a [`DecayRule`].
    pub pattern: String,
    /// The factor of the learning rate.
    pub factor: f64,
}

/// The optimizer's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// The method.
    pub kind: OptimizerKind,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the squared gradient's average.
    pub beta2: f64,
    /// Added to the root of the squared gradient's average.
    pub epsilon: f64,
    /// Decay of Muon's momentum.
    pub muon_momentum: f64,
    /// Steps between two updates of SOAP's eigenbases.
    pub soap_frequency: u64,
    /// Share of each matrix (not of biases, norms and position tables) subtracted
    /// each step, times the learning rate.
    pub weight_decay: f64,
    /// Other weight decays. The first rule that matches a parameter applies, otherwise
    /// `weight_decay`.
    pub decay: Vec<DecayRule>,
    /// Other learning rates. The first rule that matches a parameter applies, otherwise the
    /// schedule's rate.
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
