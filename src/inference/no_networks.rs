//! Replaces `networks.rs` in programs that are built without libtorch.

use super::error::{LoadError, NetworkError};
use crate::backend::{Backend, BackendOptions, DeviceChoice, NetworkOptions, Precision};
use std::sync::Arc;

/// Returns an empty list, because no network can run.
pub fn formats(_: DeviceChoice) -> Vec<Precision> {
    Vec::new()
}

/// A type without values, because no network can be loaded.
#[derive(Debug)]
pub(super) enum Networks {}

impl Networks {
    pub(super) fn load(options: &NetworkOptions) -> Result<Networks, LoadError> {
        let file = options.net.as_ref().map(|path| path.display().to_string());
        Err(LoadError::Network {
            network: file.unwrap_or_else(|| "<built-in>".to_owned()),
            source: NetworkError::NoTorch,
        })
    }

    pub(super) fn backend(&self, _: &BackendOptions) -> Arc<dyn Backend> {
        match *self {}
    }

    pub(super) fn backend_for_many(&self, _: &BackendOptions) -> Arc<dyn Backend> {
        match *self {}
    }
}
