//! Reading a loop's configuration, and what its values must be.

use super::{CycleConfig, Share};
use crate::cycle::CycleConfigError;
use crate::nn::Devices;
use std::path::Path;

/// Longest time between two looks at the store, in seconds: a day.
const LONGEST_POLL: f64 = 86400.0;

impl CycleConfig {
    /// Reads and checks a configuration. Relative paths are relative to the folder that
    /// the program runs in.
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

    /// Whether the network that is trained is of a family. One whose architecture is that
    /// of `init` may be.
    fn is_of_family(&self, family: &str) -> bool {
        let names = |key| self.training.contains_key(key);
        let own = self.training.get("network").and_then(|it| it.get("family"));
        match own.and_then(toml::Value::as_str) {
            Some(own) => own == family,
            None => !names("model") && !names("preset"),
        }
    }

    fn check(&self) -> Result<(), CycleConfigError> {
        const SHARE: &str = "at least 0 and at most 1";
        const POSITIVE: &str = "above 0";
        const AT_LEAST_0: &str = "at least 0";
        const ALONE: &str = "1: there is one of its kind";
        let is_share = |value: f64| (0.0..=1.0).contains(&value);
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        let is_at_least_0 = |value: f64| value.is_finite() && value >= 0.0;
        let is_part = |cores: Share| is_at_least_0(cores.share);
        let is_alone = |cores: Share| cores.processes == 1;
        let window = &self.learner.window;
        let is_named = |path: &Path| !path.as_os_str().is_empty();
        let mut rules = vec![
            ("store", is_named(&self.store), "a folder or an address"),
            ("folder", is_named(&self.folder), "a folder"),
            (
                "poll",
                is_positive(self.poll) && self.poll <= LONGEST_POLL,
                "above 0 and at most 86400",
            ),
            ("shard_rows", self.shard_rows > 0, POSITIVE),
            (
                "search.noise",
                self.search.noise.is_none_or(|it| is_share(it.into())),
                SHARE,
            ),
            (
                "learner.cores.share",
                is_part(self.learner.cores),
                AT_LEAST_0,
            ),
            (
                "learner.cores.processes",
                is_alone(self.learner.cores),
                ALONE,
            ),
            (
                "learner.samples_per_row",
                is_positive(self.learner.samples_per_row),
                POSITIVE,
            ),
            ("learner.window.start", is_positive(window.start), POSITIVE),
            ("learner.window.per_row", is_share(window.per_row), SHARE),
            (
                "learner.window.exponent",
                is_share(window.exponent) && window.exponent > 0.0,
                "above 0 and at most 1",
            ),
        ];
        if let Some(actors) = &self.actors {
            let two = "at least 2";
            let share = is_part(actors.cores);
            rules.push(("actors.cores.share", share, AT_LEAST_0));
            rules.push(("actors.visits", actors.visits >= 2, two));
            if let Some(cheap) = actors.cheap {
                rules.push(("actors.cheap.share", is_share(cheap.share), SHARE));
                rules.push(("actors.cheap.visits", cheap.visits >= 2, two));
            }
            if let Some(foresight) = actors.foresight {
                let share = is_share(foresight.share);
                rules.push(("actors.foresight.share", share, SHARE));
                let steps = foresight.steps > 0;
                rules.push(("actors.foresight.steps", steps, POSITIVE));
                rules.push((
                    "actors.foresight",
                    self.is_of_family("diffusion"),
                    "left out: `training.network` is not of the family diffusion, whose networks foresee",
                ));
            }
            let temperature = actors.temperature;
            let is_temperature = is_at_least_0(temperature.into());
            rules.push(("actors.temperature", is_temperature, AT_LEAST_0));
            let is_hopeless = |q: f32| (-1.0..0.0).contains(&q);
            let resigns = actors.resign.is_none_or(is_hopeless);
            rules.push(("actors.resign", resigns, "at least -1 and below 0"));
            rules.push(("actors.played_on", is_share(actors.played_on), SHARE));
        }
        if let Some(again) = &self.reanalysers {
            let share = is_part(again.cores);
            rules.push(("reanalysers.cores.share", share, AT_LEAST_0));
            let mut weights = again.games.iter().map(|games| games.weight);
            let are_weights = weights.all(is_positive);
            let own = is_at_least_0(again.own);
            rules.push(("reanalysers.own", own, AT_LEAST_0));
            rules.push(("reanalysers.visits", again.visits >= 2, "at least 2"));
            let positions = is_share(again.positions) && again.positions > 0.0;
            rules.push(("reanalysers.positions", positions, "above 0 and at most 1"));
            rules.push(("reanalysers.games.weight", are_weights, POSITIVE));
        }
        if let Some(gate) = &self.gate {
            rules.push(("gate.cores.share", is_part(gate.cores), AT_LEAST_0));
            rules.push(("gate.cores.processes", is_alone(gate.cores), ALONE));
            let is_rate = |rate: f64| rate > 0.0 && rate < 0.5;
            rules.push(("gate.games", gate.games >= 2, "at least 2"));
            rules.push(("gate.visits", gate.visits >= 2, "at least 2"));
            rules.push(("gate.elo1", gate.elo1 > gate.elo0, "above `elo0`"));
            let rates = is_rate(gate.alpha) && is_rate(gate.beta);
            rules.push(("gate.alpha", rates, "above 0 and below 0.5, as `gate.beta`"));
        }
        rules.push((
            "search.imagination",
            !self.search.imagination || self.is_of_family("world"),
            "false: `training.network` is not of the family world, whose networks imagine",
        ));
        let device: Result<Devices, _> = self.search.device.parse();
        rules.push(("search.device", device.is_ok(), "auto, cpu, cuda or cuda:1"));
        match rules.into_iter().find(|&(_, holds, _)| !holds) {
            Some((key, _, expected)) => Err(CycleConfigError::Range { key, expected }),
            None => self.search.parameters().map(|_| ()),
        }
    }
}
