//! A review from a game to its report: scores, people's moves, and what is stored of them.

use super::analysis::{Analyst, Found, Searched};
use super::cache::{Analysis, Store};
use super::judge::Judge;
use super::key::{Key, NetworkIdentity, ScoredBy, digest};
use super::people::{self, Shares};
use super::report::Report;
use super::reporter::{Setting, report};
use super::source::Source;
use crate::backend::{Backend, BackendError};
use crate::error_report::one_line;
use crate::inference::LoadError;
use crate::play::{AgentError, Control};
use parking_lot::Mutex;
use shakmaty::{Color, Position};
use std::sync::{Arc, OnceLock};

/// A loaded network.
#[derive(Clone)]
pub struct LoadedNetwork {
    /// The network as a backend.
    pub backend: Arc<dyn Backend>,
    /// Its identity in stored results.
    pub identity: NetworkIdentity,
}

impl LoadedNetwork {
    fn name(&self) -> String {
        self.backend.properties().name.clone()
    }
}

/// Tessera's own search.
#[derive(Clone)]
pub struct OwnSearch {
    /// The network that searches.
    pub network: LoadedNetwork,
    /// Nodes for each position.
    pub nodes: u64,
    /// Number of threads that evaluate.
    pub threads: usize,
}

/// Scores that came with the games, found by an engine elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct SentScores {
    /// The engine's name.
    pub engine: String,
    /// Its nodes for each position.
    pub nodes: u64,
}

/// News of a review in progress.
pub enum News<'a> {
    /// The score of a position is known, or known better than before.
    Position(ScoredPosition<'a>),
    /// The model of human play has predicted the moves of this many positions.
    People(usize),
    /// Something that the user should know, in one line.
    Note(&'a str),
}

/// A position whose score is known.
#[derive(Clone, Copy, Debug)]
pub struct ScoredPosition<'a> {
    /// The number of plies played before it.
    pub place: usize,
    /// The score.
    pub searched: &'a Searched,
    /// The number of nodes that Tessera's own search spent on it.
    pub nodes: u64,
    /// Number of positions of the game with a score so far.
    pub known: usize,
}

/// Why a review failed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// A network cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A network cannot evaluate a position.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl From<AgentError> for ReviewError {
    fn from(AgentError::Backend(error): AgentError) -> ReviewError {
        ReviewError::Backend(error)
    }
}

/// Reviews games with the same settings.
pub struct Session<'a> {
    /// The judge; without one, Tessera's own search scores the games.
    pub judge: Option<&'a Judge>,
    /// The failure of the judge, after which it is not asked again.
    pub judge_failure: &'a OnceLock<String>,
    /// Loads Tessera's own search. Called once for each game that no judge scores.
    pub own: &'a (dyn Fn() -> Result<OwnSearch, LoadError> + Sync),
    /// The network that predicts people's moves.
    pub people: Option<LoadedNetwork>,
    /// Earlier results.
    pub store: &'a dyn Store,
    /// Stops the searches.
    pub control: Arc<Control>,
    /// The rating to which words refer; by default the player's.
    pub elo: Option<u16>,
    /// Receives the news.
    pub hear: &'a (dyn Fn(News<'_>) + Sync),
}

/// A game with scores, its key, and what the report says of their origin.
struct Scored {
    analysis: Analysis,
    key: Key,
    /// The stored results.
    stored: Option<Analysis>,
    setting: Setting,
    /// Whether the scores are worth storing.
    is_whole: bool,
}

