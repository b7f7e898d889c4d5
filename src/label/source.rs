//! What there is to label, as numbered tasks.

use super::{Adjudication, SampledGames};
use crate::data::pgn::{Games, open};
use crate::openings::{self, Openings};
use std::fmt;
use std::io::{self, BufRead, Cursor};
use std::path::{Path, PathBuf};

/// Where the games come from.
#[derive(Debug)]
pub enum Source {
    /// The engine plays them against itself.
    Play(Play),
    /// Networks play them by their policies; the engine judges.
    Sample(SampledGames),
    /// They are there already: files of PGN, or of FEN or EPD, where every line
    /// is a game of one position.
    Files {
        /// The files; PGN may be compressed as gzip or zstd, both as zip too.
        paths: Vec<PathBuf>,
        /// Share of the positions of games that are judged, in 0…1.
        share: f64,
    },
}

/// Games to be played.
#[derive(Debug)]
pub struct Play {
    /// How many.
    pub games: u64,
    /// Where they begin.
    pub openings: Openings,
    /// Probability that a move is drawn from the legal ones instead of chosen,
    /// in 0…1.
    pub random_moves: f64,
    /// How they end.
    pub adjudication: Adjudication,
}

/// Why a file cannot be labelled.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct SourceError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

impl fmt::Display for Source {
    /// All that the games depend on, in a few words.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Play(play) => {
                write!(formatter, "{}", play.openings)?;
                if play.random_moves > 0.0 {
                    write!(formatter, ", random moves {}", play.random_moves)?;
                }
                write!(formatter, "{}", play.adjudication)
            }
            Source::Sample(games) => write!(formatter, "{games}"),
            Source::Files { paths, share } => {
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

/// What a worker is to do.
#[derive(Debug)]
pub(super) enum Task<'a> {
    /// Sample a game, along with others, and judge it then.
    Sample(&'a SampledGames),
    /// Something that the engine alone labels.
    Label(Subject<'a>),
}

/// Something to be labelled.
#[derive(Debug)]
pub(super) enum Subject<'a> {
    /// A game to be played.
    Play(&'a Play),
    /// A line of FEN or EPD, and what names it.
    Position(Vec<u8>, String),
    /// A game in PGN, the share of its positions that is judged, and what names
    /// it.
    Game(Vec<u8>, f64, String),
}

pub(super) type Tasks<'a> =
    Box<dyn Iterator<Item = Result<(u64, Task<'a>), SourceError>> + Send + 'a>;

impl Source {
    /// How many games and positions there are.
    ///
    /// # Errors
    /// [`SourceError`] if a file cannot be read.
    pub fn count(&self) -> Result<u64, SourceError> {
        let mut count = 0;
        for task in self.tasks()? {
            task?;
            count += 1;
        }
        Ok(count)
    }

    /// The tasks with their numbers, from 0.
    pub(super) fn tasks(&self) -> Result<Tasks<'_>, SourceError> {
        match self {
            Source::Play(play) => {
                let task = move || Task::Label(Subject::Play(play));
                Ok(Box::new(
                    (0..play.games).map(move |number| Ok((number, task()))),
                ))
            }
            Source::Sample(games) => {
                let task = move |number| Ok((number, Task::Sample(games)));
                Ok(Box::new((0..games.games).map(task)))
            }
            Source::Files { paths, share } => {
                // One file is open at a time.
                let tasks = paths.iter().flat_map(|path| {
                    of_file(path, *share)
                        .unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
                });
                let tasks = tasks.zip(0..);
                let task =
                    |(subject, number): (Result<_, _>, u64)| Ok((number, Task::Label(subject?)));
                Ok(Box::new(tasks.map(task)))
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
        move |kind: &str, index: usize| format!("{path}, {kind} {}", index + 1)
    };
    let packed = openings::is_zip(path).map_err(&failed)?;
    let mut games: Games<Box<dyn BufRead + Send>> = match packed {
        true => {
            let text = openings::text(path).map_err(&failed)?;
            Games::new(Box::new(Cursor::new(text)))
        }
        // These may be too large to be held in memory.
        false => open(path, |file| file).map_err(&failed)?,
    };
    let first = games.next().transpose().map_err(&failed)?;
    if first.as_deref().is_some_and(openings::is_pgn) {
        let games = first.map(Ok).into_iter().chain(games);
        return Ok(Box::new(games.enumerate().map(move |(index, game)| {
            let game = game.map_err(&failed)?;
            Ok(Subject::Game(game, share, named("game", index)))
        })));
    }
    let text = openings::text(path).map_err(&failed)?;
    let lines: Vec<Vec<u8>> = openings::positions(&text).map(<[u8]>::to_vec).collect();
    let lines = lines.into_iter().enumerate();
    Ok(Box::new(lines.map(move |(index, line)| {
        Ok(Subject::Position(line, named("position", index)))
    })))
}
