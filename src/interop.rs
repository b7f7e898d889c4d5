//! Foreign networks, in and out.

pub mod lc0;
pub mod onnx;
