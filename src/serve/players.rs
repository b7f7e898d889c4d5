//! The players: a limited number, each with the tree of a game.

use super::access::Client;
use super::backends::Backends;
use super::config::Limits;
use super::problem::Problem;
use super::request::Question;
use crate::backend::BackendError;
use crate::chess::Game;
use crate::error_report::one_line;
use crate::panics;
use crate::play::{AgentError, Choice, Control, Report};
use crate::player::{Listener, Player, PlayerError, PlayerSettings, Request, Setup};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Number of reports that wait for a client to read them; of any further ones, only the last is
/// kept.
const PENDING: usize = 8;
/// Retry delay when the queue is full.
const FULL: Duration = Duration::from_secs(1);

/// Slots for computations, and a bounded queue for them.
pub(super) struct Places {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
}

/// A request waiting for a slot.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Places {
    pub(super) fn new(places: usize, queue: usize) -> Places {
        Places {
            places: Arc::new(Semaphore::new(places.max(1))),
            waiting: Arc::default(),
            queue,
        }
    }

    /// Joins the queue unless it is full; the returned future waits for a slot.
    pub(super) fn enter(
        &self,
    ) -> Result<impl Future<Output = Result<OwnedSemaphorePermit, Problem>> + use<>, Problem> {
        let places = self.places.clone();
        let free = places.clone().try_acquire_owned().ok();
        let waiting = match free {
            Some(_) => None,
            None => Some(self.queue_up()?),
        };
        Ok(async move {
            let _waiting = waiting;
            let place = match free {
                Some(place) => Ok(place),
                None => places.acquire_owned().await,
            };
            place.map_err(|_| Problem::unavailable("the server is shutting down"))
        })
    }

    fn queue_up(&self) -> Result<Waiting, Problem> {
        let waiting = Waiting(self.waiting.clone());
        match waiting.0.fetch_add(1, Relaxed) < self.queue {
            true => Ok(waiting),
            false => Err(Problem::too_many("the queue is full: try again", FULL)),
        }
    }

    /// Closes the queue.
    pub(super) fn close(&self) {
        self.places.close();
    }

    /// Returns the number of waiting requests.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

/// Runs `work` on a separate thread once it has this slot and as long as someone listens to its
/// messages. If it fails, the problem is the last message.
pub(super) fn run_in_turn<T: Send + 'static>(
    place: impl Future<Output = Result<OwnedSemaphorePermit, Problem>> + Send + 'static,
    messages: mpsc::Sender<T>,
    failed: fn(Problem) -> T,
    work: impl FnOnce(&mpsc::Sender<T>) -> Result<(), Problem> + Send + 'static,
) {
    tokio::spawn(async move {
        let place = tokio::select! {
            place = place => place,
            () = messages.closed() => return,
        };
        let last_word = messages.clone();
        let worked = tokio::task::spawn_blocking(move || {
            let _place = place?;
            work(&messages)
        });
        if let Err(problem) = worked.await.unwrap_or_else(|_| Err(Problem::mistake())) {
            let _ = last_word.send(failed(problem)).await;
        }
    });
}

/// A player's progress reports, and its result.
pub(super) enum Event {
    Report(Report),
    Answer(Result<Answer, Problem>),
}

/// A choice, with notes.
pub(super) struct Answer {
    pub(super) choice: Choice,
    pub(super) notes: Vec<String>,
}

/// The idle players, and the total number of players.
pub(super) struct Players {
    idle: Mutex<Vec<Seat>>,
    made: AtomicUsize,
    most: usize,
    pub(super) places: Places,
    backends: Backends,
}

/// A player, and the game that its tree belongs to.
struct Seat {
    player: Player<Backends>,
    setup: Setup,
    client: Option<Client>,
    game: Game,
    used: Instant,
}

impl Seat {
    /// Returns whether the player's tree belongs to this game, which may have continued or had
    /// moves taken back.
    fn knows(&self, client: &Client, question: &Question) -> bool {
        let (known, asked) = (self.game.plies(), question.game.plies());
        let (settings, wanted) = (&self.setup.settings, &question.settings);
        self.client.as_ref() == Some(client)
            && settings.agent == wanted.agent
            && settings.backend == wanted.backend
            && known.iter().zip(asked).all(|(a, b)| a.key == b.key)
    }
}

impl Players {
    pub(super) fn new(limits: &Limits, backends: Backends) -> Players {
        Players {
            idle: Mutex::default(),
            made: AtomicUsize::new(0),
            most: limits.trees.max(limits.parallel),
            places: Places::new(limits.parallel, limits.queue),
            backends,
        }
    }

