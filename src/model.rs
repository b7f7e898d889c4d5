//! The Chessformer family: transformers that read the board as 64 tokens.
//!
//! Architecture and heads follow the appendix of "Mastering Chess with a
//! Transformer Model" (Monroe and Chalmers, 2024); the geometric attention bias
//! (GAB, Lc0's smolgen) follows "Chessformer: A Unified Architecture for Chess
//! Modeling" (2026); the global board embedding follows the first paper's
//! published training code.
//!
//! A network is a [`Chessformer`] (its structure) and [`Weights`] (its tensors).
//! The structure owns no tensor, so that training can keep all parameters in
//! one flat vector, and export can run the same forward pass over the
//! parameters of a TorchScript module.

mod attacks;
mod attention;
pub(crate) mod bitboards;
mod chessformer;
mod config;
mod embedding;
mod export;
#[cfg(test)]
mod fused_tests;
mod grow;
mod heads;
mod layers;
mod parameters;
mod position;
mod ratings;
mod size;

pub use chessformer::{Chessformer, Heads, Outputs};
pub use config::{ConfigError, EmbeddingConfig, ModelConfig, NormKind, PRESETS, PositionConfig};
pub use export::{Export, RestoreError, export, restore};
pub use grow::{GrowError, grow};
pub(crate) use heads::{MOVES_LEFT_FEATURES, MOVES_LEFT_SCALE, policy_gather};
pub use heads::{RewardOutputs, bucket_of};
pub use parameters::{Initial, Parameter, Weights};
pub use size::Size;
