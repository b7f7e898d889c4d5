//! `tessera generate`: generates games with a move-token GPT.

use crate::cli::options::play;
use anyhow::{Context, bail};
use clap::ValueEnum;
use parking_lot::Mutex;
use serde_json::json;
use shakmaty::KnownOutcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tch::{Device, Kind};
use tessera::backend::{CodeArguments, shipped};
use tessera::chess::{Game, Ratings};
use tessera::command_line::{network_file, number_that};
use tessera::data::pgn::{IDENTITY, Journal};
use tessera::generate::{GameResult, Generator, Prompt, Sampling, SideBySide};
use tessera::network::gpt::Conditions;
use tessera::network::{self, Gpt};
use tessera::openings::{BookOptions, Openings, eco_openings, is_eco};
use tessera::{output, overwrite, progress};

/// The network that is used by default.
const DEFAULT: &str = "tessera-gpt";
/// Number of digits of the network's hash that the games' tags contain.
const HASH_DIGITS: usize = 12;

/// Generate games with a move-token GPT, as PGN
#[derive(clap::Args)]
pub struct Arguments {
    /// The network: a file, or the name of one that ships with the program; by default
    /// tessera-gpt
    #[arg(long, value_name = "NET", value_parser = network_file)]
    net: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// First moves of each game, in UCI notation or SAN, such as e4,c5 or "1. e4 c5"
    #[arg(long, value_name = "MOVES", value_delimiter = ',', group = "beginning")]
    moves: Vec<String>,
    /// Continue the games of this PGN file
    #[arg(long, value_name = "FILE.pgn", group = "beginning")]
    games: Option<PathBuf>,
    /// ECO code of the opening, such as B90; the games start with that code's lines in turn
    #[arg(long, value_name = "CODE", group = "beginning", value_parser = eco)]
    eco: Option<String>,
    /// The folder with the opening table, which `tools/data eco` downloads
    #[arg(long, value_name = "FOLDER", default_value = "data/eco")]
    eco_table: PathBuf,
    /// White's rating
    #[arg(long, value_name = "ELO", value_parser = clap::value_parser!(u16).range(1..=4000))]
    white_elo: Option<u16>,
    /// Black's rating
    #[arg(long, value_name = "ELO", value_parser = clap::value_parser!(u16).range(1..=4000))]
    black_elo: Option<u16>,
    /// Requested result of the games; the network does not always comply
    #[arg(long, value_enum, value_name = "RESULT")]
    result: Option<GameResult>,
    /// Sampling temperature; values below 1 favour likelier moves, and 0 always plays the likeliest
    #[arg(long, value_name = "T", default_value_t = 1.0, value_parser = temperature)]
    temperature: f32,
    /// Sample only from the likeliest moves that together have this probability
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", value_parser = share)]
    top_p: f32,
    /// Sample only from moves with at least this share of the likeliest move's probability
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    min_p: f32,
    /// Sample from all moves, legal or not; a game ends at its first illegal move, with a comment
    #[arg(long)]
    raw: bool,
    /// Random seed; the same seed generates the same games
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Games that each thread generates concurrently
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Threads; 0 uses one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Number format that the network runs in; bf16 is faster on processors with bf16 instructions,
    /// but generates different games
    #[arg(long, value_name = "FORMAT", default_value = "f32", value_parser = ["f32", "bf16"])]
    precision: String,
    /// File to write the games to, plain, .gz or .zst; `-` is standard output. An interrupted run
    /// resumes where it stopped
    #[arg(short, long, value_name = "GAMES.pgn", default_value = "-")]
    output: PathBuf,
    /// Print one JSON object with counts and speed as the last line; if the games go to standard
    /// output, the object goes to standard error
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f32, String> {
    number_that(text, |it| (0.0..=1.0).contains(it), "in 0…1")
}

fn eco(text: &str) -> Result<String, String> {
    let code = text.to_ascii_uppercase();
    match is_eco(&code) {
        true => Ok(code),
        false => Err("must be a letter from A to E and two digits".to_owned()),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    number_that(text, |it| (0.0..=100.0).contains(it), "in 0…100")
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let net = self.net.clone().unwrap_or_else(|| shipped::file(DEFAULT));
        for output in Journal::files(&self.output) {
            let inputs = [Some(net.clone()), self.games.clone()];
            overwrite::refuse(&output, inputs.into_iter().flatten())?;
        }
        let shown = net.display();
        let file = std::fs::read(&net).with_context(|| format!("cannot read {shown}"))?;
        let network = network::open_any(&file, self.code.policy())
            .with_context(|| format!("cannot use {shown}"))?;
        let name = network.about.name.clone();
        let Some(network) = network.downcast::<Gpt>() else {
            bail!("{shown} evaluates positions: games are written by networks of the family gpt");
        };
        let kind = match self.is_bf16() {
            true => Kind::BFloat16,
            false => Kind::Float,
        };
        let generator = Generator::new(network, kind, Device::Cpu);
        let openings = Beginnings::open(&self)?;
        let event = self.event(&name, &file);
        let mut journal = Journal::open(&self.output, &event, |_| ())?;
        // Games are numbered from 1.
        journal.leave_out(0)?;
        let bar = progress::bar(Some(self.limit), "games");
        let mut tally = Tally::default();
        let asked = 1..=self.limit;
        let finished: BTreeSet<u64> = journal.numbers().filter(|it| asked.contains(it)).collect();
        bar.set_position(finished.len() as u64);
        let rows = self.side_by_side(self.limit - finished.len() as u64);
        // The numbers of the games that have begun; `--limit` may ask for billions.
        let begun = Mutex::new(Vec::new());
        let numbers = asked.filter(|it| !finished.contains(it));
        let prompts = numbers.map(|number| {
            begun.lock().push(number);
            let game = openings.game(number)?;
            Ok(Prompt::new(game, self.conditions(), self.seed, number))
        });
        let start = Instant::now();
        generator.write_each(prompts, rows, &self.sampling(), |place, written| {
            let number = begun.lock()[place];
            tally.moves += written.game.plies().len() - openings.game(number)?.plies().len();
            *tally.ends.entry(written.end.name()).or_default() += 1;
            let [event_tag, number_tag] = IDENTITY;
            let identity = [(event_tag, event.clone()), (number_tag, number.to_string())];
            let game = written.annotated(identity, &name, self.conditions().ratings);
            journal.append(number, &game.to_pgn(1))?;
            bar.inc(1);
            anyhow::Ok(())
        })?;
        tally.seconds = start.elapsed();
        bar.finish_and_clear();
        journal.finish()?;
        if self.json {
            output::announce(&self.output, tally.json())?;
        }
        Ok(())
    }

    /// Returns the number of threads, and the number of concurrent games per thread, for generating
    /// `games` games.
    fn side_by_side(&self, games: u64) -> SideBySide {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match self.threads {
            0 => all(),
            threads => threads,
        };
        let games = usize::try_from(games).unwrap_or(usize::MAX);
        let threads = threads.clamp(1, games.max(1));
        SideBySide {
            games: usize::from(self.batch).min(games.div_ceil(threads)).max(1),
            threads,
        }
    }

    fn is_bf16(&self) -> bool {
        self.precision == "bf16"
    }

    fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            min_p: self.min_p,
            legal_only: !self.raw,
        }
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            ratings: Ratings {
                white: self.white_elo,
                black: self.black_elo,
            },
            result: self.result.map(KnownOutcome::from),
        }
    }

    fn event(&self, name: &str, file: &[u8]) -> String {
        use sha2::{Digest, Sha256};
        let hash = format!("{:x}", Sha256::digest(file));
        let mut event = format!("{name} {} seed {}", &hash[..HASH_DIGITS], self.seed);
        let Sampling {
            temperature,
            top_p,
            min_p,
            ..
        } = self.sampling();
        event += &format!(", temperature {temperature}, top-p {top_p}, min-p {min_p}");
        let book = |file: &PathBuf| BookOptions::from(file.clone()).to_string();
        let beginning = [
            (!self.moves.is_empty()).then(|| self.moves.join(",")),
            self.eco.clone(),
            self.games.as_ref().map(book),
        ];
        let beginning = beginning.into_iter().flatten().next();
        let elo = |name: &str, elo: Option<u16>| elo.map(|elo| format!("{name} {elo}"));
        let rest = [
            beginning.map(|it| format!("from {it}")),
            elo("White", self.white_elo),
            elo("Black", self.black_elo),
            self.result
                .and_then(|it| Some(format!("for {}", it.to_possible_value()?.get_name()))),
            self.raw.then(|| "raw".to_owned()),
            self.is_bf16().then(|| "bf16".to_owned()),
        ];
        for part in rest.into_iter().flatten() {
            event += &format!(", {part}");
        }
        event
    }
}