    /// Returns the number of trees.
    pub(super) fn trees(&self) -> usize {
        self.made.load(Relaxed)
    }

    /// Returns the player whose tree belongs to this client's game; failing that, a new player or,
    /// if there are enough players, the one that has been idle longest.
    fn take(&self, client: &Client, question: &Question) -> Seat {
        let mut idle = self.idle.lock();
        let known = idle.iter().position(|seat| seat.knows(client, question));
        if let Some(place) = known {
            return idle.swap_remove(place);
        }
        let oldest = (0..idle.len()).min_by_key(|&place| idle[place].used);
        let seat = match oldest.filter(|_| self.made.load(Relaxed) >= self.most) {
            Some(place) => {
                let mut seat = idle.swap_remove(place);
                seat.setup.game += 1;
                seat
            }
            None => {
                self.made.fetch_add(1, Relaxed);
                Seat {
                    player: Player::new(self.backends.clone()),
                    setup: Setup::default(),
                    client: None,
                    game: Game::default(),
                    used: Instant::now(),
                }
            }
        };
        Seat {
            client: Some(client.clone()),
            ..seat
        }
    }

    /// Runs a player on its own thread, once a slot is available and as long as the client listens.
    /// Its events arrive on the channel, and the result comes last.
    pub(super) fn ask(
        self: &Arc<Self>,
        client: Client,
        question: Question,
        control: Arc<Control>,
    ) -> Result<mpsc::Receiver<Event>, Problem> {
        let place = self.places.enter()?;
        let (events, heard) = mpsc::channel(PENDING);
        let players = self.clone();
        let failed = |problem| Event::Answer(Err(problem));
        run_in_turn(place, events, failed, move |events| {
            let answer = players.think(&client, question, &control, events)?;
            // The channel reserves a slot for the answer.
            let _ = events.try_send(Event::Answer(Ok(answer)));
            Ok(())
        });
        Ok(heard)
    }

    fn think(
        &self,
        client: &Client,
        question: Question,
        control: &Control,
        events: &mpsc::Sender<Event>,
    ) -> Result<Answer, Problem> {
        let mut seat = self.take(client, &question);
        seat.setup.settings = question.settings;
        seat.game = question.game;
        let mut hearer = Hearer {
            events,
            notes: Vec::new(),
        };
        let request = Request {
            setup: &seat.setup,
            game: &seat.game,
            limits: &question.limits,
            received: Instant::now(),
        };
        let player = &mut seat.player;
        let answer = catch_unwind(AssertUnwindSafe(|| {
            player.answer(&request, control, &mut hearer)
        }));
        let notes = hearer.notes;
        let answer = match answer {
            Ok(Ok(choice)) => Ok(Answer { choice, notes }),
            Ok(Err(PlayerError::Load(error))) => Err(Problem::internal(one_line(&error))),
            Ok(Err(PlayerError::Agent(error))) => Err(refused(&error)),
            Err(panic) => {
                seat.player.reset();
                let message = panics::message(panic.as_ref());
                tracing::error!("a player panicked: {message}");
                Err(Problem::mistake())
            }
        };
        seat.used = Instant::now();
        self.idle.lock().push(seat);
        answer
    }
}

/// Returns the problem for an agent's error.
fn refused(error: &AgentError) -> Problem {
    let AgentError::Backend(error) = error;
    match error {
        BackendError::NoValue(network) => {
            let detail = format!(
                "the network {network} has no value head: choose the agent `policy` or `human`"
            );
            Problem::field("agent", detail)
        }
        BackendError::NoImagination(_) => Problem::field("agent", one_line(error)),
        error => backend_problem(error),
    }
}

/// Returns the problem for a backend's error.
pub(super) fn backend_problem(error: &BackendError) -> Problem {
    match error {
        // The position is at fault, and the message explains why.
        BackendError::Unencodable(error) => Problem::field("fen", one_line(error)),
        error => {
            tracing::error!("{}", one_line(error));
            Problem::internal(one_line(error))
        }
    }
}

/// Forwards a player's reports. A slow reader misses reports but never delays the player.
struct Hearer<'a> {
    events: &'a mpsc::Sender<Event>,
    notes: Vec<String>,
}

impl Listener for Hearer<'_> {
    fn note(&mut self, text: &str) {
        tracing::info!("{text}");
        self.notes.push(text.to_owned());
    }

    fn problem(&mut self, text: &str) {
        tracing::warn!("{text}");
        self.notes.push(text.to_owned());
    }

    fn begin(&mut self, _: &PlayerSettings) {}

    fn report(&mut self, report: &Report) {
        if self.events.capacity() > 1 {
            let _ = self.events.try_send(Event::Report(report.clone()));
        }
    }
}
