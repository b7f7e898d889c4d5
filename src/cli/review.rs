//! `tessera review`: reviews a player's games.

use super::judge::JudgeArguments;
use super::output::{print, print_json, save};
use anyhow::{Context, bail};
use serde::Serialize;
use shakmaty::Color;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use tessera::backend::{Backend, BackendKind, BackendOptions, BuiltIn, NetworkOptions};
use tessera::command_line::NetworkArguments;
use tessera::data::pgn;
use tessera::error_report::tell;
use tessera::inference::{self, LoadError};
use tessera::play::Control;
use tessera::plural::counted;
use tessera::review::{
    COLUMNS, Cache, LoadedNetwork, NetworkIdentity, News, OwnSearch, Report, Session, Source,
    Summary, annotated_pgn, game_page, no_game_of, puzzles, summary, summary_page, text,
};
use tessera::{interrupt, output, overwrite, progress};

/// Memory for the evaluation cache that the searches share, in MiB.
const CACHE: usize = 64;
/// Default number of nodes of Tessera's own search for each position.
const NODES: u64 = 800;

/// Review games: what went wrong and why, and what players of your level would have played
///
/// A chess engine as judge, such as Stockfish, scores the positions; without one, Tessera does. Each
/// move is compared with the best one, marked as on Lichess and, where facts on the board show why
/// it is bad, explained. A model of human play estimates what share of players of
/// each rating would play the move, and at which rating the game as a whole is likeliest. Without
/// --output, the review is printed. Ctrl-C stops the searches and reviews what they have found so
/// far. Results are stored in the user's cache folder, so reviewing the same game again takes no
/// time.
#[derive(clap::Args)]
pub struct Arguments {
    /// The games: PGN files, plain or compressed with gzip or zstd, folders of them, or - for
    /// standard input
    #[arg(value_name = "GAME.pgn", required = true)]
    games: Vec<PathBuf>,
    /// Review the moves of the player with this name, and skip games of other players
    #[arg(long, value_name = "NAME", group = "whose")]
    player: Option<String>,
    /// Review White's moves
    #[arg(long, group = "whose")]
    white: bool,
    /// Review Black's moves
    #[arg(long, group = "whose")]
    black: bool,
    /// Compare with players of this rating; by default the player's rating in the PGN
    #[arg(long, value_name = "ELO", value_parser = clap::value_parser!(u16).range(1..=4000))]
    elo: Option<u16>,
    #[command(flatten)]
    judge: JudgeArguments,
    /// Nodes of Tessera's own search for each position, if there is no judge; by default 800
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    #[command(flatten)]
    network: NetworkArguments,
    /// Backend that evaluates positions
    #[arg(long, value_enum, default_value_t)]
    backend: BackendKind,
    /// Threads that evaluate; 0 uses all processors
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,
    /// The page to write, or a folder for the pages of several games
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
    /// Write the games with marks, scores, lines and comments
    #[arg(long, value_name = "FILE.pgn")]
    pgn: Option<PathBuf>,
    /// Write mistakes as puzzles in the columns of Lichess's database
    #[arg(long, value_name = "FILE.csv")]
    puzzles: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output<'a> {
    games: Vec<&'a Report>,
    summary: Summary,
}

