//! Foreign networks, in and out.

pub mod onnx;
