//! The loop's configuration, a TOML file.

mod check;
mod plan;

pub(super) use plan::{header, openings};

use super::window::WindowConfig;
use crate::backend::Precision;
use crate::openings::BookOptions;
use crate::selfplay::CheapSearches;
use crate::serde_default::number;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The configuration of a loop.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleConfig {
    /// The store: a folder, or an address such as `s3://bucket/loop`.
    pub store: PathBuf,
    /// The folder on the learner's machine for the learner's run, the logs and the report.
    pub folder: PathBuf,
    /// The last generation; if unset, the loop never ends.
    pub generations: Option<u64>,
    /// Seconds between polls of the store, at most a day.
    #[serde(default = "number::<2, _>")]
    pub poll: f64,
    /// Minimum number of rows per shard; the last game may add more.
    #[serde(default = "number::<4096, _>")]
    pub shard_rows: u64,
    /// Search settings.
    #[serde(default)]
    pub search: SearchConfig,
    /// The actors, if any.
    pub actors: Option<ActorConfig>,
    /// The reanalysers, if any.
    pub reanalysers: Option<ReanalyserConfig>,
    /// The trainer.
    pub learner: LearnerConfig,
    /// The gating match; if unset, every network passes.
    pub gate: Option<GateConfig>,
    /// Games that measure the strength of new networks, if any.
    pub strength: Option<StrengthConfig>,
    /// The learner's training configuration, in the format of `tessera-train run`. `steps` is the number of
    /// steps per generation, and the loop's shards are added to the configured ones.
    pub training: toml::Table,
}

/// Search settings of actors and reanalysers.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// Number of root moves among which Gumbel selection distributes the visits; 0 uses PUCT with
    /// noise instead.
    pub gumbel: u32,
    /// Share of Dirichlet noise in the root's policy; by default 0.25 with PUCT, and 0 with Gumbel
    /// selection.
    pub noise: Option<f32>,
    /// The network's device: auto, cpu, cuda, cuda:1 or several.
    pub device: String,
    /// The network's dtype.
    pub precision: Precision,
    /// Whether to search in the network's imagination, like the agent `world`, instead of with the
    /// rules of chess. Requires a network of the family world.
    pub imagination: bool,
    /// Memory of the evaluation cache, in MiB.
    pub cache: usize,
    /// Number of concurrent games or positions; by default, enough to fill the network's batches.
    pub concurrency: Option<usize>,
    /// UCI options for the search, such as CPuct, for ratings, and for networks that predict
    /// futures. Here, `DiffusionSteps` defaults to 1.
    pub options: BTreeMap<String, toml::Value>,
}

impl Default for SearchConfig {
    fn default() -> SearchConfig {
        SearchConfig {
            gumbel: 16,
            noise: None,
            device: "auto".to_owned(),
            precision: Precision::Auto,
            imagination: false,
            cache: 64,
            concurrency: None,
            options: BTreeMap::new(),
        }
    }
}

/// A worker's share of the machine's processors.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Share {
    /// Share of the processors relative to the shares of the other workers.
    pub share: f64,
    /// Number of worker processes of this kind per machine; 1 for the learner and the gate.
    pub processes: usize,
}

impl Default for Share {
    fn default() -> Share {
        Share {
            share: 1.0,
            processes: 1,
        }
    }
}

/// Settings for choosing some moves by the network's predicted futures, like the agent `diffusion`,
/// instead of by the search. Requires a network of the family diffusion. The training targets are
/// still the results of searches.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForesightConfig {
    /// Final share of the moves, in 0…1.
    pub share: f64,
    /// Number of generations over which the share grows from 0 to its final value; with 0, the
    /// final value applies from the start.
    #[serde(default)]
    pub grows: u64,
    /// Number of denoising steps per move.
    #[serde(default = "number::<4, _>")]
    pub steps: usize,
}

fn one() -> f64 {
    1.0
}

/// Settings of actors.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActorConfig {
    /// The actors' share of the processors.
    pub cores: Share,
    /// Number of root visits per move.
    pub visits: u64,
    /// Settings for choosing some moves with fewer visits.
    pub cheap: Option<CheapSearches>,
    /// Settings for choosing some moves by predicted futures.
    pub foresight: Option<ForesightConfig>,
    /// Temperature at which the first moves are sampled; unused with Gumbel selection.
    pub temperature: f32,
    /// Number of plies after the opening in which moves are sampled.
    pub temperature_plies: usize,
    /// A side resigns if the value of its best move is at most this, in −1…0.
    pub resign: Option<f32>,
    /// Share of games played without resignation.
    pub played_on: f64,
    /// The opening books.
    pub openings: Vec<BookOptions>,
    /// Number of random plies after the opening; by default 8 without a book, and 0 with one.
    pub random_plies: Option<u32>,
    /// Number of plies after which a game counts as drawn.
    pub max_plies: usize,
    /// Folders with the Syzygy tablebases that end games.
    pub tablebase: String,
}

