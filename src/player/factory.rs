//! The source of backends and agents.

use crate::agent::{self, AgentKind, ConfigurableAgent};
use crate::backend::{Backend, BackendOptions};
use crate::network::backends::{LoadError, Loader};
use std::sync::Arc;

/// Makes what a player needs.
pub trait Factory: Send + 'static {
    /// The backend that `options` ask for; slow where a network has to be read.
    ///
    /// # Errors
    /// [`LoadError`], whose message says what is wrong and how to mend it.
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError>;

    /// An agent of the kind, thinking with `backend`.
    fn build(
        &self,
        kind: AgentKind,
        backend: Arc<dyn Backend>,
        options: &agent::Options,
    ) -> Box<dyn ConfigurableAgent> {
        kind.build(backend, options)
    }
}

/// The engine's own: networks in this process, the last one kept in memory.
#[derive(Debug, Default)]
pub struct EngineFactory {
    loader: Loader,
}

impl Factory for EngineFactory {
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        self.loader.load(options)
    }
}
