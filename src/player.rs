//! A player: a network and the agent that uses it, kept between moves along with their caches and
//! tree.
//!
//! A front end ([`crate::uci`], a server) sends a [`Player`] one [`Request`] after another. The
//! player loads whatever the request's [`PlayerSettings`] require and keeps everything that has not
//! changed: the network, the agent, its tree. Messages for the user go to a [`Listener`].

mod factory;
mod level;
mod settings;

pub use factory::{EngineFactory, Factory};
pub use level::HIGHEST_LEVEL;
pub use settings::PlayerSettings;

use crate::agent::{self, AgentKind, ConfigurableAgent};
use crate::backend::{
    Backend, BackendOptions, BuiltIn, DeviceChoice, NetworkOptions, Precision, Way,
};
use crate::chess::Game;
use crate::error_report::one_line;
use crate::inference::LoadError;
use crate::play::{AgentError, Choice, Control, Limits, Report};
use crate::tablebase::Tablebase;
use shakmaty::Position;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Number of unusable tablebases that are named one by one; a damaged disk may hold hundreds.
const MOST_TABLE_PROBLEMS: usize = 5;

/// The settings of a player, and the counters that reset its memory.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The agent and the network.
    pub settings: PlayerSettings,
    /// The number of the game; a new number clears the tree.
    pub game: u64,
    /// The number of resets; a new number clears the tree and the evaluation cache.
    pub clearing: u64,
}

/// A request for a move.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The player's settings.
    pub setup: &'a Setup,
    /// The game so far; its side to move is to play.
    pub game: &'a Game,
    /// The search limits and the moves to consider.
    pub limits: &'a Limits,
    /// The time at which the request arrived and its clock started.
    pub received: Instant,
}

/// Receives a player's messages and reports.
pub trait Listener {
    /// Receives a message for the user, for example that something was loaded.
    fn note(&mut self, text: &str);

    /// Receives a reason why the player does not play as its settings say, and what it does
    /// instead. It is sent before every answer, ahead of all notes, for as long as it applies.
    fn problem(&mut self, text: &str);

    /// Signals that everything is loaded and the agent is about to start with these settings.
    fn begin(&mut self, settings: &PlayerSettings);

    /// Receives an interim report.
    fn report(&mut self, report: &Report);
}

/// Why a player could not answer.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The network cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The agent failed after its last report.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// A network and the agent that uses it, kept between requests.
///
/// ```
/// use std::time::Instant;
/// use tessera::chess::Game;
/// use tessera::backend::BackendKind;
/// use tessera::play::{Control, Limits, Report};
/// use tessera::player::{EngineFactory, Listener, Player, Request, PlayerSettings, Setup};
///
/// struct Quiet;
/// impl Listener for Quiet {
///     fn note(&mut self, _: &str) {}
///     fn problem(&mut self, _: &str) {}
///     fn begin(&mut self, _: &PlayerSettings) {}
///     fn report(&mut self, _: &Report) {}
/// }
///
/// let mut setup = Setup::default();
/// setup.settings.backend.kind = BackendKind::Uniform;
/// let request = Request {
///     setup: &setup,
///     game: &Game::default(),
///     limits: &Limits { nodes: Some(10), ..Limits::default() },
///     received: Instant::now(),
/// };
/// let mut player = Player::new(EngineFactory::default());
/// let choice = player.answer(&request, &Control::default(), &mut Quiet)?;
/// assert!(choice.best.is_some());
/// # Ok::<(), tessera::player::PlayerError>(())
/// ```
pub struct Player<F = EngineFactory> {
    factory: F,
    loaded: Option<Loaded>,
    seated: Option<Seated>,
    /// The tablebases last reported to the listener.
    tablebase: Tablebase,
    /// The options of a backend that failed on its device, and its error; the CPU has replaced it
    /// since.
    failed: Option<(BackendOptions, String)>,
    /// Whether to play with a substitute if the requested network or agent cannot play, because a
    /// move that never comes loses the game.
    plays_on: bool,
    /// The networks that could not be loaded and are not retried.
    missing: Vec<Missing>,
    /// The number of a game, and the seed for levels in that game if the user has set none.
    game_seed: (u64, u64),
}

