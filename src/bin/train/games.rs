//! Options of the commands that play games.

use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tessera::command_line::number_that;
use tessera::openings::{BookOptions, Openings};
use tessera::tablebase::Tablebase;

/// Number of random plies at the start of games without a book, in self-play and `label --play`.
pub const RANDOM_PLIES: u32 = 8;

/// Openings of games, and when games end early.
#[derive(Args, Clone, Debug)]
pub struct GamesArguments {
    /// A book of openings: FEN, EPD or PGN, plain or .gz, .zst or .zip; may be repeated. Each book
    /// opens games in proportion to its share, by default 1. With a cut, a game of a PGN book is
    /// followed up to a random ply in the range. Example: games.pgn,share=2,cut=8..60.
    #[arg(long, value_name = "BOOK[,share=N][,cut=A..B]", value_parser = book)]
    openings: Vec<BookOptions>,
    /// Random plies after the opening; by default 8 without a book, otherwise 0.
    #[arg(long, value_name = "PLIES")]
    random_plies: Option<u32>,
    /// Stop games after this many plies, including the opening.
    #[arg(long, value_name = "PLIES", value_parser = clap::value_parser!(u16).range(1..))]
    max_plies: Option<u16>,
    /// Folders of Syzygy tablebases, written as for the UCI option SyzygyPath; games end with the
    /// result that the tablebases give.
    #[arg(long, value_name = "FOLDERS")]
    syzygy: Option<String>,
}

/// Describes the games that an earlier run has finished, to be appended to a message about new
/// games.
pub fn from_before(found: u64) -> String {
    match found {
        0 => String::new(),
        found => format!(" and {found} from an earlier run"),
    }
}

impl GamesArguments {
    /// Returns whether any of the options is given.
    pub fn is_given(&self) -> bool {
        !self.openings.is_empty()
            || self.random_plies.is_some()
            || self.max_plies.is_some()
            || self.syzygy.is_some()
    }

    /// Returns the files of the opening books.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.openings.iter().map(|book| &*book.path)
    }

    /// Returns the openings. Without a book, they consist of `bookless` random plies, unless the
    /// user sets another number.
    pub fn openings(&self, bookless: u32, seed: u64) -> anyhow::Result<Openings> {
        let random_plies = self.random_plies.unwrap_or(match self.openings.is_empty() {
            true => bookless,
            false => 0,
        });
        Ok(Openings::open(&self.openings, random_plies, seed)?)
    }

    /// Returns the number of plies after which games are stopped.
    pub fn max_plies(&self) -> Option<usize> {
        self.max_plies.map(usize::from)
    }

    /// Returns the tablebases; fails if any of them is missing.
    pub fn tablebase(&self) -> anyhow::Result<Tablebase> {
        let tablebase = Tablebase::new(self.syzygy.as_deref().unwrap_or_default());
        if let Some(problem) = tablebase.problem() {
            bail!("--syzygy: {problem}");
        }
        Ok(tablebase)
    }
}

/// Parses a file name followed by settings, `FILE,NAME=VALUE,…`. Returns the file, and calls `set`
/// with each name and value.
pub fn file_and_settings(
    text: &str,
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut file = text;
    // File names may contain commas too.
    while let Some((before, setting)) = file.rsplit_once(',')
        && let Some((name, value)) = setting.split_once('=')
    {
        set(name.trim(), value.trim())?;
        file = before;
    }
    match file {
        "" => Err("name a file".to_owned()),
        _ => Ok(file.into()),
    }
}

/// Parses a setting's value as a number.
pub fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name}: `{value}` is not a valid number"))
}

/// Parses a setting's value as a positive number.
pub fn positive(name: &str, value: &str) -> Result<f64, String> {
    let number: f64 = number(name, value)?;
    match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err(format!("{name} must be positive")),
    }
}

/// Parses a book with its settings.
fn book(text: &str) -> Result<BookOptions, String> {
    let (mut share, mut cut) = (1.0, None);
    let path = file_and_settings(text, |name, value| {
        match name {
            "share" => share = positive(name, value)?,
            "cut" => cut = Some(range(value)?),
            _ => return Err(format!("`{name}`: a book's settings are share and cut")),
        }
        Ok(())
    })?;
    Ok(BookOptions { path, share, cut })
}

/// Parses a range of plies, A..B.
pub fn range(text: &str) -> Result<(usize, usize), String> {
    ends(text).ok_or_else(|| "cut: write the first and the last ply, as in 8..60".to_owned())
}

/// Parses the ends of a range, A..B.
pub fn ends<T: FromStr + PartialOrd>(text: &str) -> Option<(T, T)> {
    let (first, last) = text.split_once("..")?;
    let ends = (first.parse().ok()?, last.parse().ok()?);
    (ends.0 <= ends.1).then_some(ends)
}

/// Parses a number in 0…1.
pub fn share(text: &str) -> Result<f64, String> {
    number_that(text, |it| (0.0..=1.0).contains(it), "between 0 and 1")
}

/// Creates the folder that will contain a file.
pub fn make_folder(file: &Path) -> anyhow::Result<()> {
    match file.parent() {
        Some(folder) => std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display())),
        None => Ok(()),
    }
}
