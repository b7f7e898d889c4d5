//! Registers the engine, waits for requests and answers them.

use super::client::LichessClient;
use super::protocol::{Job, NAME, Registration, Work};
use super::{Lichess, LichessError};
use crate::error_report::{one_line, tell};
use crate::play::Control;
use crate::serve::access::Client;
use crate::serve::players::Event;
use crate::serve::problem::Problem;
use crate::serve::state::{AppState, StopOnDrop};
use crate::uci::info_lines;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The first pause after a failure; each further pause is twice as long, …
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// … up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Number of reports that wait to be sent; any further ones are dropped, except for the last.
const PENDING: usize = 8;

/// Serves Lichess until the future is dropped, which stops the analyses, or until Lichess rejects
/// the registration.
pub(in crate::serve) async fn provide(
    state: &Arc<AppState>,
    client: LichessClient,
    account: &Lichess,
) -> LichessError {
    let registration = Registration::new(&state.config);
    let register = || client.register(&registration);
    if let Err(error) = repeat(register, LichessError::is_passing).await {
        return error;
    }
    tell(format_args!(
        "on Lichess as {NAME}: choose it as the engine at {}/analysis",
        account.site
    ));
    let secret = &registration.provider_secret;
    let mut analyses = Analyses {
        state: state.clone(),
        client: client.clone(),
        running: HashMap::new(),
    };
    loop {
        match repeat(|| client.acquire(secret), |_| true).await {
            Ok(Some(job)) => analyses.begin(job),
            Ok(None) => {}
            Err(error) => return error,
        }
    }
}

/// Repeats an attempt with exponential backoff as long as its failures are temporary.
async fn repeat<T>(
    mut attempt: impl AsyncFnMut() -> Result<T, LichessError>,
    may_pass: impl Fn(&LichessError) -> bool,
) -> Result<T, LichessError> {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let error = match attempt().await {
            Err(error) if may_pass(&error) => error,
            done => return done,
        };
        let message = one_line(&error);
        // Only the first failure is news; later ones repeat it.
        match pause == SHORTEST_PAUSE {
            true => tracing::warn!("{message}; trying again"),
            false => tracing::info!("{message}; trying again"),
        }
        sleep(error.pause(pause)).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// The running analyses, by session.
struct Analyses {
    state: Arc<AppState>,
    client: LichessClient,
    running: HashMap<String, Analysis>,
}

/// A running analysis, which stops when dropped.
struct Analysis {
    stop: StopOnDrop,
    thinking: JoinHandle<()>,
}

impl Analyses {
    /// Answers a request, replacing an earlier one from the same session.
    fn begin(&mut self, job: Job) {
        let Job { id, work } = job;
        tracing::info!("Lichess asks for {id} in session {}", work.session_id);
        self.running
            .retain(|_, analysis| !analysis.thinking.is_finished());
        let session = work.session_id.clone();
        let previous = self.running.remove(&session);
        let (control, stop) = self.state.control();
        let (lines, body) = mpsc::channel(PENDING);
        let thinking = tokio::spawn({
            let (state, control) = (self.state.clone(), control.clone());
            async move {
                if let Some(Analysis { stop, thinking }) = previous {
                    drop(stop);
                    // Waiting ensures that the tree has been returned.
                    let _ = thinking.await;
                }
                if let Err(problem) = think(&state, work, control, lines).await {
                    tracing::warn!("an analysis for Lichess failed: {}", problem.detail);
                }
            }
        });
        let client = self.client.clone();
        tokio::spawn(async move {
            if let Err(error) = client.submit(&id, body).await {
                tracing::info!("{id}: {}", one_line(&error));
            }
            // The user has left or has received the whole analysis.
            control.stop();
        });
        self.running.insert(session, Analysis { stop, thinking });
    }
}

/// Runs an analysis and forwards the lines of each report.
async fn think(
    state: &AppState,
    work: Work,
    control: Arc<Control>,
    lines: mpsc::Sender<String>,
) -> Result<(), Problem> {
    let mut question = work.question(&state.config)?;
    state.networks()?.choose(None, &mut question.settings)?;
    let game = question.game.clone();
    let client = Client::Lichess(work.session_id);
    let mut events = state.players.ask(client, question, control)?;
    // Receive all events even if nobody listens, because the tree is returned at the end.
    while let Some(event) = events.recv().await {
        let (report, is_last) = match event {
            Event::Report(report) => (report, false),
            Event::Answer(answer) => (answer?.choice.report, true),
        };
        if is_last {
            state.metrics.nodes.inc_by(report.new_nodes);
        }
        // One slot is kept free for the last report.
        if is_last || lines.capacity() > 1 {
            let _ = lines.try_send(info_lines(&report, &game));
        }
    }
    Ok(())
}