/// A backend and its options.
struct Loaded {
    options: BackendOptions,
    backend: Arc<dyn Backend>,
}

/// A network that could not be loaded.
struct Missing {
    network: NetworkOptions,
    /// Whether the file is unreadable on every device.
    is_unreadable: bool,
    reason: String,
    /// The file's stamp.
    stamp: Option<(SystemTime, u64)>,
}

/// Returns the modification time and size of a network's file, or `None` if it does not exist.
fn stamp_of(network: &NetworkOptions) -> Option<(SystemTime, u64)> {
    let file = network.net.as_ref()?.metadata().ok()?;
    let written = file.is_file().then(|| file.modified())?;
    Some((written.ok()?, file.len()))
}

impl Missing {
    fn covers(&self, network: &NetworkOptions) -> bool {
        self.network == *network || self.is_unreadable && self.network.net == network.net
    }

    /// Returns whether loading would fail again because the file has not changed.
    fn is_missing(&self) -> bool {
        stamp_of(&self.network) == self.stamp
    }
}

/// The messages for the listener, sent after loading.
#[derive(Default)]
struct Messages {
    problems: Vec<String>,
    notes: Vec<String>,
}

impl Messages {
    fn send(&self, listener: &mut dyn Listener) {
        for problem in &self.problems {
            listener.problem(problem);
        }
        for note in &self.notes {
            listener.note(note);
        }
    }
}

/// An agent and the setup that it was last prepared for.
struct Seated {
    kind: AgentKind,
    options: agent::Options,
    game: u64,
    clearing: u64,
    agent: Box<dyn ConfigurableAgent>,
}

impl<F: Factory> Player<F> {
    /// Creates a player; nothing is loaded yet.
    pub fn new(factory: F) -> Player<F> {
        Player {
            factory,
            loaded: None,
            seated: None,
            tablebase: Tablebase::default(),
            failed: None,
            plays_on: false,
            missing: Vec::new(),
            game_seed: (0, rand::random()),
        }
    }

    /// Creates a player with fallbacks. If it cannot play as requested, it sends a message and uses
    /// the CPU, a built-in network, or another agent.
    pub fn steadfast(factory: F) -> Player<F> {
        Player {
            plays_on: true,
            ..Player::new(factory)
        }
    }

    /// Chooses a move. The choice is empty if no legal move is allowed. If a device
    /// fails before the first report, the CPU replaces it.
    ///
    /// # Errors
    /// [`PlayerError`]; the player remains usable. The error has also been sent to `listener` as a
    /// problem.
    pub fn answer(
        &mut self,
        request: &Request<'_>,
        control: &Control,
        listener: &mut dyn Listener,
    ) -> Result<Choice, PlayerError> {
        let mut game = request.game.clone();
        loop {
            let settings = self.prepare(request.setup, request.limits, listener)?;
            listener.begin(&settings);
            game.set_ratings(settings.ratings(game.position().turn()));
            let limits = settings.limits(request.limits);
            let limits = charged(&limits, request.received.elapsed());
            let Some(seated) = &mut self.seated else {
                return Ok(Choice::default());
            };
            let mut has_reported = false;
            let mut report = |report: &Report| {
                has_reported = true;
                listener.report(report);
            };
            let error = match seated.agent.choose(&game, &limits, control, &mut report) {
                Ok(choice) => return Ok(choice),
                Err(error) => error,
            };
            let told = one_line(&error);
            let goes_on = error.is_of_device() && self.leave_devices(&settings.backend, &told);
            match goes_on {
                true => listener.problem(&format!("{told}; continuing on the CPU")),
                false => listener.problem(&told),
            }
            if !goes_on || has_reported {
                return Err(error.into());
            }
        }
    }

