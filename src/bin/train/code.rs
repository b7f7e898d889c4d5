//! Which code network files may bring.

use clap::Args;
use tessera::nn::CodePolicy;

/// Which code network files may bring.
#[derive(Args, Clone, Copy, Debug)]
pub struct CodeArguments {
    /// Run code of a network file that no network of the engine's has: it may do
    /// anything.
    #[arg(long)]
    allow_code: bool,
}

impl CodeArguments {
    /// The policy to open files by.
    pub fn policy(self) -> CodePolicy {
        CodePolicy::allowed_if(self.allow_code)
    }
}
