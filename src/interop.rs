//! Foreign networks in and out.
//!
//! Every family is what [`crate::model`] is for our own: a configuration, the
//! parameters by name, and a forward pass in tch over rows of words, which
//! [`crate::nn::torch::Script`] writes as a network of the engine's.

mod exchange;
pub mod lc0;
pub mod maia3;
pub mod onnx;
pub mod pytorch;

pub use exchange::{
    ExchangeError, FileKind, ForeignNetwork, describe, save, to_lc0, to_onnx, to_onnx_in_lc0,
};
