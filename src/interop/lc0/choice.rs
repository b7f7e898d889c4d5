//! Which heads of a network are played, and what it then says.

use super::Lc0Error;
use super::config::{Lc0Config, PolicyHead, ValueHead};

/// Which heads of a network are played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadChoice {
    /// The output `policy`.
    pub policy: PolicyHead,
    /// The output `wdl`.
    pub value: ValueHead,
}

impl HeadChoice {
    /// Whether a network has these heads.
    ///
    /// # Errors
    /// [`Lc0Error::NoHead`], naming those that it has.
    pub fn check(&self, config: &Lc0Config) -> Result<(), Lc0Error> {
        let missing = |kind, name: &str, known: Vec<&str>| Lc0Error::NoHead {
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

    /// What a network says when it is played with these heads, in order, by the
    /// names of [`Metadata::outputs`](crate::nn::Metadata::outputs).
    #[must_use]
    pub fn outputs(&self, config: &Lc0Config) -> Vec<&'static str> {
        let heads = &config.value;
        let has_error = |head| heads.get(&head).is_some_and(|head| head.error);
        let has_q = heads.contains_key(&ValueHead::Q)
            || heads.get(&ValueHead::Winner).is_some_and(|head| !head.wdl);
        let all = [
            ("policy", true),
            ("wdl", true),
            ("moves_left", config.moves_left.is_some()),
            ("q", has_q),
            ("q_error", has_error(ValueHead::Q)),
            ("st", heads.contains_key(&ValueHead::St)),
            ("st_error", has_error(ValueHead::St)),
            (
                "policy_optimistic",
                config.policy.heads.contains_key(&PolicyHead::Optimistic)
                    && self.policy != PolicyHead::Optimistic,
            ),
        ];
        let present = all.into_iter().filter(|(_, is_there)| *is_there);
        present.map(|(name, _)| name).collect()
    }
}