impl Session<'_> {
    /// Returns the report of a game before its review, in which only the moves are known.
    ///
    /// # Errors
    /// [`ReviewError`] if Tessera's own search is needed and cannot be loaded.
    pub fn outline(
        &self,
        source: &Source,
        side: Option<Color>,
        sent: Option<&SentScores>,
    ) -> Result<Report, ReviewError> {
        let mut setting = match (sent, self.usable_judge()) {
            (Some(sent), _) => self.judge_setting(&sent.engine, sent.nodes),
            (None, Some(judge)) => self.judge_setting(&judge.name, judge.nodes),
            (None, None) => self.own_setting(&(self.own)()?),
        };
        setting.side = side;
        Ok(super::reporter::outline(source, &setting))
    }

    /// Reviews a game with the moves of this side, or of both. `sent` has a score for each position
    /// of the game if the client has sent scores, and `None` for unknown ones.
    ///
    /// # Errors
    /// [`ReviewError`] if a network fails. A failing judge is not an error: the session says so and
    /// uses Tessera's own search.
    pub fn review(
        &self,
        source: &Source,
        side: Option<Color>,
        sent: Option<(&SentScores, &[Option<Searched>])>,
    ) -> Result<Report, ReviewError> {
        let hearing = Hearing::new(source, self.hear);
        let mut scored = match sent {
            Some((by, scores)) => self.as_sent(source, by, scores),
            None => match self.by_judge(source, &hearing) {
                Some(scored) => scored,
                None => self.by_own_search(source, &hearing)?,
            },
        };
        scored.setting.side = side;
        let asked = self.ask_people(source, &mut scored.analysis);
        self.keep(&scored);
        asked?;
        Ok(report(source, &scored.analysis, &scored.setting))
    }

    fn usable_judge(&self) -> Option<&Judge> {
        self.judge.filter(|_| self.judge_failure.get().is_none())
    }

    fn key(&self, source: &Source, scores: ScoredBy) -> Key {
        let people = self.people.as_ref().map(|people| people.identity.clone());
        Key::new(&source.game, scores, people)
    }

    fn setting(&self) -> Setting {
        Setting {
            people: self.people.as_ref().map(LoadedNetwork::name),
            elo: self.elo,
            ..Setting::default()
        }
    }

    fn judge_setting(&self, name: &str, nodes: u64) -> Setting {
        Setting {
            judge: Some(name.to_owned()),
            nodes,
            ..self.setting()
        }
    }

    fn own_setting(&self, own: &OwnSearch) -> Setting {
        Setting {
            network: Some(own.network.name()),
            nodes: own.nodes,
            judge_failure: self.judge_failure.get().cloned(),
            ..self.setting()
        }
    }

    /// Returns the stored results of a game, or none.
    fn load(&self, source: &Source, key: &Key) -> (Option<Analysis>, Analysis) {
        let stored = self.store.load(key).filter(|it| it.fits(&source.game));
        let analysis = stored.clone();
        (
            stored,
            analysis.unwrap_or_else(|| Analysis::new(&source.game)),
        )
    }

    fn as_sent(&self, source: &Source, by: &SentScores, scores: &[Option<Searched>]) -> Scored {
        let key = self.key(
            source,
            ScoredBy::Sent {
                engine: by.engine.clone(),
                digest: digest(&scores),
            },
        );
        let (stored, mut analysis) = self.load(source, &key);
        analysis.searched = scores.to_vec();
        Scored {
            analysis,
            key,
            stored,
            setting: self.judge_setting(&by.engine, by.nodes),
            is_whole: true,
        }
    }

    /// Returns the judge's scores, or `None` if there is no judge or if it fails.
    fn by_judge(&self, source: &Source, hearing: &Hearing<'_>) -> Option<Scored> {
        let judge = self.usable_judge()?;
        let key = self.key(
            source,
            ScoredBy::Judge {
                name: judge.name.clone(),
                nodes: judge.nodes,
            },
        );
        let (stored, mut analysis) = self.load(source, &key);
        hearing.known(&analysis);
        if stored.is_none() {
            let hear = |found: Found<'_>| hearing.hear(found);
            match judge.analyse(&source.game, &self.control, &hear) {
                Ok(searched) => analysis.searched = searched,
                Err(error) => {
                    let line = format!("The judge failed: {}.", one_line(&error));
                    (self.hear)(News::Note(&line));
                    let _ = self.judge_failure.set(line);
                    return None;
                }
            }
        }
        Some(Scored {
            analysis,
            key,
            stored,
            setting: self.judge_setting(&judge.name, judge.nodes),
            is_whole: !self.control.stopped(),
        })
    }

    fn by_own_search(&self, source: &Source, hearing: &Hearing<'_>) -> Result<Scored, ReviewError> {
        let own = (self.own)()?;
        let key = self.key(
            source,
            ScoredBy::Network {
                network: own.network.identity.clone(),
                nodes: own.nodes,
            },
        );
        let (stored, analysis) = self.load(source, &key);
        hearing.known(&analysis);
        let backend = &own.network.backend;
        let analyst = Analyst {
            backend: Arc::clone(backend),
            nodes: own.nodes,
            workers: Analyst::workers(&**backend, own.threads),
            control: Arc::clone(&self.control),
        };
        let mut scored = Scored {
            analysis,
            key,
            stored,
            setting: self.own_setting(&own),
            is_whole: true,
        };
        let searched = &mut scored.analysis.searched;
        let hear = |found: Found<'_>| hearing.hear(found);
        let outcome = analyst.analyse(&source.game, searched, &hear);
        if outcome.is_err() {
            self.keep(&scored);
        }
        outcome?;
        Ok(scored)
    }

    fn ask_people(&self, source: &Source, analysis: &mut Analysis) -> Result<(), BackendError> {
        let Some(people) = &self.people else {
            return Ok(());
        };
        ask_people(&*people.backend, source, analysis, &mut |asked| {
            (self.hear)(News::People(asked));
            !self.control.stopped()
        })
    }

    fn keep(&self, scored: &Scored) {
        if !scored.is_whole || scored.stored.as_ref() == Some(&scored.analysis) {
            return;
        }
        // A failure to store the results must not lose the review itself.
        if let Err(error) = self.store.store(&scored.key, &scored.analysis) {
            let line = format!("the results are not stored: {error}");
            (self.hear)(News::Note(&line));
        }
    }
}

