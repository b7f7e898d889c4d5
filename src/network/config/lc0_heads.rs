//! The choice of heads to play with.

use super::lc0::{Lc0Config, Lc0ConfigError, PolicyHead, ValueHead};
use serde::{Deserialize, Serialize};

/// The heads to play with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadChoice {
    /// The head for the output `policy`.
    #[serde(rename = "policy_head")]
    pub policy: PolicyHead,
    /// The head for the output `wdl`.
    #[serde(rename = "value_head")]
    pub value: ValueHead,
}

impl HeadChoice {
    /// Returns whether a network has these heads.
    ///
    /// # Errors
    /// [`Lc0ConfigError::NoHead`], which names the available heads.
    pub fn check(&self, config: &Lc0Config) -> Result<(), Lc0ConfigError> {
        let missing = |kind, name: &str, known: Vec<&str>| Lc0ConfigError::NoHead {
            kind,
            name: name.to_owned(),
            known: known.join(", "),
        };
        if !config.policy.heads.contains_key(&self.policy) {
            let known = config.policy.heads.keys().map(|head| head.name());
            return Err(missing("policy", self.policy.name(), known.collect()));
        }
        if !config.value.contains_key(&self.value) {
            let known = config.value.keys().map(|head| head.name());
            return Err(missing("value", self.value.name(), known.collect()));
        }
        Ok(())
    }
}