    /// Ensures that the player for `setup` and `limits` is loaded; returns the settings that it
    /// plays with. If a network cannot be loaded, another replaces it: the current network stands
    /// in for the human-like one, and [`Player::steadfast`] lists the other fallbacks.
    ///
    /// # Errors
    /// [`LoadError`] if no network can be loaded; it has also been sent to `listener` as a problem.
    pub fn prepare(
        &mut self,
        setup: &Setup,
        limits: &Limits,
        listener: &mut dyn Listener,
    ) -> Result<PlayerSettings, LoadError> {
        let mut messages = Messages::default();
        let prepared = self.prepare_any(setup, limits, &mut messages);
        messages.send(listener);
        prepared
    }

    /// Prepares the player with the first network that can be loaded.
    fn prepare_any(
        &mut self,
        setup: &Setup,
        limits: &Limits,
        messages: &mut Messages,
    ) -> Result<PlayerSettings, LoadError> {
        self.missing.retain(Missing::is_missing);
        let at_hand = &setup.settings.backend.network;
        let mut settings = setup.settings.answering(limits);
        let mut networks = self.networks(&settings, at_hand);
        let mut reason: Option<String> = None;
        loop {
            let (network, instead) = networks.remove(0);
            let is_last = networks.is_empty();
            let known = self.missing.iter().find(|it| it.covers(&network));
            if let Some(missing) = known.filter(|_| !is_last) {
                reason.get_or_insert(missing.reason.clone());
                continue;
            }
            settings.backend.network = network.clone();
            let error = match self.prepare_player(setup, &mut settings, messages) {
                Ok(()) => {
                    let told = reason.map(|reason| format!("{reason}; {instead}"));
                    messages.problems.splice(0..0, told);
                    return Ok(settings);
                }
                Err(error) => error,
            };
            let why = one_line(&error);
            if is_last {
                let none = |reason| format!("{reason}; no other network can be used");
                messages.problems.insert(0, reason.map_or(why, none));
                return Err(error);
            }
            self.missing.push(Missing {
                stamp: stamp_of(&network),
                network,
                is_unreadable: matches!(error, LoadError::Read { .. }),
                reason: why.clone(),
            });
            reason.get_or_insert(why);
        }
    }

    /// Returns the network of `settings` followed by its fallbacks in order, each with its message;
    /// `at_hand` is the network that the user selected.
    fn networks(
        &self,
        settings: &PlayerSettings,
        at_hand: &NetworkOptions,
    ) -> Vec<(NetworkOptions, &'static str)> {
        let wanted = settings.backend.network.clone();
        let mut networks = vec![(wanted, "")];
        let mut add = |network: NetworkOptions, instead| {
            if networks.iter().all(|(other, _)| *other != network) {
                networks.push((network, instead));
            }
        };
        let built_in = |built_in| NetworkOptions {
            net: None,
            built_in,
            ..at_hand.clone()
        };
        if self.plays_on && settings.agent == AgentKind::Human {
            let instead = "the built-in network that plays like people plays in its place";
            add(built_in(BuiltIn::Human), instead);
        }
        add(at_hand.clone(), "the network of Net plays in its place");
        if self.plays_on {
            add(on_the_cpu(at_hand), "it plays on the CPU");
            let main = built_in(BuiltIn::Main);
            let instead = "the built-in network plays in its place";
            add(main.clone(), instead);
            add(
                on_the_cpu(&main),
                "the built-in network plays in its place, on the CPU",
            );
        }
        networks
    }

    /// Drops the network and the agent, whose state is unknown after a panic.
    pub fn reset(&mut self) {
        self.seated = None;
        self.loaded = None;
    }

    /// Drops a failed backend so that the next search reloads it, on the CPU unless it already ran
    /// there. Returns whether the device changes.
    fn leave_devices(&mut self, options: &BackendOptions, error: &str) -> bool {
        self.reset();
        let is_elsewhere = options.network != on_the_cpu(&options.network);
        let goes_on = self.failure_of(options).is_none() && is_elsewhere;
        if goes_on {
            self.failed = Some((options.clone(), error.to_owned()));
        }
        goes_on
    }

    /// Returns the error with which the backend of `options` failed on its device.
    fn failure_of(&self, options: &BackendOptions) -> Option<&str> {
        let failed = self.failed.as_ref().filter(|(of, _)| of == options);
        failed.map(|(_, error)| error.as_str())
    }

