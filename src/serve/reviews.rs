//! Game reviews, one at a time, because each uses all CPUs. The results of recently reviewed games
//! are kept, so that no second search is needed to review the same game in another form or to
//! finish an interrupted review.

use super::networks::Loaded;
use super::players::{Places, backend_problem};
use super::problem::Problem;
use super::request::Reviewing;
use crate::backend::BackendError;
use crate::chess::{Game, fen};
use crate::error_report::one_line;
use crate::play::{AgentError, Control};
use crate::review::curve::Evaluation;
use crate::review::report::Report;
use crate::review::{
    Analysis, Analyst, Found, Setting, Source, Summary, annotated_pgn, ask_people, outline, report,
    summary,
};
use parking_lot::Mutex;
use serde::Serialize;
use shakmaty::{CastlingMode, Color, Move, Position};
use std::collections::VecDeque;
use std::sync::Arc;
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

/// A searched position.
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
    /// Number of positions of the game searched so far.
    searched: usize,
    /// Number of positions of the game to search.
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

/// A progress report of a review.
pub(super) enum Told {
    Game(BegunGame),
    Ply(SearchedPly),
    People(AskedPeople),
    Review(ReviewedGame),
    Summary(Summary),
}

/// The slot for reviews, and the results of earlier ones.
pub(super) struct Reviews {
    pub(super) places: Places,
    kept: Mutex<VecDeque<(Key, Analysis)>>,
}

/// Everything that the results of a game depend on.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    start: String,
    mode: CastlingMode,
    moves: Vec<Move>,
    network: String,
    nodes: u64,
}

impl Reviews {
    pub(super) fn new(queue: usize) -> Reviews {
        Reviews {
            places: Places::new(1, queue),
            kept: Mutex::default(),
        }
    }

    /// Returns the stored results of a game.
    fn recall(&self, key: &Key, game: &Game) -> Analysis {
        let kept = self.kept.lock();
        let known = kept.iter().find(|(other, _)| other == key);
        known.map_or_else(|| Analysis::new(game), |(_, analysis)| analysis.clone())
    }

    /// Stores the results of a game and evicts the oldest games.
    fn keep(&self, key: Key, analysis: Analysis) {
        let mut kept = self.kept.lock();
        kept.retain(|(other, _)| *other != key);
        kept.push_front((key, analysis));
        let mut positions = 0;
        kept.retain(|(_, analysis)| {
            positions += analysis.searched.len();
            positions <= KEPT
        });
    }
}

/// Reviews games and reports the results.
pub(super) struct Reviewer<'a> {
    pub(super) reviews: &'a Reviews,
    pub(super) main: &'a Loaded,
    pub(super) human: Option<&'a Loaded>,
    /// Number of evaluation threads.
    pub(super) threads: usize,
    pub(super) control: Arc<Control>,
    /// Receives every report; returns whether to continue.
    pub(super) tell: &'a (dyn Fn(Told) -> bool + Sync),
    /// Counts the nodes of a search.
    pub(super) count_nodes: &'a (dyn Fn(u64) + Sync),
}

