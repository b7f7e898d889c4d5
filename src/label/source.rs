//! Provides the games and positions to label, as numbered jobs.

use super::SampledGames;
use crate::adjudication::Adjudication;
use crate::bounded::LARGEST_TEXT;
use crate::data::pgn::Games;
use crate::openings::{self, Openings};
use crate::packed::{self, is_stdin};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Number of bytes at the start of a file that determine whether it contains games or positions.
const START: usize = 1 << 16;

/// Where the games come from.
#[derive(Debug)]
pub enum GameSource {
    /// The engine plays the games against itself.
    Play(Play),
    /// Networks play the games by their policies, and the engine scores them.
    Sample(SampledGames),
    /// The games are read from files of PGN, FEN or EPD. In FEN and EPD files, every line is a game
    /// with a single position.
    Files {
        /// The files; they may be compressed as gzip, zstd or zip.
        paths: Vec<PathBuf>,
        /// Share of the positions in games to score, in 0…1.
        share: f64,
    },
}

/// The plan for games that the engine plays.
#[derive(Debug)]
pub struct Play {
    /// Number of games.
    pub games: u64,
    /// The games' openings.
    pub openings: Openings,
    /// Probability that a move is random instead of the engine's choice, in 0…1.
    pub random_moves: f64,
    /// When games end early.
    pub adjudication: Adjudication,
}

/// Why a file cannot be labelled.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct SourceError {
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl fmt::Display for GameSource {
    /// Summarises everything on which the games depend.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GameSource::Play(play) => {
                write!(formatter, "{}", play.openings)?;
                if play.random_moves > 0.0 {
                    write!(formatter, ", random moves {}", play.random_moves)?;
                }
                let mut rules = play.adjudication.rules().into_iter();
                rules.try_for_each(|rule| write!(formatter, ", {rule}"))
            }
            GameSource::Sample(games) => write!(formatter, "{games}"),
            GameSource::Files { paths, share } => {
                let names = paths.iter().map(|path| {
                    let name = path.file_name().unwrap_or(path.as_os_str());
                    name.to_string_lossy()
                });
                let names: Vec<_> = names.collect();
                write!(formatter, "of {}", names.join(", "))?;
                match *share {
                    1.0 => Ok(()),
                    share => write!(formatter, ", share {share}"),
                }
            }
        }
    }
}

/// A unit of work.
#[derive(Debug)]
pub(super) enum Job<'a> {
    /// Sample a game along with others, and then score it.
    Sample(&'a SampledGames),
    /// Label a subject with the engine.
    Label(Subject<'a>),
}

/// A game or position to be labelled.
#[derive(Debug)]
pub(super) enum Subject<'a> {
    /// A game to be played.
    Play(&'a Play),
    /// A line of FEN or EPD, and the name of its source.
    Position(Vec<u8>, String),
    /// A game in PGN, the share of its positions to score, and the name of its source.
    Game(Vec<u8>, f64, String),
}

pub(super) type Jobs<'a> =
    Box<dyn Iterator<Item = Result<(u64, Job<'a>), SourceError>> + Send + 'a>;

impl GameSource {
    /// Returns the number of games and positions, or `None` if they come through a pipe, which can
    /// be read only once.
    ///
    /// # Errors
    /// [`SourceError`] if a file cannot be read.
    pub fn count(&self) -> Result<Option<u64>, SourceError> {
        let paths = match self {
            GameSource::Play(play) => return Ok(Some(play.games)),
            GameSource::Sample(games) => return Ok(Some(games.games)),
            GameSource::Files { paths, .. } => paths,
        };
        let is_piped =
            |path: &PathBuf| is_stdin(path) || path.exists() && !path.is_file() && !path.is_dir();
        if paths.iter().any(is_piped) {
            return Ok(None);
        }
        let mut count = 0;
        for job in self.jobs()? {
            job?;
            count += 1;
        }
        Ok(Some(count))
    }

    /// Returns the jobs with their numbers, from 0.
    pub(super) fn jobs(&self) -> Result<Jobs<'_>, SourceError> {
        match self {
            GameSource::Play(play) => {
                let job = move || Job::Label(Subject::Play(play));
                Ok(Box::new(
                    (0..play.games).map(move |number| Ok((number, job()))),
                ))
            }
            GameSource::Sample(games) => {
                let job = move |number| Ok((number, Job::Sample(games)));
                Ok(Box::new((0..games.games).map(job)))
            }
            GameSource::Files { paths, share } => {
                // Only one file is open at a time.
                let jobs = paths.iter().flat_map(|path| {
                    of_file(path, *share)
                        .unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
                });
                let jobs = jobs.zip(0..);
                let job =
                    |(subject, number): (Result<_, _>, u64)| Ok((number, Job::Label(subject?)));
                Ok(Box::new(jobs.map(job)))
            }
        }
    }
}

type Subjects = Box<dyn Iterator<Item = Result<Subject<'static>, SourceError>> + Send>;

fn of_file(path: &Path, share: f64) -> Result<Subjects, SourceError> {
    let failed = {
        let path = path.to_owned();
        move |source| SourceError {
            path: path.clone(),
            source,
        }
    };
    let named = {
        let path = path.display().to_string();
        move |place: &dyn fmt::Display| format!("{path}, {place}")
    };
    // The games may be too large to be held in memory.
    let stream = openings::open(path).map_err(&failed)?;
    let (start, stream) = packed::peek(stream, START);
    if openings::is_pgn(&start) {
        return Ok(Box::new(Games::new(stream).map(move |game| {
            let game = game.map_err(&failed)?;
            let name = named(&game.place);
            Ok(Subject::Game(game.text, share, name))
        })));
    }
    let text = packed::read_all(stream, LARGEST_TEXT).map_err(&failed)?;
    let lines: Vec<Vec<u8>> = openings::positions(&text).map(<[u8]>::to_vec).collect();
    let lines = lines.into_iter().enumerate();
    Ok(Box::new(lines.map(move |(index, line)| {
        let name = named(&format_args!("position {}", index + 1));
        Ok(Subject::Position(line, name))
    })))
}