    /// Ensures that the configured agent is loaded and up to date. Unchanged parts stay loaded.
    fn prepare_player(
        &mut self,
        setup: &Setup,
        settings: &mut PlayerSettings,
        messages: &mut Messages,
    ) -> Result<(), LoadError> {
        let mut options = settings.agent_options();
        if self.game_seed.0 != setup.game {
            self.game_seed = (setup.game, rand::random());
        }
        if settings.most_nodes.is_some() && options.search.seed == 0 {
            options.search.seed = self.game_seed.1;
        }
        let mut wanted = settings.backend.clone();
        let failure = self.failure_of(&wanted).map(ToOwned::to_owned);
        if failure.is_some() {
            wanted.network = on_the_cpu(&wanted.network);
        }
        let backend = self.backend(&wanted, messages)?;
        let failure = failure.map(|error| format!("{error}; it plays on the CPU"));
        messages.problems.extend(failure);
        if self.plays_on {
            messages.problems.extend(sit_in(settings, &*backend));
        }
        self.look_for_tables(&options.search.tablebase, messages);
        messages.problems.extend(unreadable_spare(settings));
        let kind = settings.agent;
        let seated = match self.seated.take().filter(|seated| seated.kind == kind) {
            Some(seated) => self.seated.insert(seated),
            None => {
                let ignored = ratings_ignored(settings, &*backend);
                messages.notes.extend(ignored);
                self.seated.insert(Seated {
                    kind,
                    game: setup.game,
                    clearing: setup.clearing,
                    agent: self.factory.build(kind, backend.clone(), &options),
                    options: options.clone(),
                })
            }
        };
        if seated.options != options {
            seated.agent.adjust(&options);
            seated.options = options;
        }
        if seated.clearing != setup.clearing {
            backend.forget();
        }
        if (seated.game, seated.clearing) != (setup.game, setup.clearing) {
            seated.agent.new_game();
            (seated.game, seated.clearing) = (setup.game, setup.clearing);
        }
        Ok(())
    }

    /// Returns the backend for `options`. The network stays loaded if it is unchanged, and the
    /// agent is kept if every position keeps its evaluation.
    fn backend(
        &mut self,
        options: &BackendOptions,
        messages: &mut Messages,
    ) -> Result<Arc<dyn Backend>, LoadError> {
        let (mut has_network, mut evaluates_alike) = (false, false);
        if let Some(Loaded {
            options: before,
            backend,
        }) = &self.loaded
        {
            if before == options {
                return Ok(backend.clone());
            }
            has_network = before.has_network_of(options);
            evaluates_alike = before.evaluates_like(options);
        }
        // Free the old backend before loading the new one.
        self.loaded = None;
        if !evaluates_alike {
            self.seated = None;
        }
        let begun = Instant::now();
        let backend = self.factory.load(options)?;
        if !has_network {
            let properties = backend.properties();
            let format = properties.format.as_ref();
            messages.notes.push(format!(
                "{} loaded in {:.1} s{}",
                properties.name,
                begun.elapsed().as_secs_f64(),
                format.map_or(String::new(), |format| format!(", runs in {format}"))
            ));
        }
        if let Some(seated) = &mut self.seated {
            seated.agent.set_backend(backend.clone());
        }
        self.loaded = Some(Loaded {
            options: options.clone(),
            backend: backend.clone(),
        });
        Ok(backend)
    }

    /// Reports folders and files that could not be used, and the available tablebases if they have
    /// changed.
    fn look_for_tables(&mut self, tablebase: &Tablebase, messages: &mut Messages) {
        let inventory = tablebase.inventory();
        let named = inventory.problems.iter().take(MOST_TABLE_PROBLEMS);
        messages.problems.extend(named.map(|it| one_line(it)));
        let more = inventory.problems.len().saturating_sub(MOST_TABLE_PROBLEMS);
        if more > 0 {
            let told = format!("{more} more folders and files of tablebases are left out");
            messages.problems.push(told);
        }
        if tablebase.path() != self.tablebase.path() && !tablebase.path().is_empty() {
            messages.notes.push(inventory.to_string());
        }
        self.tablebase = tablebase.clone();
    }
}

