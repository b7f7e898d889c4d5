//! Reads and writes the network file formats of other programs.
//!
//! Every reader returns a [`Network`](crate::network::Network), whose family is one of those in
//! [`crate::network`].

mod exchange;
pub mod lc0;
pub mod maia3;
pub mod onnx;
pub mod pytorch;

pub use exchange::{
    ExchangeError, FileKind, describe, open, open_foreign, to_lc0, to_onnx, to_onnx_in_lc0,
};
