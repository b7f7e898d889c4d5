//! The thread that loads networks and thinks, one job after another.

use super::info;
use super::output::Output;
use super::settings::Settings;
use super::task::{Job, Search, Setup, Task, Work};
use crate::agent::{AgentKind, ConfigurableAgent};
use crate::backend::{LoadError, Loader};
use crate::chess::Game;
use crate::chess::perft::divide;
use crate::error_report::one_line;
use crate::nn::{Backend, BackendOptions, DeviceChoice, NetworkOptions};
use crate::panics;
use crate::play::{Limits, Report};
use crate::search::Parameters;
use crate::tablebase::Tablebase;
use crossbeam::channel::Receiver;
use shakmaty::Position;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where backends and players come from.
pub(crate) trait Factory: Send + 'static {
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError>;

    fn build(
        &self,
        kind: AgentKind,
        backend: Arc<dyn Backend>,
        parameters: &Parameters,
    ) -> Box<dyn ConfigurableAgent>;
}

/// The engine's own.
#[derive(Default)]
pub(crate) struct Engine {
    loader: Loader,
}

impl Factory for Engine {
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        self.loader.load(options)
    }

    fn build(
        &self,
        kind: AgentKind,
        backend: Arc<dyn Backend>,
        parameters: &Parameters,
    ) -> Box<dyn ConfigurableAgent> {
        kind.build(backend, parameters)
    }
}

pub(crate) struct Worker<F> {
    output: Arc<Output>,
    factory: F,
    loaded: Option<Loaded>,
    player: Option<Player>,
    /// The tablebases that have been told of.
    tablebase: Tablebase,
    /// The last report of the search at hand: what to fall back on.
    latest: Option<Report>,
    /// What a backend was made from that failed on its devices: from now on the CPU
    /// takes their place.
    failed: Option<BackendOptions>,
    /// The network that plays like people, where it could not be had: the one at hand
    /// plays in its place.
    missing: Option<NetworkOptions>,
}

/// A backend, and what it was made from.
struct Loaded {
    options: BackendOptions,
    backend: Arc<dyn Backend>,
}

/// A player, and what it goes by.
struct Player {
    kind: AgentKind,
    parameters: Parameters,
    game: u64,
    clearing: u64,
    agent: Box<dyn ConfigurableAgent>,
}

impl<F: Factory> Worker<F> {
    pub(crate) fn new(output: Arc<Output>, factory: F) -> Worker<F> {
        Worker {
            output,
            factory,
            loaded: None,
            player: None,
            tablebase: Tablebase::default(),
            latest: None,
            failed: None,
            missing: None,
        }
    }

    /// Does the jobs in their order until no more can come.
    pub(crate) fn run(mut self, jobs: Receiver<Job>) {
        for Job { task, work } in jobs {
            // A panic is a mistake in the program. Whoever waits for an answer
            // gets one all the same, and the session goes on.
            let answer = catch_unwind(AssertUnwindSafe(|| self.work(&work, &task)))
                .unwrap_or_else(|panic| self.recover(&work, panic.as_ref()));
            self.output.last_line(&answer, || task.finish());
        }
    }

    /// Does a job; the line that ends it.
    fn work(&mut self, work: &Work, task: &Task) -> String {
        match work {
            Work::Ready(setup) => {
                if let Err(error) = self.prepare(setup, &Limits::default()) {
                    self.output.info_string(&one_line(&error));
                }
                READY.to_owned()
            }
            Work::Search(search) => self.search(search, task),
            Work::Perft { game, depth } => {
                let stopped = || task.control.stopped();
                let counted = divide(game.position(), *depth, &stopped, |mv, leaves| {
                    self.output
                        .line(&format!("{}: {leaves}", game.format_move(mv)));
                });
                match counted {
                    Some(leaves) => format!("\nNodes searched: {leaves}\n"),
                    None => "info string perft was stopped before its end".to_owned(),
                }
            }
        }
    }

