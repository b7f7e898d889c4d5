//! The factory of backends and agents.

use crate::agent::{self, AgentKind, ConfigurableAgent};
use crate::backend::{Backend, BackendOptions};
use crate::inference::{LoadError, Loader};
use std::sync::Arc;

/// Creates a player's backends and agents.
pub trait Factory: Send + 'static {
    /// Returns the backend for `options`. The call is slow if a network has to be read.
    ///
    /// # Errors
    /// [`LoadError`], whose message states the cause and the remedy.
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError>;

    /// Creates an agent of this kind that evaluates positions with `backend`.
    fn build(
        &self,
        kind: AgentKind,
        backend: Arc<dyn Backend>,
        options: &agent::Options,
    ) -> Box<dyn ConfigurableAgent> {
        kind.build(backend, options)
    }
}

/// The engine's own factory, which loads networks in this process and keeps the last one in memory.
#[derive(Debug, Default)]
pub struct EngineFactory {
    loader: Loader,
}

impl Factory for EngineFactory {
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        self.loader.load(options)
    }
}
