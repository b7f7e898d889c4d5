//! Replaces `client.rs` in a build without the feature `cloud`.

use super::protocol::{Job, Registration};
use super::{Lichess, LichessError};
use tokio::sync::mpsc;

/// Has no values: no client can be made.
#[derive(Clone)]
pub(in crate::serve) enum LichessClient {}

impl LichessClient {
    pub(in crate::serve) fn new(_: &Lichess) -> Result<LichessClient, LichessError> {
        Err(LichessError::NotBuiltIn)
    }

    pub(super) async fn register(&self, _: &Registration) -> Result<(), LichessError> {
        match *self {}
    }

    pub(super) async fn acquire(&self, _: &str) -> Result<Option<Job>, LichessError> {
        match *self {}
    }

    pub(super) async fn submit(
        &self,
        _: &str,
        _: mpsc::Receiver<String>,
    ) -> Result<(), LichessError> {
        match *self {}
    }
}
