//! Foreign networks in and out.
//!
//! Every family is what [`crate::model`] is for our own: a configuration, the
//! parameters by name, and a forward pass in tch over rows of words, which
//! [`crate::nn::torch::Script`] writes as a network of the engine's.

pub mod lc0;
pub mod maia3;
pub mod onnx;
pub mod pytorch;