impl Default for ActorConfig {
    fn default() -> ActorConfig {
        ActorConfig {
            cores: Share::default(),
            visits: 64,
            cheap: None,
            foresight: None,
            temperature: 1.0,
            temperature_plies: 30,
            resign: None,
            played_on: 0.1,
            openings: Vec::new(),
            random_plies: None,
            max_plies: 450,
            tablebase: String::new(),
        }
    }
}

/// A shard of games to reanalyse.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GamesConfig {
    /// The shard: a path or an address.
    pub path: PathBuf,
    /// The shard's sampling weight relative to the weights of the other shards.
    #[serde(default = "one")]
    pub weight: f64,
    /// Whether the games' results are used as targets.
    #[serde(default)]
    pub results: bool,
}

/// Settings that determine which positions reanalysers search.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReanalyserConfig {
    /// The reanalysers' share of the processors.
    pub cores: Share,
    /// Number of root visits per position.
    pub visits: u64,
    /// Share of each game's positions that reanalysers search, in 0…1.
    pub positions: f64,
    /// Shards of games, including human ones.
    pub games: Vec<GamesConfig>,
    /// The sampling weight of the shards written by the loop, relative to the weights of `games`.
    pub own: f64,
    /// The generation at which reanalysis ends; if unset, it never ends.
    pub until: Option<u64>,
}

impl Default for ReanalyserConfig {
    fn default() -> ReanalyserConfig {
        ReanalyserConfig {
            cores: Share::default(),
            visits: 64,
            positions: 0.25,
            games: Vec::new(),
            own: 0.0,
            until: None,
        }
    }
}

/// Settings for the learner's sampling from the window.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    /// The learner's share of the processors.
    pub cores: Share,
    /// Maximum average number of times that a row is used (KataGo: 4 to 8).
    pub samples_per_row: f64,
    /// Number of rows required before the first generation is trained.
    pub least_rows: u64,
    /// The window of the newest rows.
    pub window: WindowConfig,
    /// Whether to store checkpoints, so that a learner on another machine can resume.
    pub checkpoints: bool,
}

impl Default for LearnerConfig {
    fn default() -> LearnerConfig {
        LearnerConfig {
            cores: Share::default(),
            samples_per_row: 4.0,
            least_rows: 0,
            window: WindowConfig::default(),
            checkpoints: true,
        }
    }
}

/// The gating match.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateConfig {
    /// The gate's share of the processors.
    pub cores: Share,
    /// Maximum number of games. If the test is then still undecided, the likelier hypothesis wins.
    pub games: u64,
    /// Number of root visits per move.
    pub visits: u64,
    /// The null hypothesis's Elo difference.
    pub elo0: f64,
    /// The alternative hypothesis's Elo difference.
    pub elo1: f64,
    /// Probability of a type I error: rejecting the null hypothesis although it is true.
    pub alpha: f64,
    /// Probability of a type II error: accepting the null hypothesis although the alternative is
    /// true.
    pub beta: f64,
    /// Opening books. Each opening is played twice, the second time with colours reversed.
    pub openings: Vec<BookOptions>,
    /// Number of random plies after the opening; by default 8 without a book, and 0 with one.
    pub random_plies: Option<u32>,
    /// Number of plies after which a game counts as drawn.
    pub max_plies: usize,
}

impl Default for GateConfig {
    fn default() -> GateConfig {
        GateConfig {
            cores: Share::default(),
            games: 400,
            visits: 64,
            elo0: -10.0,
            elo1: 0.0,
            alpha: 0.05,
            beta: 0.05,
            openings: Vec::new(),
            random_plies: None,
            max_plies: 450,
        }
    }
}

/// The games that measure a network's strength, half of them with each colour.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StrengthConfig {
    /// The share of the processors.
    pub cores: Share,
    /// Measure generations whose numbers are divisible by this one, and the last.
    pub every: u64,
    /// Number of games against the first network, and against the previous one.
    pub games: u64,
    /// Number of root visits per move.
    pub visits: u64,
    /// Opening books. Each opening is played twice, the second time with colours reversed.
    pub openings: Vec<BookOptions>,
    /// Number of random plies after the opening; by default 8 without a book, and 0 with one.
    pub random_plies: Option<u32>,
    /// Number of plies after which a game counts as drawn.
    pub max_plies: usize,
}