impl Reviewer<'_> {
    /// Reviews the games in order. Stops early, without a report, if the client has disconnected.
    pub(super) fn review_all(&self, task: &Reviewing) -> Result<(), Problem> {
        let mut reports = Vec::new();
        for (number, (source, side)) in (1..).zip(&task.games) {
            let setting = Setting {
                network: name(self.main),
                people: self.human.map(name),
                nodes: task.nodes,
                elo: task.elo,
                side: *side,
            };
            let outline = outline(source, &setting);
            let begun = BegunGame {
                number,
                games: task.games.len(),
                report: outline,
            };
            if !(self.tell)(Told::Game(begun)) {
                return Ok(());
            }
            let analysis = self.analyse(number, source, task.nodes)?;
            let report = report(source, &analysis, &setting);
            reports.push((None, report.clone().without_lines()));
            let reviewed = ReviewedGame {
                number,
                pgn: annotated_pgn(source, &report),
                report,
            };
            if !(self.tell)(Told::Review(reviewed)) {
                return Ok(());
            }
        }
        let summary = summary(task.player.clone(), &reports, task.unreadable.clone());
        (self.tell)(Told::Summary(summary));
        Ok(())
    }

    /// Returns the analysis of a game after searching the positions that have not been searched
    /// yet.
    fn analyse(&self, number: usize, source: &Source, nodes: u64) -> Result<Analysis, Problem> {
        let key = key(source, &name(self.main), nodes);
        let mut analysis = self.reviews.recall(&key, &source.game);
        let progress = Progress::new(number, &source.game, self.tell);
        for (place, searched) in analysis.searched.iter().enumerate() {
            if let Some(searched) = searched {
                progress.tell(place, searched.for_white(progress.turn(place)));
            }
        }
        let backend = &self.main.backend;
        let analyst = Analyst {
            backend: Arc::clone(backend),
            nodes,
            workers: Analyst::workers(&**backend, self.threads),
            control: Arc::clone(&self.control),
        };
        let hear = |found: Found<'_>| {
            (self.count_nodes)(found.nodes);
            let score = found.searched.for_white(progress.turn(found.place));
            progress.tell(found.place, score);
        };
        let searched = analyst.analyse(&source.game, &mut analysis.searched, &hear);
        let asked = match (&searched, self.human) {
            (Ok(()), Some(human)) => self.ask(number, human, source, &mut analysis),
            _ => Ok(()),
        };
        self.reviews.keep(key, analysis.clone());
        let failed = searched.map_err(|AgentError::Backend(error)| error);
        failed.and(asked).map_err(|error| refused(&error))?;
        Ok(analysis)
    }

    fn ask(
        &self,
        game: usize,
        human: &Loaded,
        source: &Source,
        analysis: &mut Analysis,
    ) -> Result<(), BackendError> {
        let moves = source.game.plies().len() - 1;
        ask_people(&*human.backend, source, analysis, &mut |asked| {
            let people = AskedPeople { game, asked, moves };
            !self.control.stopped() && (self.tell)(Told::People(people))
        })
    }
}

/// Reports the progress of searches, in the order of their count.
struct Progress<'a> {
    number: usize,
    game: &'a Game,
    searched: Mutex<usize>,
    positions: usize,
    tell: &'a (dyn Fn(Told) -> bool + Sync),
}

impl<'a> Progress<'a> {
    fn new(number: usize, game: &'a Game, tell: &'a (dyn Fn(Told) -> bool + Sync)) -> Progress<'a> {
        let plies = game.plies().iter();
        let open = plies.filter(|ply| !ply.position.legal_moves().is_empty());
        Progress {
            number,
            game,
            searched: Mutex::new(0),
            positions: open.count(),
            tell,
        }
    }

    fn turn(&self, place: usize) -> Color {
        self.game.plies()[place].position.turn()
    }

    fn tell(&self, place: usize, (evaluation, win): (Evaluation, f64)) {
        let mut searched = self.searched.lock();
        *searched += 1;
        (self.tell)(Told::Ply(SearchedPly {
            game: self.number,
            ply: place,
            win,
            evaluation,
            searched: *searched,
            positions: self.positions,
        }));
    }
}

fn name(network: &Loaded) -> String {
    network.backend.properties().name.clone()
}

fn key(source: &Source, network: &str, nodes: u64) -> Key {
    let start = &source.game.plies()[0].position;
    Key {
        start: fen(start),
        mode: source.game.mode(),
        moves: source.moves(),
        network: network.to_owned(),
        nodes,
    }
}

/// Returns the problem for a game that cannot be evaluated.
fn refused(error: &BackendError) -> Problem {
    match error {
        BackendError::Unencodable(error) => Problem::field("pgn", one_line(error)),
        error => backend_problem(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(moves: &str) -> Source {
        Source::read(moves.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn games_of_long_ago_are_forgotten() {
        let reviews = Reviews::new(1);
        let first = source("1. e4 e5 *");
        let known = |nodes| reviews.recall(&key(&first, "a", nodes), &first.game);
        let mut analysis = Analysis::new(&first.game);
        let marked = |analysis: &Analysis| analysis.people[0].is_some();
        analysis.people[0] = Some(crate::review::people::Shares {
            played: [0.5; 11],
            best: None,
        });
        reviews.keep(key(&first, "a", 5), analysis.clone());
        assert!(marked(&known(5)) && !marked(&known(6)));
        assert!(!marked(&reviews.recall(&key(&first, "b", 5), &first.game)));
        let long = source(&"1. Nf3 Nf6 2. Ng1 Ng8 ".repeat(KEPT / 8));
        reviews.keep(key(&long, "a", 5), Analysis::new(&long.game));
        assert!(marked(&known(5)));
        reviews.keep(key(&long, "a", 6), Analysis::new(&long.game));
        assert!(!marked(&known(5)));
        assert_eq!(reviews.kept.lock().len(), 1);
    }
}
