//! The session's requests to the worker.

use super::settings::Settings;
use crate::chess::Game;
use crate::play::{Control, Limits};
use crate::player::Setup;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Instant;

/// A job with everything that it depends on, so that later commands cannot affect it.
pub(crate) struct Job {
    pub task: Arc<Task>,
    pub work: Work,
}

pub(crate) enum Work {
    /// Load the network of `setup`, for `isready`.
    Ready(Box<Setup>),
    /// Choose a move, for `go`.
    Search(Box<SearchJob>),
    /// Count leaves, for `go perft`.
    Perft { game: Arc<Game>, depth: u32 },
}

/// A `go`, with everything that it depends on.
pub(crate) struct SearchJob {
    pub setup: Setup,
    /// The settings of the player, and the format of its messages.
    pub settings: Settings,
    pub game: Arc<Game>,
    pub limits: Limits,
    /// The option values that were refused and not replaced by valid ones since.
    pub refused: Vec<String>,
    /// When `go` arrived and the clock started.
    pub received: Instant,
}

/// The session's handle to a job.
pub(crate) struct Task {
    pub kind: Kind,
    pub control: Control,
    progress: Mutex<Progress>,
    changed: Condvar,
}

pub(crate) enum Kind {
    Ready,
    Search {
        /// Whether the search waits for `ponderhit`.
        ponders: bool,
        /// Whether the search ends by itself once it no longer waits for `ponderhit`.
        limited: bool,
    },
    Perft,
}

/// The worker's progress.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Other tasks come first, or the task's network is loading.
    Waiting,
    /// A player is searching.
    Searching,
    Finished,
}

impl Task {
    pub(crate) fn new(kind: Kind) -> Arc<Task> {
        Arc::new(Task {
            kind,
            control: Control::default(),
            progress: Mutex::new(Progress::Waiting),
            changed: Condvar::new(),
        })
    }

    /// Returns whether the task may never end.
    pub(crate) fn is_endless(&self) -> bool {
        match self.kind {
            Kind::Ready | Kind::Perft => false,
            Kind::Search { ponders, limited } => {
                !limited || ponders && self.control.ponder_hit_at().is_none()
            }
        }
    }

    /// Marks the search as loaded.
    pub(crate) fn begin(&self) {
        self.proceed(Progress::Searching);
    }

    pub(crate) fn finish(&self) {
        self.proceed(Progress::Finished);
    }

    fn proceed(&self, progress: Progress) {
        *self.progress.lock() = progress;
        self.changed.notify_all();
    }

    pub(crate) fn is_finished(&self) -> bool {
        *self.progress.lock() == Progress::Finished
    }

    /// Blocks until the task is finished.
    pub(crate) fn wait(&self) {
        let mut progress = self.progress.lock();
        while *progress < Progress::Finished {
            self.changed.wait(&mut progress);
        }
    }

    /// Blocks until the task is finished or `deadline` has passed; returns whether it is finished.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        self.wait_for(Progress::Finished, deadline)
    }

    /// Blocks until the search's network has been loaded or failed to load, or `deadline` has
    /// passed; returns whether loading is over.
    pub(crate) fn wait_for_loading(&self, deadline: Instant) -> bool {
        self.wait_for(Progress::Searching, deadline)
    }

    fn wait_for(&self, wanted: Progress, deadline: Instant) -> bool {
        let mut progress = self.progress.lock();
        while *progress < wanted {
            if self.changed.wait_until(&mut progress, deadline).timed_out() {
                return *progress >= wanted;
            }
        }
        true
    }
}
