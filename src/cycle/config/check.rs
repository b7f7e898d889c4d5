//! Reads and checks a loop's configuration.

use super::{ActorConfig, CycleConfig, GateConfig, ReanalyserConfig, Share, StrengthConfig};
use crate::backend::Devices;
use crate::cycle::CycleConfigError;
use std::path::Path;

/// Longest interval between polls of the store, in seconds: a day.
const LONGEST_POLL: f64 = 86400.0;

/// A key, whether its value is valid, and its constraint.
type Rule = (&'static str, bool, &'static str);

fn share(key: &'static str, value: f64) -> Rule {
    let holds = (0.0..=1.0).contains(&value);
    (key, holds, "at least 0 and at most 1")
}

fn share_above_0(key: &'static str, value: f64) -> Rule {
    (key, value > 0.0 && value <= 1.0, "above 0 and at most 1")
}

fn positive(key: &'static str, value: f64) -> Rule {
    (key, value.is_finite() && value > 0.0, "above 0")
}

fn at_least_0(key: &'static str, value: f64) -> Rule {
    (key, value.is_finite() && value >= 0.0, "at least 0")
}

fn at_least_2(key: &'static str, value: u64) -> Rule {
    (key, value >= 2, "at least 2")
}

fn alone(key: &'static str, cores: Share) -> Rule {
    (key, cores.processes == 1, "1: there is one of its kind")
}

impl CycleConfig {
    /// Reads and checks a configuration. Relative paths are resolved from the working directory.
    ///
    /// # Errors
    /// [`CycleConfigError`], naming the file, the line or the key.
    pub fn read(path: &Path) -> Result<CycleConfig, CycleConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| CycleConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let config: CycleConfig =
            toml::from_str(&text).map_err(|source| CycleConfigError::Syntax {
                path: path.to_owned(),
                source: Box::new(source),
            })?;
        config.check()?;
        Ok(config)
    }

    /// Returns whether the trained network may belong to a family. If the architecture comes from
    /// `init`, the family is unknown, and the method returns true.
    fn is_of_family(&self, family: &str) -> bool {
        let names = |key| self.training.contains_key(key);
        let own = self.training.get("network").and_then(|it| it.get("family"));
        match own.and_then(toml::Value::as_str) {
            Some(own) => own == family,
            None => !names("model") && !names("preset"),
        }
    }

    fn check(&self) -> Result<(), CycleConfigError> {
        let mut rules = self.rules();
        if let Some(actors) = &self.actors {
            rules.extend(self.rules_of_actors(actors));
        }
        if let Some(again) = &self.reanalysers {
            rules.extend(rules_of_reanalysers(again));
        }
        if let Some(gate) = &self.gate {
            rules.extend(rules_of_gate(gate));
        }
        if let Some(strength) = &self.strength {
            rules.extend(rules_of_strength(strength));
        }
        let imagines = !self.search.imagination || self.is_of_family("world");
        let network =
            "false: `training.network` is not of the family world, whose networks imagine";
        rules.push(("search.imagination", imagines, network));
        let device: Result<Devices, _> = self.search.device.parse();
        rules.push(("search.device", device.is_ok(), "auto, cpu, cuda or cuda:1"));
        match rules.into_iter().find(|&(_, holds, _)| !holds) {
            Some((key, _, expected)) => Err(CycleConfigError::Range { key, expected }),
            None => self.search.parameters().map(|_| ()),
        }
    }

    fn rules(&self) -> Vec<Rule> {
        let is_named = |path: &Path| !path.as_os_str().is_empty();
        let polls = self.poll > 0.0 && self.poll <= LONGEST_POLL;
        let noise = self.search.noise.unwrap_or_default();
        let (learner, window) = (&self.learner, &self.learner.window);
        vec![
            ("store", is_named(&self.store), "a folder or an address"),
            ("folder", is_named(&self.folder), "a folder"),
            ("poll", polls, "above 0 and at most 86400"),
            positive("shard_rows", self.shard_rows as f64),
            share("search.noise", noise.into()),
            at_least_0("learner.cores.share", learner.cores.share),
            alone("learner.cores.processes", learner.cores),
            positive("learner.samples_per_row", learner.samples_per_row),
            positive("learner.window.start", window.start),
            share("learner.window.per_row", window.per_row),
            share_above_0("learner.window.exponent", window.exponent),
        ]
    }

    fn rules_of_actors(&self, actors: &ActorConfig) -> Vec<Rule> {
        let mut rules = vec![
            at_least_0("actors.cores.share", actors.cores.share),
            at_least_2("actors.visits", actors.visits),
        ];
        if let Some(cheap) = actors.cheap {
            rules.push(share("actors.cheap.share", cheap.share));
            rules.push(at_least_2("actors.cheap.visits", cheap.visits));
        }
        if let Some(foresight) = actors.foresight {
            rules.push(share("actors.foresight.share", foresight.share));
            let steps = foresight.steps as f64;
            rules.push(positive("actors.foresight.steps", steps));
            rules.push((
                "actors.foresight",
                self.is_of_family("diffusion"),
                "left out: `training.network` is not of the family diffusion, whose networks predict",
            ));
        }
        let is_hopeless = |q: f32| (-1.0..0.0).contains(&q);
        let resigns = actors.resign.is_none_or(is_hopeless);
        rules.extend([
            at_least_0("actors.temperature", actors.temperature.into()),
            ("actors.resign", resigns, "at least -1 and below 0"),
            share("actors.played_on", actors.played_on),
        ]);
        rules
    }
}

fn rules_of_reanalysers(again: &ReanalyserConfig) -> Vec<Rule> {
    let weights = again.games.iter().map(|games| games.weight);
    let mut rules = vec![
        at_least_0("reanalysers.cores.share", again.cores.share),
        at_least_0("reanalysers.own", again.own),
        at_least_2("reanalysers.visits", again.visits),
        share_above_0("reanalysers.positions", again.positions),
    ];
    rules.extend(weights.map(|weight| positive("reanalysers.games.weight", weight)));
    rules
}

fn rules_of_gate(gate: &GateConfig) -> Vec<Rule> {
    let is_rate = |rate: f64| rate > 0.0 && rate < 0.5;
    let rates = is_rate(gate.alpha) && is_rate(gate.beta);
    vec![
        at_least_0("gate.cores.share", gate.cores.share),
        alone("gate.cores.processes", gate.cores),
        at_least_2("gate.games", gate.games),
        at_least_2("gate.visits", gate.visits),
        ("gate.elo1", gate.elo1 > gate.elo0, "above `elo0`"),
        ("gate.alpha", rates, "above 0 and below 0.5, as `gate.beta`"),
    ]
}

fn rules_of_strength(strength: &StrengthConfig) -> Vec<Rule> {
    vec![
        at_least_0("strength.cores.share", strength.cores.share),
        alone("strength.cores.processes", strength.cores),
        positive("strength.every", strength.every as f64),
        at_least_2("strength.games", strength.games),
        at_least_2("strength.visits", strength.visits),
    ]
}