/// Returns the problem of a human-like network that is named, although the agent does not use it.
fn unreadable_spare(settings: &PlayerSettings) -> Option<String> {
    let is_spare = settings.agent != AgentKind::Human;
    let path = settings.human_net.clone().filter(|_| is_spare)?;
    let source = File::open(&path).err()?;
    Some(LoadError::Read { path, source }.to_string())
}

/// Returns a note if a rating is set but the network does not use ratings, or only in part.
fn ratings_ignored(settings: &PlayerSettings, backend: &dyn Backend) -> Option<String> {
    let properties = backend.properties();
    let name = &properties.name;
    if settings.agent != AgentKind::Human {
        None
    } else if !properties.reads_ratings {
        Some(format!(
            "{name} reads no ratings: it imitates the players it was trained on, whatever \
             UCI_Elo and SelfElo are"
        ))
    } else if properties.people_correction().is_none() {
        Some(format!(
            "{name} has no correction (tessera-train export --correction): mates in one and pieces that \
             can be taken are seen alike at every rating"
        ))
    } else {
        None
    }
}

/// Substitutes another agent if the network does not support the configured one; returns the
/// problems.
fn sit_in(settings: &mut PlayerSettings, backend: &dyn Backend) -> Vec<String> {
    let properties = backend.properties();
    let name = &properties.name;
    let mut problems = Vec::new();
    if settings.agent == AgentKind::World && backend.imagination().is_none() {
        settings.agent = AgentKind::Mcts;
        problems.push(format!(
            "the network `{name}` has not learned the rules, which the agent `world` needs; the \
             agent `mcts` plays in its place"
        ));
    }
    let needs_value = matches!(settings.agent, AgentKind::Mcts | AgentKind::Value);
    if needs_value && !properties.has_value {
        settings.agent = AgentKind::Policy;
        problems.push(format!(
            "the network `{name}` has no value head, which every search needs; the agent `policy` \
             plays in its place"
        ));
    }
    problems
}

/// Returns the same network on the CPU, in the best precision for that device.
fn on_the_cpu(network: &NetworkOptions) -> NetworkOptions {
    NetworkOptions {
        devices: DeviceChoice::Cpu.into(),
        precision: Precision::Auto,
        way: Way::Auto,
        ..network.clone()
    }
}

/// Deducts `waited`, the time since the request arrived, from the limits, because the clock kept
/// running while an earlier search ended or the network was loading.
fn charged(limits: &Limits, waited: Duration) -> Limits {
    let mut limits = limits.clone();
    if !limits.ponder {
        for time in [&mut limits.time, &mut limits.move_time] {
            *time = time.map(|time| time.saturating_sub(waited));
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendKind;

    struct Quiet;

    impl Listener for Quiet {
        fn note(&mut self, _: &str) {}
        fn problem(&mut self, _: &str) {}
        fn begin(&mut self, _: &PlayerSettings) {}
        fn report(&mut self, _: &Report) {}
    }

    #[test]
    fn a_level_draws_every_game_anew_unless_a_seed_is_set() {
        let seed = |elo, seed| {
            let mut setup = Setup::default();
            setup.settings.backend.kind = BackendKind::Uniform;
            setup.settings.limit_strength = true;
            setup.settings.elo = elo;
            setup.settings.options.search.seed = seed;
            let mut player = Player::new(EngineFactory::default());
            let limits = Limits::default();
            player.prepare(&setup, &limits, &mut Quiet).unwrap();
            let first = player.seated.as_ref().unwrap().options.search.seed;
            player.prepare(&setup, &limits, &mut Quiet).unwrap();
            let again = player.seated.as_ref().unwrap().options.search.seed;
            assert_eq!(again, first, "a game has one seed");
            setup.game += 1;
            player.prepare(&setup, &limits, &mut Quiet).unwrap();
            (first, player.seated.unwrap().options.search.seed)
        };
        assert_eq!(seed(3000, 7), (7, 7));
        let (first, next) = seed(3000, 0);
        assert_ne!(first, next);
        // The agent `human` has its own random number generator.
        assert_eq!(seed(2000, 0), (0, 0));
    }
}
