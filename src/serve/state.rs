//! State shared by all handlers.

use super::access::{Access, Client};
use super::backends::Backends;
use super::config::Config;
use super::hosts::Hosts;
use super::metrics::Metrics;
use super::networks::Networks;
use super::players::{Answer, Event, Places, Players};
use super::problem::Problem;
use super::request::Question;
use super::reviews::Reviews;
use super::shared::SharedPages;
use crate::inference::LoadError;
use crate::play::Control;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

pub(super) struct AppState {
    pub(super) config: Config,
    pub(super) access: Access,
    pub(super) hosts: Hosts,
    pub(super) metrics: Metrics,
    pub(super) players: Arc<Players>,
    /// Slots for evaluations without a player.
    pub(super) evaluations: Places,
    /// Slots for the judge's scores of single positions.
    pub(super) judging: Places,
    pub(super) reviews: Reviews,
    /// The reviews that can be read by a link, if this server shares any.
    pub(super) shared: Option<Arc<SharedPages>>,
    backends: Backends,
    networks: OnceLock<Arc<Networks>>,
    closing: AtomicBool,
    /// Controls of the running searches.
    controls: Mutex<Vec<Weak<Control>>>,
}

/// Stops a search when its client disconnects.
pub(super) struct StopOnDrop(Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl AppState {
    pub(super) fn new(config: Config, shared: Option<SharedPages>) -> AppState {
        let limits = &config.limits;
        let backends = Backends::default();
        AppState {
            access: Access::new(config.tokens.clone(), limits.rate, limits.streams),
            hosts: Hosts::new(config.address.ip(), config.hosts.clone()),
            metrics: Metrics::new(),
            players: Arc::new(Players::new(limits, backends.clone())),
            evaluations: Places::new(limits.evaluations, limits.queue),
            judging: Places::new(limits.parallel, limits.queue),
            reviews: Reviews::new(limits.queue),
            shared: shared.map(Arc::new),
            backends,
            networks: OnceLock::new(),
            closing: AtomicBool::new(false),
            controls: Mutex::default(),
            config,
        }
    }

    /// Loads the networks.
    pub(super) fn load(&self) -> Result<(), LoadError> {
        let networks = Networks::load(&self.config, &self.backends)?;
        let _ = self.networks.set(Arc::new(networks));
        Ok(())
    }

    /// Returns the networks, or a problem while they are loading.
    pub(super) fn networks(&self) -> Result<&Arc<Networks>, Problem> {
        let loading = || Problem::unavailable("the network is being loaded: try again");
        self.networks.get().ok_or_else(loading)
    }

    /// Stops admitting requests.
    pub(super) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    /// Returns a problem if the server is shutting down or not ready.
    pub(super) fn check_open(&self) -> Result<(), Problem> {
        if self.closing.load(Relaxed) {
            return Err(Problem::unavailable("the server is shutting down"));
        }
        self.networks().map(|_| ())
    }

    /// Returns a player's answer, without its reports. If the client leaves, the player stops.
    pub(super) async fn answer(
        &self,
        client: Client,
        question: Question,
    ) -> Result<Answer, Problem> {
        let (control, _stop) = self.control();
        let mut events = self.players.ask(client, question, control)?;
        while let Some(event) = events.recv().await {
            if let Event::Answer(answer) = event {
                return answer.inspect(|answer| self.count(answer));
            }
        }
        Err(Problem::internal("the player has stopped"))
    }

    /// Counts the nodes of an answer.
    pub(super) fn count(&self, answer: &Answer) {
        let nodes = answer.choice.report.new_nodes;
        self.metrics.nodes.inc_by(nodes);
    }

    /// Returns a control for a search, and a guard that stops the search when dropped.
    pub(super) fn control(&self) -> (Arc<Control>, StopOnDrop) {
        let control = Arc::new(Control::default());
        let mut controls = self.controls.lock();
        controls.retain(|control| control.strong_count() > 0);
        controls.push(Arc::downgrade(&control));
        (control.clone(), StopOnDrop(control))
    }

    /// Stops all searches, each of which returns its result so far. Requests that are waiting for a
    /// slot are rejected.
    pub(super) fn stop_all(&self) {
        self.players.places.close();
        self.evaluations.close();
        self.judging.close();
        self.reviews.places.close();
        for control in self.controls.lock().iter().filter_map(Weak::upgrade) {
            control.stop();
        }
    }
}
