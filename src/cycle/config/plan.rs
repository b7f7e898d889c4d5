//! Derives settings for training, search and play from a loop's configuration.

use super::{ActorConfig, CycleConfig, ForesightConfig, GateConfig, SearchConfig, Share};
use crate::backend::{Decoding, Devices};
use crate::chess::Ratings;
use crate::cycle::sprt::Sprt;
use crate::cycle::{CycleConfigError, CycleError};
use crate::data::label::TargetRules;
use crate::data::{Curve, shard};
use crate::openings::{BookOptions, Openings, OpeningsError};
use crate::player::PlayerSettings;
use crate::search::{Parameters, WorldOptions};
use crate::selfplay::{Foresight, HASH, NOISE, SelfPlay, set_search_options};
use crate::tablebase::Tablebase;
use crate::train::{ConfigError, TrainConfig};
use shakmaty::Color;
use std::path::PathBuf;

/// The key for the number of training steps per generation.
const STEPS: &str = "steps";

impl CycleConfig {
    /// Returns the folder of the learner's run.
    pub(in crate::cycle) fn run_folder(&self) -> PathBuf {
        self.folder.join("learner")
    }

    /// Returns the training configuration, whose `steps` are those of one generation.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub fn training(&self) -> Result<TrainConfig, ConfigError> {
        let mut table = self.training.clone();
        let name = || toml::Value::String("loop".to_owned());
        table.entry("name").or_insert_with(name);
        table.entry(STEPS).or_insert(toml::Value::Integer(1000));
        let empty = || toml::Value::Table(toml::Table::new());
        table.entry("data").or_insert_with(empty);
        TrainConfig::from_table(table, &[])
    }

    /// Returns a worker's number of threads, given its share of the processors.
    pub fn threads(&self, cores: Share, processors: usize) -> usize {
        let kinds = [
            self.actors.as_ref().map(|it| it.cores),
            self.reanalysers.as_ref().map(|it| it.cores),
            Some(self.learner.cores),
            self.gate.as_ref().map(|it| it.cores),
            self.strength.as_ref().map(|it| it.cores),
        ];
        let all: f64 = kinds
            .iter()
            .flatten()
            .map(|cores| cores.share.max(0.0))
            .sum();
        let own = cores.share.max(0.0) / all.max(f64::MIN_POSITIVE) * processors as f64;
        ((own / cores.processes.max(1) as f64).round() as usize).max(1)
    }
}

impl SearchConfig {
    /// Returns the player's settings with the options applied. By default, networks that predict
    /// futures evaluate positions in a single step, without a predicted future, because the search
    /// itself looks ahead.
    fn settings(&self) -> Result<PlayerSettings, CycleConfigError> {
        let mut settings = PlayerSettings::default();
        settings.options.search.hash = HASH;
        settings.backend.network.decoding.steps = 1;
        let options = self.options.iter().map(|(name, value)| {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (name.as_str(), value)
        });
        let options: Vec<(&str, String)> = options.collect();
        let options = options.iter().map(|(name, value)| (*name, value.as_str()));
        set_search_options(&mut settings, options)?;
        Ok(settings)
    }

    /// Returns the search parameters for games. The search itself does not sample moves, because
    /// self-play samples them at its own temperature.
    pub(in crate::cycle) fn parameters(&self) -> Result<Parameters, CycleConfigError> {
        let noise = match self.gumbel {
            0 => NOISE,
            _ => 0.0,
        };
        Ok(Parameters {
            gumbel_moves: self.gumbel,
            noise_epsilon: self.noise.unwrap_or(noise),
            temperature: 0.0,
            ..self.settings()?.options.search
        })
    }

    /// Returns the imagination settings, if searches run in imagination.
    pub(in crate::cycle) fn imagination(&self) -> Result<Option<WorldOptions>, CycleConfigError> {
        Ok(match self.imagination {
            true => Some(self.settings()?.options.world),
            false => None,
        })
    }

    /// Returns the decoding settings for networks that predict futures.
    pub(in crate::cycle) fn decoding(&self) -> Result<Decoding, CycleConfigError> {
        Ok(self.settings()?.backend.network.decoding)
    }

    /// Returns the ratings for networks that use them.
    fn ratings(&self) -> Result<Ratings, CycleConfigError> {
        Ok(self.settings()?.ratings(Color::White))
    }

    pub(in crate::cycle) fn devices(&self) -> Devices {
        self.device.parse().unwrap_or_default()
    }
}

impl ActorConfig {
    /// Returns the plan for playing many games concurrently.
    pub(in crate::cycle) fn plan(
        &self,
        search: &SearchConfig,
        seed: u64,
    ) -> Result<SelfPlay, CycleError> {
        let tablebase = Tablebase::new(&self.tablebase);
        if let Some(problem) = tablebase.problem() {
            return Err(CycleConfigError::Tablebase(problem.to_string()).into());
        }
        Ok(SelfPlay {
            concurrency: 1,
            parameters: search.parameters()?,
            imagination: search.imagination()?,
            visits: self.visits,
            cheap: self.cheap,
            temperature: self.temperature,
            temperature_plies: self.temperature_plies,
            resign: self.resign,
            played_on: self.played_on,
            ratings: search.ratings()?,
            openings: openings(&self.openings, self.random_plies, seed)?,
            max_plies: self.max_plies,
            tablebase,
            cache: 0,
            seed,
        })
    }
}

impl ForesightConfig {
    /// Returns the settings for choosing moves by predicted futures, for games that begin in this
    /// generation.
    pub(in crate::cycle) fn at(&self, generation: u64) -> Foresight {
        let grown = match self.grows {
            0 => 1.0,
            grows => (generation as f64 / grows as f64).min(1.0),
        };
        Foresight {
            share: self.share * grown,
            steps: self.steps,
        }
    }
}

/// Returns openings from the books, followed by random plies.
pub(in crate::cycle) fn openings(
    books: &[BookOptions],
    random_plies: Option<u32>,
    seed: u64,
) -> Result<Openings, OpeningsError> {
    /// Default number of random plies without a book, so that games differ.
    const BOOKLESS: u32 = 8;
    let plies = random_plies.unwrap_or(if books.is_empty() { BOOKLESS } else { 0 });
    Openings::open(books, plies, seed)
}

impl GateConfig {
    /// Returns the sequential test with these settings.
    pub fn sprt(&self) -> Sprt {
        Sprt {
            elo0: self.elo0,
            elo1: self.elo1,
            alpha: self.alpha,
            beta: self.beta,
        }
    }
}

/// Returns the header for the loop's shards, in which all targets come from searches.
pub(in crate::cycle) fn header(source: &str) -> shard::Header {
    shard::Header {
        sources: vec![source.to_owned()],
        rules: TargetRules {
            evals: None,
            played: false,
            noise: false,
            curve: Curve::Lc0,
            alternatives: None,
        },
    }
}