    fn recover(&mut self, work: &Work, panic: &(dyn Any + Send)) -> String {
        let message = panics::message(panic);
        self.output
            .info_string(&format!("internal error, please report it: {message}"));
        self.player = None;
        self.loaded = None;
        match work {
            Work::Ready(_) => READY.to_owned(),
            Work::Search(search) => self.best_so_far(search),
            Work::Perft { .. } => "info string perft failed".to_owned(),
        }
    }

    fn search(&mut self, search: &Search, task: &Task) -> String {
        self.latest = None;
        let control = &task.control;
        let settings = &search.setup.settings;
        if search.game.position().legal_moves().is_empty() {
            self.output.message(&info::no_moves(&search.game, settings));
            control.hold_back(&search.limits);
            return info::NO_MOVE.to_owned();
        }
        match self.prepare(&search.setup, &search.limits) {
            Ok(settings) => {
                task.begin();
                self.think(search, &settings, task)
            }
            Err(error) => {
                self.output.info_string(&one_line(&error));
                control.hold_back(&search.limits);
                info::NO_MOVE.to_owned()
            }
        }
    }

    fn think(&mut self, search: &Search, settings: &Settings, task: &Task) -> String {
        let Some(player) = &mut self.player else {
            return info::NO_MOVE.to_owned();
        };
        let control = &task.control;
        let mut game = Game::clone(&search.game);
        game.set_ratings(settings.ratings(game.position().turn()));
        let game = &game;
        let limits = charged(&search.limits, search.received.elapsed());
        let (output, latest) = (&self.output, &mut self.latest);
        let mut publish = |report: &Report| {
            for message in info::report(report, game, settings) {
                output.message(&message);
            }
            *latest = Some(report.clone());
        };
        match player.agent.choose(game, &limits, control, &mut publish) {
            Ok(choice) => {
                if self.latest.as_ref() != Some(&choice.report) {
                    for message in info::report(&choice.report, game, settings) {
                        self.output.message(&message);
                    }
                }
                if settings.verbose_move_stats {
                    for line in info::statistics(&choice.statistics, game) {
                        self.output.info_string(&line);
                    }
                }
                info::best_move(&choice, game, settings)
            }
            Err(error) => {
                self.output.info_string(&error.to_string());
                let goes_on = self.leave_devices(&settings.backend);
                if goes_on && self.latest.is_none() {
                    return self.search(search, task);
                }
                control.hold_back(&limits);
                self.best_so_far(search)
            }
        }
    }

    /// Gives up a backend that has failed: the next search loads it again, on the
    /// CPU if it was not there. True if that is another place.
    fn leave_devices(&mut self, options: &BackendOptions) -> bool {
        self.player = None;
        self.loaded = None;
        let goes_on = self.failed.as_ref() != Some(options) && *options != on_the_cpu(options);
        if goes_on {
            self.output.info_string("going on on the CPU");
            self.failed = Some(options.clone());
        }
        goes_on
    }

    /// The answer where a search broke off: what it last reported as best, else any
    /// legal move, since no answer would lose a game.
    fn best_so_far(&mut self, search: &Search) -> String {
        let latest = self.latest.take().unwrap_or_default();
        let best = latest.lines.first().and_then(|line| line.moves.first());
        let allowed = search.limits.search_moves.first();
        let legal = search.game.position().legal_moves();
        match best.or(allowed).or(legal.first()) {
            Some(&best) => format!("bestmove {}", search.game.format_move(best)),
            None => info::NO_MOVE.to_owned(),
        }
    }

    /// Sees to it that the player that `setup` wants within `limits` is there; the
    /// settings that it plays by. Where the network that plays like people cannot be
    /// had, the one at hand takes its place.
    fn prepare(&mut self, setup: &Setup, limits: &Limits) -> Result<Settings, LoadError> {
        let at_hand = &setup.settings.backend.network;
        let mut settings = setup.settings.answering(limits);
        let network = &settings.backend.network;
        if network != at_hand {
            if self.missing.as_ref() != Some(network) {
                match self.seat(setup, &settings) {
                    Ok(()) => return Ok(settings),
                    Err(error) => self.output.info_string(&format!(
                        "{}; the network of Net plays in its place",
                        one_line(&error)
                    )),
                }
                self.missing = Some(network.clone());
            }
            settings.backend.network = at_hand.clone();
        }
        self.seat(setup, &settings)?;
        Ok(settings)
    }

