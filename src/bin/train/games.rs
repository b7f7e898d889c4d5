//! Options of the commands that play games.

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tessera::openings::Openings;
use tessera::tablebase::Tablebase;

/// Random plies that tell games apart where no book does.
const RANDOM_PLIES: u32 = 8;

/// Where games begin, and where they end early.
#[derive(Args, Clone, Debug)]
pub struct GamesArguments {
    /// A book of openings: FEN, EPD or PGN, plain or .gz, .zst or .zip.
    #[arg(long, value_name = "BOOK")]
    openings: Option<PathBuf>,
    /// Random moves after the opening, in plies; by default 8 without a book,
    /// 0 with one.
    #[arg(long, value_name = "PLIES")]
    random_plies: Option<u32>,
    /// Break games off that last so many plies, the opening included.
    #[arg(long, value_name = "PLIES", value_parser = clap::value_parser!(u16).range(1..))]
    max_plies: Option<u16>,
    /// Folders of Syzygy tablebases whose word ends games.
    #[arg(long, value_name = "FOLDERS")]
    tablebase: Option<String>,
}

impl GamesArguments {
    /// Whether any of them is given.
    pub fn is_given(&self) -> bool {
        self.openings.is_some()
            || self.random_plies.is_some()
            || self.max_plies.is_some()
            || self.tablebase.is_some()
    }

    /// Where games begin.
    pub fn openings(&self, seed: u64) -> anyhow::Result<Openings> {
        let book = self.openings.as_deref();
        let random_plies = match (self.random_plies, book) {
            (Some(plies), _) => plies,
            (None, Some(_)) => 0,
            (None, None) => RANDOM_PLIES,
        };
        Ok(Openings::open(book, random_plies, seed)?)
    }

    /// After how many plies games are broken off.
    pub fn max_plies(&self) -> Option<usize> {
        self.max_plies.map(usize::from)
    }

    /// The tablebases, all of which must be there.
    pub fn tablebase(&self) -> anyhow::Result<Tablebase> {
        let tablebase = Tablebase::new(self.tablebase.as_deref().unwrap_or_default());
        if let Some(problem) = tablebase.inventory().problems.first() {
            bail!("--tablebase: {problem}");
        }
        Ok(tablebase)
    }
}

/// A bar over games.
pub fn bar(games: u64) -> anyhow::Result<ProgressBar> {
    let style = "{elapsed} [{bar:30}] {pos}/{len} games, {msg}, {eta} left";
    let bar = ProgressBar::new(games).with_style(ProgressStyle::with_template(style)?);
    bar.enable_steady_tick(Duration::from_millis(250));
    Ok(bar)
}

/// Reads `NAME=VALUE`.
pub fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write the option's name, `=` and its value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Reads a number in 0…1.
pub fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err("it must be between 0 and 1".to_owned()),
    }
}

/// Makes the folder that a file is to be in.
pub fn make_folder(file: &Path) -> anyhow::Result<()> {
    match file.parent() {
        Some(folder) => std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display())),
        None => Ok(()),
    }
}
