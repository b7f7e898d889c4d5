//! Game reviews, one at a time, because each uses all CPUs. The results of recently reviewed games
//! are kept, so that no second search is needed to review the same game in another form or to
//! finish an interrupted review.

use super::networks::Loaded;
use super::players::{Places, backend_problem};
use super::problem::Problem;
use super::request::Reviewing;
use crate::backend::BackendError;
use crate::chess::Game;
use crate::error_report::one_line;
use crate::play::Control;
use crate::review::curve::Evaluation;
use crate::review::report::Report;
use crate::review::{
    Judge, News, OwnSearch, Recent, ReviewError, ScoredPosition, Session, Summary, annotated_pgn,
    summary,
};
use serde::Serialize;
use shakmaty::Position;
use std::sync::{Arc, OnceLock};
#[cfg(test)]
use utoipa::ToSchema;

/// Total positions of the games kept.
const KEPT: usize = 20_000;

/// A game whose review begins.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct BegunGame {
    /// Its number, from 1.
    number: usize,
    /// The number of games under review.
    games: usize,
    /// Its report, which contains only the moves at this point.
    report: Report,
}

/// A position whose score is known. A position that a judge searches again is reported again.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct SearchedPly {
    /// The game's number.
    game: usize,
    /// Number of plies played before the position.
    ply: usize,
    /// White's expected score in percent.
    win: f64,
    /// White's score.
    evaluation: Evaluation,
    /// Number of positions of the game with a score so far.
    searched: usize,
    /// Number of positions of the game that need a score.
    positions: usize,
}

/// Progress of the human-move model's predictions.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct AskedPeople {
    /// The game's number.
    game: usize,
    /// Moves evaluated so far.
    asked: usize,
    /// Moves to evaluate.
    moves: usize,
}

/// A reviewed game.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct ReviewedGame {
    /// Its number, from 1.
    number: usize,
    pub(super) report: Report,
    /// The game as PGN, with marks, scores, lines and comments.
    pub(super) pgn: String,
}

/// The end of a review.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct ReviewEnd {
    /// The games' summary, and the games that could not be read.
    pub(super) summary: Summary,
}

/// A line of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum ReviewUpdate {
    /// A game's review begins.
    Game(Box<BegunGame>),
    /// A position was searched, in no particular order.
    Ply(SearchedPly),
    /// The human-move model is evaluating moves.
    People(AskedPeople),
    /// A game's review.
    Review(Box<ReviewedGame>),
    /// The last line, after all games.
    Result(Box<ReviewEnd>),
    /// The reason why the review ends early; this is the last line.
    Error(Problem),
}

/// The slot for reviews, and the results of earlier ones.
pub(super) struct Reviews {
    pub(super) places: Places,
    recent: Recent,
}

impl Reviews {
    pub(super) fn new(queue: usize) -> Reviews {
        Reviews {
            places: Places::new(1, queue),
            recent: Recent::new(KEPT),
        }
    }
}

/// Reviews games and reports the results.
pub(super) struct Reviewer<'a> {
    pub(super) reviews: &'a Reviews,
    pub(super) judge: Option<&'a Judge>,
    pub(super) main: &'a Loaded,
    pub(super) human: Option<&'a Loaded>,
    /// Number of evaluation threads.
    pub(super) threads: usize,
    pub(super) control: Arc<Control>,
    /// Receives every report; returns whether to continue.
    pub(super) tell: &'a (dyn Fn(ReviewUpdate) -> bool + Sync),
    /// Counts the nodes of Tessera's own search.
    pub(super) count_nodes: &'a (dyn Fn(u64) + Sync),
}

impl Reviewer<'_> {
    /// Reviews the games in order. Stops early, without a report, if the client has disconnected.
    pub(super) fn review_all(&self, task: &Reviewing) -> Result<(), Problem> {
        let judge_failure = OnceLock::new();
        let mut reports = Vec::new();
        for (number, reviewed) in (1..).zip(&task.games) {
            let (source, side) = (&reviewed.source, reviewed.side);
            let hear = |news: News<'_>| self.hear(number, &source.game, &news);
            let own = || {
                Ok(OwnSearch {
                    network: self.main.identified(),
                    nodes: task.nodes,
                    threads: self.threads,
                })
            };
            let session = Session {
                judge: self.judge,
                judge_failure: &judge_failure,
                own: &own,
                people: self.human.map(|human| human.identified()),
                store: &self.reviews.recent,
                control: Arc::clone(&self.control),
                elo: task.elo,
                hear: &hear,
            };
            let sent = task.sent.as_ref();
            let outline = session.outline(source, side, sent);
            let begun = BegunGame {
                number,
                games: task.games.len(),
                report: outline.map_err(|error| refused(&error))?,
            };
            if !(self.tell)(ReviewUpdate::Game(Box::new(begun))) {
                return Ok(());
            }
            let sent = sent.zip(reviewed.scores.as_deref());
            let report = session.review(source, side, sent);
            let report = report.map_err(|error| refused(&error))?;
            reports.push((None, report.clone().without_lines()));
            let reviewed = ReviewedGame {
                number,
                pgn: annotated_pgn(source, &report),
                report,
            };
            if !(self.tell)(ReviewUpdate::Review(Box::new(reviewed))) {
                return Ok(());
            }
        }
        let summary = summary(task.player.clone(), &reports, task.unreadable.clone());
        (self.tell)(ReviewUpdate::Result(Box::new(ReviewEnd { summary })));
        Ok(())
    }

    fn hear(&self, number: usize, game: &Game, news: &News<'_>) {
        match news {
            News::Position(scored) => {
                (self.count_nodes)(scored.nodes);
                (self.tell)(ReviewUpdate::Ply(searched_ply(number, game, scored)));
            }
            News::People(asked) => {
                let people = AskedPeople {
                    game: number,
                    asked: *asked,
                    moves: game.plies().len() - 1,
                };
                (self.tell)(ReviewUpdate::People(people));
            }
            News::Note(line) => tracing::warn!("{line}"),
        }
    }
}

fn searched_ply(number: usize, game: &Game, scored: &ScoredPosition<'_>) -> SearchedPly {
    let plies = game.plies();
    let turn = plies[scored.place].position.turn();
    let (evaluation, win) = scored.searched.for_white(turn);
    let open = plies
        .iter()
        .filter(|ply| !ply.position.legal_moves().is_empty());
    SearchedPly {
        game: number,
        ply: scored.place,
        win,
        evaluation,
        searched: scored.known,
        positions: open.count(),
    }
}

/// Returns the problem for a game that cannot be evaluated.
fn refused(error: &ReviewError) -> Problem {
    match error {
        ReviewError::Backend(BackendError::Unencodable(error)) => {
            Problem::field("pgn", one_line(error))
        }
        ReviewError::Backend(error) => backend_problem(error),
        ReviewError::Load(error) => Problem::internal(one_line(error)),
    }
}