/// Asks the network what share of the players of each rating plays the move that was played, and
/// what share plays the best move, in each position of a game that `analysis` does not cover yet.
/// `go_on` is called before each move and can stop the loop early.
///
/// # Errors
/// [`BackendError`] if the network fails.
fn ask_people(
    backend: &dyn Backend,
    source: &Source,
    analysis: &mut Analysis,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<(), BackendError> {
    for (ply, mv) in source.moves().into_iter().enumerate() {
        if !go_on(ply) {
            break;
        }
        let before = source.before(ply);
        let best = analysis.searched[ply].as_ref();
        let best = best.and_then(|searched| searched.moves(&before).first().copied());
        let is_known = analysis.people[ply].is_some_and(|it| it.best.is_some() || best.is_none());
        if is_known || before.position().legal_moves().is_empty() {
            continue;
        }
        let moves: Vec<_> = [mv].into_iter().chain(best).collect();
        let curves = people::shares(backend, &before, &moves)?;
        analysis.people[ply] = Some(Shares {
            played: curves[0],
            best: curves.get(1).copied(),
        });
    }
    Ok(())
}

/// Reports scored positions in the order of their count.
struct Hearing<'a> {
    /// Whether the score of each position is known.
    known: Mutex<Vec<bool>>,
    hear: &'a (dyn Fn(News<'_>) + Sync),
}

impl<'a> Hearing<'a> {
    fn new(source: &Source, hear: &'a (dyn Fn(News<'_>) + Sync)) -> Hearing<'a> {
        Hearing {
            known: Mutex::new(vec![false; source.game.plies().len()]),
            hear,
        }
    }

    fn hear(&self, found: Found<'_>) {
        let mut known = self.known.lock();
        known[found.place] = true;
        (self.hear)(News::Position(ScoredPosition {
            place: found.place,
            searched: found.searched,
            nodes: found.nodes,
            known: known.iter().filter(|&&it| it).count(),
        }));
    }

    /// Reports stored scores.
    fn known(&self, analysis: &Analysis) {
        for (place, searched) in analysis.searched.iter().enumerate() {
            if let Some(searched) = searched {
                self.hear(Found {
                    place,
                    searched,
                    nodes: 0,
                });
            }
        }
    }
}
