//! Replaces `client.rs` in a build without the feature `cloud`.

use super::protocol::{Job, Registration};
use super::{Lichess, LichessError};
use tokio::sync::mpsc;

/// Never created, because [`LichessClient::new`] fails. If this were an empty enum, the compiler
/// would warn about an unreachable provider.
#[derive(Clone)]
pub(in crate::serve) struct LichessClient(());

impl LichessClient {
    pub(in crate::serve) fn new(_: &Lichess) -> Result<LichessClient, LichessError> {
        Err(LichessError::NotBuiltIn)
    }

    pub(super) async fn register(&self, _: &Registration) -> Result<(), LichessError> {
        Err(LichessError::NotBuiltIn)
    }

    pub(super) async fn acquire(&self, _: &str) -> Result<Option<Job>, LichessError> {
        Err(LichessError::NotBuiltIn)
    }

    pub(super) async fn submit(
        &self,
        _: &str,
        _: mpsc::Receiver<String>,
    ) -> Result<(), LichessError> {
        Err(LichessError::NotBuiltIn)
    }
}