impl Default for StrengthConfig {
    fn default() -> StrengthConfig {
        StrengthConfig {
            cores: Share::default(),
            every: 1,
            games: 40,
            visits: 64,
            openings: Vec::new(),
            random_plies: None,
            max_plies: 450,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::CycleConfigError;

    fn read(text: &str) -> Result<CycleConfig, CycleConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop.toml");
        std::fs::write(&path, text).unwrap();
        CycleConfig::read(&path)
    }

    const LEAST: &str = "store = \"s\"\nfolder = \"f\"\n[learner]\n[training]\npreset = \"cf-6m-gab\"\nbatch = 32\n";

    #[test]
    fn a_short_file_will_do() {
        let config = read(LEAST).unwrap();
        assert!(config.actors.is_none() && config.gate.is_none());
        assert_eq!(config.training().unwrap().steps, 1000);
        assert_eq!(config.threads(config.learner.cores, 4), 4);
        let both = read(&format!("{LEAST}[actors]\ncores = {{ share = 3 }}\n")).unwrap();
        assert_eq!(both.threads(both.learner.cores, 8), 2);
        assert_eq!(both.threads(both.actors.as_ref().unwrap().cores, 8), 6);
    }

    #[test]
    fn mistakes_are_named() {
        for (more, named) in [
            ("[actors]\nvisits = 1\n", "actors.visits"),
            ("[actors]\nresign = 0.5\n", "actors.resign"),
            (
                "[actors.cheap]\nshare = 2.0\nvisits = 4\n",
                "actors.cheap.share",
            ),
            ("[reanalysers]\npositions = 0.0\n", "reanalysers.positions"),
            (
                "[actors.foresight]\nshare = 0.5\nsteps = 0\n",
                "actors.foresight.steps",
            ),
            ("[actors.foresight]\nshare = 0.5\n", "family diffusion"),
            ("[search]\nimagination = true\n", "family world"),
            ("[gate]\nelo0 = 5.0\nelo1 = 0.0\n", "gate.elo1"),
            ("[search]\ndevice = \"abacus\"\n", "search.device"),
            ("[search]\nprecision = \"f7\"\n", "f7"),
            ("[search.options]\nNonsense = 1\n", "Nonsense"),
            ("[search.options]\nTemperature = 1\n", "`Temperature`"),
            ("[search.options]\nDevice = \"cpu\"\n", "`Device`"),
            ("[reanalysers]\nown = -1\n", "`reanalysers.own`"),
            (
                "[reanalysers]\ngames = [{ path = \"a\", weight = 0 }]\n",
                "`reanalysers.games.weight`",
            ),
            (
                "[gate]\ncores = { processes = 2 }\n",
                "`gate.cores.processes`",
            ),
            (
                "[actors]\ncores = { share = nan }\n",
                "`actors.cores.share`",
            ),
            ("[gate]\ncores = { share = -1 }\n", "`gate.cores.share`"),
            ("[strength]\nevery = 0\n", "`strength.every`"),
            ("[strength]\ngames = 1\n", "`strength.games`"),
            ("[actor]\n", "actor"),
        ] {
            let error = read(&format!("{LEAST}{more}")).unwrap_err().to_string();
            assert!(error.contains(named), "{named}: {error}");
        }
        for (place, wrong, named) in [
            (
                "[learner]",
                "[learner]\ncores = { processes = 2 }",
                "learner.cores.processes",
            ),
            ("store =", "poll = 1e20\nstore =", "`poll`"),
        ] {
            let error = read(&LEAST.replace(place, wrong)).unwrap_err().to_string();
            assert!(error.contains(named), "{named}: {error}");
        }
        let steps = |more: &str| {
            let text = format!("{LEAST}[search.options]\nCPuct = 2.0\n{more}");
            read(&text).unwrap().search.decoding().unwrap().steps
        };
        assert_eq!((steps(""), steps("DiffusionSteps = 3\n")), (1, 3));
        let grown = ForesightConfig {
            share: 0.6,
            grows: 3,
            steps: 2,
        };
        let shares = [0, 1, 2, 3, 9].map(|generation| grown.at(generation).share);
        for (share, expected) in shares.into_iter().zip([0.0, 0.2, 0.4, 0.6, 0.6]) {
            assert!((share - expected).abs() < 1e-9, "{share} {expected}");
        }
        assert_eq!(ForesightConfig { grows: 0, ..grown }.at(0).share, 0.6);
        assert!(
            read("store = 1")
                .unwrap_err()
                .to_string()
                .contains("loop.toml")
        );
        let bad = read(&LEAST.replace("batch = 32", "batch = 0")).unwrap();
        assert!(bad.training().unwrap_err().to_string().contains("batch"));
    }
}