/// The games that were read, and why other games could not be read.
#[derive(Default)]
struct Read {
    games: Vec<(Source, Option<Color>)>,
    unreadable: Vec<String>,
    /// The games that the named player did not play.
    others: Vec<Source>,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let files = self.files()?;
        self.check_outputs(&files)?;
        let Read {
            games, unreadable, ..
        } = self.read(&files)?;
        let folder = self.folder(&files, games.len())?;
        let threads = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads.into(),
        };
        let judge = self.judge.start(threads)?;
        let (own, judge_failure) = (OnceLock::new(), OnceLock::new());
        let load = || self.own_search(&own, threads);
        if let Some(judge) = &judge
            && (self.nodes.is_some() || self.network.net.is_some())
        {
            tell(format_args!(
                "{} scores the games: --net and --nodes need --judge none",
                judge.name
            ));
        }
        if judge.is_none() {
            load()?.network.backend.properties().require_value()?;
        }
        let cache = Cache::of_user();
        let bar = progress::bar(Some(positions(&games)), "positions");
        let before = AtomicU64::new(0);
        let hear = |news: News<'_>| match news {
            News::Position(found) => bar.set_position(before.load(Relaxed) + found.known as u64),
            News::Note(line) => bar.suspend(|| tell(line)),
            News::People(_) => {}
        };
        let session = Session {
            judge: judge.as_ref(),
            judge_failure: &judge_failure,
            own: &load,
            people: self.people(&load)?,
            store: &cache,
            control: stop_when_interrupted()?,
            elo: self.elo,
            hear: &hear,
        };
        let mut reports = Vec::new();
        let (mut annotated, mut rows) = (String::new(), Vec::new());
        let mut names = HashSet::new();
        for (number, (source, side)) in (1..).zip(&games) {
            let report = session.review(source, *side, None)?;
            before.fetch_add(source.game.plies().len() as u64, Relaxed);
            annotated += &annotated_pgn(source, &report);
            // The same mistake may occur in several games.
            let found = puzzles(&report).into_iter();
            rows.extend(found.filter(|row| names.insert(row[0].clone())));
            let page = self.save_page(folder, number, &report)?;
            let keeps_all = self.json || games.len() == 1;
            let kept = if keeps_all {
                report
            } else {
                report.without_lines()
            };
            reports.push((page, kept));
            if session.control.stopped() {
                break;
            }
        }
        bar.finish_and_clear();
        let (all, reviewed) = (games.len(), reports.len());
        if reviewed < all {
            tell(format_args!("stopped after {reviewed} of {all} games"));
        }
        if let Some(path) = &self.pgn {
            save(path, &annotated)?;
        }
        if let Some(path) = &self.puzzles {
            save(path, table(&rows)?)?;
        }
        let summary = summary(self.player.clone(), &reports, unreadable);
        if let Some(folder) = folder {
            save(&folder.join("index.html"), summary_page(&summary))?;
        }
        self.tell(&reports, summary, folder.is_some())
    }

    /// Returns the files to read, including those in folders.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for path in &self.games {
            if !path.is_dir() {
                files.push(path.clone());
                continue;
            }
            let before = files.len();
            for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
                let entry = entry.with_context(|| path.display().to_string())?;
                if entry.file_type().is_file() && is_pgn(entry.path()) {
                    files.push(entry.into_path());
                }
            }
            if files.len() == before {
                bail!("{} contains no PGN files", path.display());
            }
        }
        Ok(files)
    }

    fn check_outputs(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        let written = [&self.output, &self.pgn, &self.puzzles]
            .into_iter()
            .flatten();
        let read = || files.iter().chain(&self.network.net);
        for output in written.clone().filter(|output| !output.is_dir()) {
            overwrite::refuse(output, read())?;
        }
        Ok(overwrite::refuse_twice(written)?)
    }

    fn read(&self, files: &[PathBuf]) -> anyhow::Result<Read> {
        let mut read = Read::default();
        for path in files {
            let name = path.display();
            let texts = pgn::open_converted(path).with_context(|| name.to_string())?;
            for text in texts {
                let (place, source) = match text {
                    Ok(text) => {
                        let source = Source::read(&text).map_err(|error| error.to_string());
                        (format!("{name}, {}", text.place), source)
                    }
                    Err(error) => (format!("the rest of {name}"), Err(error.to_string())),
                };
                let source = source.and_then(|source| match &source.fault {
                    Some(fault) if source.moves().is_empty() => Err(fault.clone()),
                    _ => Ok(source),
                });
                match source {
                    Ok(source) => {
                        if let Some(cut_off) = source.cut_off() {
                            let line = format!("{place}: {cut_off}");
                            tell(format_args!("{line}"));
                            read.unreadable.push(line);
                        }
                        self.add(source, &mut read);
                    }
                    Err(error) => {
                        let line = format!("{place}: {error}");
                        tell(format_args!("left out: {line}"));
                        read.unreadable.push(line);
                    }
                }
            }
        }
        if let (Some(player), count @ 1..) = (&self.player, read.others.len()) {
            tell(format_args!(
                "left out: {} that {player} did not play",
                counted(count, "game")
            ));
        }
        match (read.games.is_empty(), &self.player) {
            (true, Some(player)) => bail!("{}", no_game_of(player, &read.others)),
            (true, None) => bail!("no game was found"),
            _ => Ok(read),
        }
    }

    fn add(&self, source: Source, read: &mut Read) {
        let side = match (&self.player, self.white, self.black) {
            (Some(player), ..) => source.side_of(player),
            (None, true, _) => Some(Color::White),
            (None, _, true) => Some(Color::Black),
            _ => None,
        };
        if self.player.is_some() && side.is_none() {
            read.others.push(source);
        } else {
            read.games.push((source, side));
        }
    }

    /// Returns the folder for pages, if the output is a folder.
    fn folder(&self, files: &[PathBuf], games: usize) -> anyhow::Result<Option<&Path>> {
        let Some(path) = &self.output else {
            return Ok(None);
        };
        let is_page = path.extension().is_some() || path.exists() || output::is_stdout(path);
        if games == 1 && !path.is_dir() && is_page {
            return Ok(None);
        }
        if path.extension().is_some_and(|end| end == "html") {
            bail!(
                "{games} games have a page each: name a folder instead of {}",
                path.display()
            );
        }
        let is_page = |file: &&PathBuf| file.extension().is_some_and(|end| end == "html");
        let is_there = path.is_dir();
        for file in files.iter().filter(|file| is_there && is_page(file)) {
            let page = path.join(file.file_name().unwrap_or_default());
            overwrite::refuse(&page, [file])?;
        }
        output::check_folder(path)?;
        let made = std::fs::create_dir_all(path);
        made.with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Some(path))
    }

    /// Returns Tessera's own search, whose network is loaded on first use.
    fn own_search(
        &self,
        loaded: &OnceLock<LoadedNetwork>,
        threads: usize,
    ) -> Result<OwnSearch, LoadError> {
        let network = match loaded.get() {
            Some(network) => network.clone(),
            None => {
                let options = BackendOptions {
                    cache: CACHE,
                    ..self.network.options(self.backend, threads)
                };
                let backend = inference::load_for_many(&options)?;
                let network = identified(backend, &options)?;
                loaded.get_or_init(|| network).clone()
            }
        };
        Ok(OwnSearch {
            network,
            nodes: self.nodes.unwrap_or(NODES),
            threads,
        })
    }

    /// Returns the model of human moves, if one is available.
    fn people(
        &self,
        own: &dyn Fn() -> Result<OwnSearch, LoadError>,
    ) -> anyhow::Result<Option<LoadedNetwork>> {
        if matches!(self.backend, BackendKind::Uniform | BackendKind::Random) {
            return Ok(Some(own()?.network));
        }
        let options = BackendOptions {
            kind: self.backend,
            network: NetworkOptions {
                built_in: BuiltIn::Human,
                ..self.network.on.network(None)
            },
            ..BackendOptions::default()
        };
        match inference::load(&options) {
            Ok(people) => Ok(Some(identified(people, &options)?)),
            Err(LoadError::NoHumanBuiltIn) => {
                tell(
                    "no network that plays like people is built in, so the review has no shares or ratings",
                );
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the page of a game. Returns the page's name if the pages are written to a folder.
    fn save_page(
        &self,
        folder: Option<&Path>,
        number: usize,
        report: &Report,
    ) -> anyhow::Result<Option<String>> {
        let Some(output) = &self.output else {
            return Ok(None);
        };
        let Some(folder) = folder else {
            save(output, game_page(report))?;
            return Ok(None);
        };
        let name = format!("game-{number:04}.html");
        save(&folder.join(&name), game_page(report))?;
        Ok(Some(name))
    }

    fn tell(
        &self,
        reports: &[(Option<String>, Report)],
        summary: Summary,
        has_folder: bool,
    ) -> anyhow::Result<()> {
        if self.json {
            let games = reports.iter().map(|(_, report)| report).collect();
            return print_json(&Output { games, summary });
        }
        let outputs = [&self.output, &self.pgn, &self.puzzles]
            .into_iter()
            .flatten();
        if outputs.clone().any(|path| output::is_stdout(path)) {
            return Ok(());
        }
        match reports {
            [(_, report)] => print(&text(report))?,
            _ => print(&summary.text())?,
        }
        for path in outputs {
            let page = path.join("index.html");
            let is_folder = has_folder && Some(path) == self.output.as_ref();
            let shown = if is_folder { &page } else { path };
            print(&format!("{}\n", shown.display()))?;
        }
        Ok(())
    }
}

fn is_pgn(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    [".pgn", ".pgn.gz", ".pgn.zst"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Returns the total number of positions in all games.
fn positions(games: &[(Source, Option<Color>)]) -> u64 {
    games
        .iter()
        .map(|(source, _)| source.game.plies().len() as u64)
        .sum()
}

/// Returns a network with its identity.
fn identified(
    backend: Arc<dyn Backend>,
    options: &BackendOptions,
) -> Result<LoadedNetwork, LoadError> {
    let identity = NetworkIdentity::of(options, backend.properties())?;
    Ok(LoadedNetwork { backend, identity })
}

/// Returns puzzles as CSV with a header line.
fn table(rows: &[[String; 10]]) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for row in rows {
        writer.write_record(row)?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// Returns a control that Ctrl-C stops. A second Ctrl-C ends the program.
fn stop_when_interrupted() -> anyhow::Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let asked = Arc::clone(&control);
    interrupt::stop_at_first(move || {
        asked.stop();
        tell("stopping: the review covers what was searched so far");
    })?;
    Ok(control)
}
