//! The server's networks: the main one, the human-like one, and any additional ones.

use super::backends::Backends;
use super::config::Config;
use super::problem::Problem;
use crate::agent::AgentKind;
use crate::backend::{
    Backend, BackendError, BackendKind, BackendOptions, Batch, BuiltIn, Evaluations,
};
use crate::error_report::one_line;
use crate::generate::Generator;
use crate::inference::{LoadError, network_file};
use crate::network::{self, OpenError};
use crate::play;
use crate::player::PlayerSettings;
use crate::review::{LoadedNetwork, NetworkIdentity};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use tch::{Device, Kind};
use tokio::sync::oneshot;

/// Memory of an additional network's evaluation cache, in MiB.
const CACHE: usize = 32;
/// The family name reported for backends without a network.
const NO_FAMILY: &str = "none";
/// The family whose networks generate games.
const WRITES: &str = "gpt";

/// The networks, once loaded.
pub(super) struct Networks {
    pub(super) main: Loaded,
    /// The human-like network, or the reason why it is missing.
    pub(super) human: Result<Loaded, String>,
    pub(super) others: Vec<Loaded>,
}

/// A network; its other forms are created on first use.
pub(super) struct Loaded {
    /// The network's name in requests.
    pub(super) name: String,
    /// The network's family, as in network files.
    pub(super) family: &'static str,
    /// The shared backend; concurrent requests form one batch.
    pub(super) backend: Arc<dyn Backend>,
    /// The network's identity in stored reviews.
    identity: NetworkIdentity,
    options: BackendOptions,
    /// The eager network for explanations, which handles one request at a time.
    eager: Mutex<Option<Eager>>,
    /// The generator of games, which handles one request at a time.
    generator: Mutex<Option<Generator>>,
}

/// A network whose internals can be read.
pub(super) type Eager = network::Network;

impl Loaded {
    fn load(
        name: Option<&str>,
        options: &BackendOptions,
        backends: &Backends,
    ) -> Result<Loaded, LoadError> {
        let backend = backends.get(options)?;
        let family = match options.kind {
            BackendKind::Uniform | BackendKind::Random => NO_FAMILY,
            BackendKind::Torch | BackendKind::Check => {
                let file = network_file(&options.network)?;
                network::architecture(&file).map_or(NO_FAMILY, |it| it.family())
            }
        };
        let own = backend.properties().name.clone();
        Ok(Loaded {
            name: name.map_or(own, str::to_owned),
            family,
            identity: NetworkIdentity::of(options, backend.properties())?,
            backend,
            options: options.clone(),
            eager: Mutex::default(),
            generator: Mutex::default(),
        })
    }

    /// Returns the network as reviews use it.
    pub(super) fn identified(&self) -> LoadedNetwork {
        LoadedNetwork {
            backend: self.backend.clone(),
            identity: self.identity.clone(),
        }
    }

    fn is_built_in(&self) -> bool {
        self.family != NO_FAMILY && self.options.network.net.is_none()
    }

    /// Evaluates a batch, together with other requests' batches.
    pub(super) async fn evaluate(&self, batch: Batch) -> Result<Evaluations, BackendError> {
        let (reply, answer) = oneshot::channel();
        // The client may have disconnected.
        let reply = Box::new(|answer| drop(reply.send(answer)));
        self.backend.ask(batch, reply);
        answer.await.unwrap_or(Err(BackendError::Stopped))
    }

    /// Runs a function on the eager network.
    pub(super) fn look_into<T>(
        &self,
        look: impl FnOnce(&Eager) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let open = |file: &[u8]| network::open(file, self.options.network.code);
        let mut eager = self.eager.lock();
        if eager.is_none() {
            *eager = Some(self.open(open)?);
        }
        look(eager.as_ref().expect("it was just opened"))
    }

    /// Runs a function on the game generator.
    pub(super) fn generate<T>(
        &self,
        write: impl FnOnce(&Generator) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut generator = self.generator.lock();
        if generator.is_none() {
            let open = |file: &[u8]| network::open_any(file, self.options.network.code);
            let gpt = self.open(open)?.downcast::<network::Gpt>();
            let gpt = gpt.ok_or_else(|| self.writes_no_games())?;
            *generator = Some(Generator::new(gpt, Kind::Float, Device::Cpu));
        }
        write(generator.as_ref().expect("it was just made"))
    }