    /// Sees to it that the player of `settings` is there, and knows what it may know.
    /// What has not changed stays loaded.
    fn seat(&mut self, setup: &Setup, settings: &Settings) -> Result<(), LoadError> {
        let Settings {
            backend: options,
            agent: kind,
            ..
        } = settings;
        let parameters = settings.search_parameters();
        self.look_for_tables(&parameters.tablebase);
        let backend = match self.failed.as_ref() == Some(options) {
            true => self.backend(&on_the_cpu(options))?,
            false => self.backend(options)?,
        };
        let player = match self.player.take().filter(|player| player.kind == *kind) {
            Some(player) => self.player.insert(player),
            None => {
                self.tell_of_ratings(settings, &*backend);
                self.player.insert(Player {
                    kind: *kind,
                    game: setup.game,
                    clearing: setup.clearing,
                    agent: self.factory.build(*kind, backend.clone(), &parameters),
                    parameters: parameters.clone(),
                })
            }
        };
        if player.parameters != parameters {
            player.agent.adjust(&parameters);
            player.parameters = parameters;
        }
        if player.clearing != setup.clearing {
            backend.forget();
        }
        if (player.game, player.clearing) != (setup.game, setup.clearing) {
            player.agent.new_game();
            (player.game, player.clearing) = (setup.game, setup.clearing);
        }
        Ok(())
    }

    /// The backend that `options` want. The network stays loaded if it is the same,
    /// and the player stays if the same positions get the same evaluations.
    fn backend(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
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
        // What goes makes room before what comes.
        self.loaded = None;
        if !evaluates_alike {
            self.player = None;
        }
        let begun = Instant::now();
        let backend = self.factory.load(options)?;
        if !has_network {
            let properties = backend.properties();
            let format = properties.format.as_ref();
            self.output.info_string(&format!(
                "{} loaded in {:.1} s{}",
                properties.name,
                begun.elapsed().as_secs_f64(),
                format.map_or(String::new(), |format| format!(", runs in {format}"))
            ));
        }
        if let Some(player) = &mut self.player {
            player.agent.set_backend(backend.clone());
        }
        self.loaded = Some(Loaded {
            options: options.clone(),
            backend: backend.clone(),
        });
        Ok(backend)
    }

    /// Says so where a rating was asked for that the network cannot follow.
    fn tell_of_ratings(&self, settings: &Settings, backend: &dyn Backend) {
        let properties = backend.properties();
        if settings.agent == AgentKind::Human && !properties.reads_ratings {
            self.output.info_string(&format!(
                "{} reads no ratings: it imitates the players it was trained on, whatever \
                 UCI_Elo and SelfElo are",
                properties.name
            ));
        }
    }

    /// Says what tables there are, if they are others than before.
    fn look_for_tables(&mut self, tablebase: &Tablebase) {
        if tablebase.path() != self.tablebase.path() {
            let inventory = tablebase.inventory();
            for problem in &inventory.problems {
                self.output.info_string(&one_line(problem));
            }
            if !tablebase.path().is_empty() {
                self.output.info_string(&inventory.to_string());
            }
            self.tablebase = tablebase.clone();
        }
    }
}

/// The answer to `isready`.
pub(crate) const READY: &str = "readyok";

/// The same backend, computed on the CPU.
fn on_the_cpu(options: &BackendOptions) -> BackendOptions {
    let mut options = options.clone();
    options.network.devices = DeviceChoice::Cpu.into();
    options
}

/// The limits after `waited` since `go` arrived, be it for an earlier search to
/// end or for the network to load: the clock ran meanwhile.
fn charged(limits: &Limits, waited: Duration) -> Limits {
    let mut limits = limits.clone();
    if !limits.ponder {
        for time in [&mut limits.time, &mut limits.move_time] {
            *time = time.map(|time| time.saturating_sub(waited));
        }
    }
    limits
}