/// How the games begin.
enum Beginnings {
    /// These beginnings, used in turn.
    Lines(Vec<Game>),
    Book(Openings),
}

impl Beginnings {
    fn open(arguments: &Arguments) -> anyhow::Result<Beginnings> {
        if let Some(file) = &arguments.games {
            let books = [BookOptions::from(file.clone())];
            return Ok(Beginnings::Book(Openings::open(&books, 0, arguments.seed)?));
        }
        if let Some(code) = &arguments.eco {
            let lines = eco_openings(&arguments.eco_table, code).context("--eco")?;
            return Ok(Beginnings::Lines(lines));
        }
        let mut game = Game::default();
        for moves in &arguments.moves {
            play(&mut game, moves)?;
        }
        Ok(Beginnings::Lines(vec![game]))
    }

    fn game(&self, number: u64) -> anyhow::Result<Game> {
        match self {
            Beginnings::Lines(lines) => Ok(lines[(number - 1) as usize % lines.len()].clone()),
            Beginnings::Book(openings) => Ok(openings.game(number)?),
        }
    }
}

/// The text written so far.
#[derive(Default)]
struct Tally {
    moves: usize,
    seconds: Duration,
    ends: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn json(&self) -> serde_json::Value {
        let seconds = self.seconds.as_secs_f64();
        json!({
            "games": self.ends.values().sum::<u64>(),
            "moves": self.moves,
            "seconds": seconds,
            "moves_per_second": self.moves as f64 / seconds.max(f64::MIN_POSITIVE),
            "ends": self.ends,
        })
    }
}