    fn open<T>(&self, open: impl FnOnce(&[u8]) -> Result<T, OpenError>) -> Result<T, Problem> {
        if self.family == NO_FAMILY {
            let detail = format!("the internals of {} cannot be read", self.name);
            return Err(Problem::field("network", detail));
        }
        let file = network_file(&self.options.network);
        let file = file.map_err(|error| Problem::internal(one_line(&error)))?;
        open(&file).map_err(|error| Problem::field("network", one_line(&error)))
    }

    /// Returns the network whose family generates games, if there is one.
    pub(super) fn that_writes(&self) -> Result<&Loaded, Problem> {
        match self.family {
            WRITES => Ok(self),
            _ => Err(self.writes_no_games()),
        }
    }

    fn writes_no_games(&self) -> Problem {
        let detail = format!(
            "the network {} writes no games: start the server with --also and one of the family gpt",
            self.name
        );
        Problem::field("network", detail)
    }
}

impl Networks {
    /// Loads the configured networks.
    pub(super) fn load(config: &Config, backends: &Backends) -> Result<Networks, LoadError> {
        let options = &config.player.backend;
        let load = |name, options: &_| Loaded::load(name, options, backends);
        let main = load(Some("main"), options)?;
        let human = load(Some("human"), &human_options(config));
        let human = human.map_err(|error| one_line(&error));
        if let Err(error) = &human {
            tracing::warn!("{error}");
        }
        let load_further = |path: &PathBuf| {
            let mut options = options.clone();
            options.kind = BackendKind::Torch;
            options.network.net = Some(path.clone());
            options.cache = CACHE;
            load(None, &options)
        };
        let others = config.networks.iter().map(load_further);
        let mut others: Vec<Loaded> = others.collect::<Result<_, _>>()?;
        if let Some(path) = &config.writer
            && !others.iter().any(|it| it.family == WRITES)
        {
            match load_further(path) {
                Ok(writer) => others.push(writer),
                Err(error) => tracing::warn!("{}", one_line(&error)),
            }
        }
        Ok(Networks {
            main,
            human,
            others,
        })
    }

    /// Iterates over all networks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Loaded> {
        let own = std::iter::once(&self.main).chain(&self.human);
        own.chain(&self.others)
    }

    /// Returns the network named in a request.
    pub(super) fn named(&self, name: &str) -> Result<&Loaded, Problem> {
        if let ("human", Err(error)) = (name, &self.human) {
            return Err(Problem::field("network", error.as_str()));
        }
        self.iter().find(|it| it.name == name).ok_or_else(|| {
            let excerpt: String = name.chars().take(40).collect();
            let names: Vec<&str> = self.iter().map(|it| it.name.as_str()).collect();
            let names = names.join(", ");
            let detail = format!("there is no network `{excerpt}`: there are {names}");
            Problem::field("network", detail)
        })
    }

    /// Returns the network of a family.
    pub(super) fn of_family(&self, family: &str) -> Option<&Loaded> {
        self.iter().find(|it| it.family == family)
    }

    /// Configures the player of `settings` with the network named in a request, or with the network
    /// that its agent needs.
    pub(super) fn choose(
        &self,
        name: Option<&str>,
        settings: &mut PlayerSettings,
    ) -> Result<(), Problem> {
        let family = settings.agent.family();
        let chosen = match (name, family) {
            (Some(name), _) => self.named(name)?,
            (None, Some(family)) => self.of_family(family).unwrap_or(&self.main),
            (None, None) => return Ok(()),
        };
        if let Some(family) = family.filter(|family| chosen.family != *family) {
            let detail = format!(
                "this agent needs a network of the family {family}: start the server with --also and one"
            );
            return Err(Problem::field("agent", detail));
        }
        // The agent `human` ignores a built-in network and would play with its own.
        let is_own = chosen.options.network.built_in == BuiltIn::Human;
        if settings.agent == AgentKind::Human && chosen.is_built_in() && !is_own {
            let detail = format!(
                "the agent human does not play with the built-in network {}: leave `network` out, or start the server with --also and one",
                chosen.name
            );
            return Err(Problem::field("network", detail));
        }
        settings.backend.clone_from(&chosen.options);
        Ok(())
    }
}

/// Returns the settings of the agent `human`'s backend.
fn human_options(config: &Config) -> BackendOptions {
    let mut settings = config.player.clone();
    settings.agent = AgentKind::Human;
    settings.answering(&play::Limits::default()).backend
}
