//! `tessera generate`: games written by a GPT over moves.

use crate::cli::output::{print, print_json, progress};
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;
use shakmaty::{Color, KnownOutcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tch::{Device, Kind};
use tessera::chess::{Ending, Game, Ratings};
use tessera::data::pgn::{AnnotatedGame, Journal, parse_game};
use tessera::data::replay::main_line;
use tessera::generate::{Generator, Prompt, Sampling, Written, WrittenEnd};
use tessera::network::gpt::Conditions;
use tessera::network::{self, Gpt};
use tessera::nn::CodeArguments;
use tessera::openings::{BookOptions, Openings};
use tessera::overwrite;

/// Digits of the network's hash that the games name.
const HASH_DIGITS: usize = 12;

/// Write games by a network over moves (of the family gpt), as PGN
#[derive(clap::Args)]
pub struct Arguments {
    /// The network
    #[arg(long, value_name = "FILE")]
    net: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
    /// Games to write
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    games: u64,
    /// Moves that each game begins with, such as "1. e4 c5"
    #[arg(long, value_name = "MOVES", conflicts_with = "pgn")]
    opening: Option<String>,
    /// A file of games in PGN, with each of which one goes on
    #[arg(long, value_name = "FILE")]
    pgn: Option<PathBuf>,
    /// White's rating
    #[arg(long, value_name = "ELO", value_parser = clap::value_parser!(u16).range(1..=4000))]
    white_elo: Option<u16>,
    /// Black's rating
    #[arg(long, value_name = "ELO", value_parser = clap::value_parser!(u16).range(1..=4000))]
    black_elo: Option<u16>,
    /// How the games are to end; the network does not always obey
    #[arg(long, value_enum)]
    result: Option<GameResult>,
    /// Temperature: below 1 likelier moves become likelier still, at 0 the likeliest is
    /// played
    #[arg(long, default_value_t = 1.0, value_parser = temperature)]
    temperature: f32,
    /// Draw from the likeliest moves that together have this share
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", value_parser = share)]
    top_p: f32,
    /// Draw from moves that are at least this share as likely as the likeliest
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    min_p: f32,
    /// Draw from all moves, legal or not: a game ends with the first that is not, and says so
    #[arg(long)]
    raw: bool,
    /// Seed of the games: with the same one they are the same
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Games written side by side
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Where the games go, plain, .gz or .zst; by default to standard output. What was cut
    /// off goes on where it ended
    #[arg(short, long, value_name = "GAMES.pgn")]
    output: Option<PathBuf>,
    /// Print one JSON object with counts and speed as the last line
    #[arg(long)]
    json: bool,
}

/// A result as PGN writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GameResult {
    #[value(name = "1-0")]
    White,
    #[value(name = "1/2-1/2")]
    Draw,
    #[value(name = "0-1")]
    Black,
}

impl From<GameResult> for KnownOutcome {
    fn from(result: GameResult) -> KnownOutcome {
        let winner = match result {
            GameResult::White => Color::White,
            GameResult::Black => Color::Black,
            GameResult::Draw => return KnownOutcome::Draw,
        };
        KnownOutcome::Decisive { winner }
    }
}

fn share(text: &str) -> Result<f32, String> {
    let share: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err("must be in 0…1".to_owned()),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let temperature: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.0..=100.0).contains(&temperature) {
        true => Ok(temperature),
        false => Err("must be in 0…100".to_owned()),
    }
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(output) = &self.output {
            let inputs = [Some(self.net.clone()), self.pgn.clone()];
            overwrite::refuse(output, inputs.into_iter().flatten())?;
        }
        let shown = self.net.display();
        let file = std::fs::read(&self.net).with_context(|| format!("cannot read {shown}"))?;
        let network = network::open_any(&file, self.code.policy())
            .with_context(|| format!("cannot use {shown}"))?;
        let name = network.about.name.clone();
        let Some(network) = network.downcast::<Gpt>() else {
            bail!("{shown} evaluates positions: games are written by networks of the family gpt");
        };
        let generator = Generator::new(network, Kind::Float, Device::Cpu);
        let openings = Beginnings::open(&self)?;
        let event = self.event(&name, &file);
        let mut sink = Sink::open(self.output.as_deref(), &event)?;
        let bar = progress(self.games as usize, "games");
        let mut tally = Tally::default();
        let numbers: Vec<u64> = (1..=self.games).filter(|&it| !sink.has(it)).collect();
        bar.set_position(self.games - numbers.len() as u64);
        for numbers in numbers.chunks(self.batch.into()) {
            let prompts = numbers
                .iter()
                .map(|&number| self.prompt(&openings, number))
                .collect::<anyhow::Result<Vec<Prompt>>>()?;
            let begun: usize = prompts.iter().map(|it| it.game.plies().len()).sum();
            let start = Instant::now();
            let written = generator
                .write(prompts, &self.sampling())
                .context("cannot go on with that opening")?;
            tally.seconds += start.elapsed();
            tally.moves += written
                .iter()
                .map(|it| it.game.plies().len())
                .sum::<usize>()
                - begun;
            for (&number, written) in numbers.iter().zip(written) {
                *tally.ends.entry(end_name(&written.end)).or_default() += 1;
                let pgn = self.annotated(written, &event, &name, number).to_pgn(1);
                sink.write(number, &pgn)?;
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        sink.finish()?;
        match self.json {
            true => print_json(&tally.json()),
            false => Ok(()),
        }
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

    fn prompt(&self, openings: &Beginnings, number: u64) -> anyhow::Result<Prompt> {
        Ok(Prompt {
            game: openings.game(number)?,
            conditions: self.conditions(),
            random: Xoshiro256PlusPlus::seed_from_u64(
                self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number,
            ),
        })
    }

    /// Everything that the games depend on.
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
        let beginning = match (&self.opening, &self.pgn) {
            (Some(opening), _) => Some(opening.clone()),
            (None, Some(file)) => Some(BookOptions::from(file.clone()).to_string()),
            (None, None) => None,
        };
        let elo = |name: &str, elo: Option<u16>| elo.map(|elo| format!("{name} {elo}"));
        let rest = [
            beginning.map(|it| format!("from {it}")),
            elo("White", self.white_elo),
            elo("Black", self.black_elo),
            self.result
                .and_then(|it| Some(format!("for {}", it.to_possible_value()?.get_name()))),
            self.raw.then(|| "raw".to_owned()),
        ];
        for part in rest.into_iter().flatten() {
            event += &format!(", {part}");
        }
        event
    }

    fn annotated(&self, written: Written, event: &str, name: &str, number: u64) -> AnnotatedGame {
        let mut tags = vec![
            ("Event", event.to_owned()),
            ("Round", number.to_string()),
            ("White", name.to_owned()),
            ("Black", name.to_owned()),
        ];
        let elos = [("WhiteElo", self.white_elo), ("BlackElo", self.black_elo)];
        tags.extend(
            elos.into_iter()
                .filter_map(|(tag, elo)| Some((tag, elo?.to_string()))),
        );
        // The words of the PGN standard.
        let termination = match written.end {
            WrittenEnd::Rules(_) | WrittenEnd::Said(_) => "normal",
            WrittenEnd::Illegal(_) => "rules infraction",
            WrittenEnd::Unfinished => "unterminated",
        };
        tags.push(("Termination", termination.to_owned()));
        let comment = match &written.end {
            WrittenEnd::Illegal(text) => Some(format!("illegal: {text}")),
            _ => None,
        };
        AnnotatedGame {
            result: written.result(),
            comment,
            game: written.game,
            judged: Vec::new(),
            tags,
        }
    }
}

/// Where games begin.
enum Beginnings {
    Moves(Box<Game>),
    Book(Openings),
}

impl Beginnings {
    fn open(arguments: &Arguments) -> anyhow::Result<Beginnings> {
        if let Some(file) = &arguments.pgn {
            let books = [BookOptions::from(file.clone())];
            return Ok(Beginnings::Book(Openings::open(&books, 0, arguments.seed)?));
        }
        let game = match &arguments.opening {
            None => Game::default(),
            Some(text) => {
                let record = parse_game(text.as_bytes()).context("--opening")?;
                let game = main_line(&record).context("--opening")?;
                ensure!(
                    game.plies().len() > 1 || text.trim().is_empty(),
                    "--opening: `{text}` has no moves"
                );
                game
            }
        };
        Ok(Beginnings::Moves(Box::new(game)))
    }

    fn game(&self, number: u64) -> anyhow::Result<Game> {
        match self {
            Beginnings::Moves(game) => Ok(Game::clone(game)),
            Beginnings::Book(openings) => Ok(openings.game(number)?),
        }
    }
}

/// Where games go.
enum Sink {
    Output,
    Journal(Journal),
}

impl Sink {
    fn open(output: Option<&Path>, event: &str) -> anyhow::Result<Sink> {
        match output {
            None => Ok(Sink::Output),
            Some(path) => Ok(Sink::Journal(Journal::open(path, event, |_| ())?)),
        }
    }

    fn has(&self, number: u64) -> bool {
        match self {
            Sink::Output => false,
            Sink::Journal(journal) => journal.contains(number),
        }
    }

    fn write(&mut self, number: u64, game: &str) -> anyhow::Result<()> {
        match self {
            Sink::Output => print(game),
            Sink::Journal(journal) => Ok(journal.append(number, game)?),
        }
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        match self {
            Sink::Output => Ok(()),
            Sink::Journal(journal) => Ok(journal.finish()?),
        }
    }
}

/// What was written.
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

fn end_name(end: &WrittenEnd) -> &'static str {
    match end {
        WrittenEnd::Rules(Ending::Checkmate) => "mate",
        WrittenEnd::Rules(_) => "drawn",
        WrittenEnd::Said(end) if end.winner().is_some() => "resigned",
        WrittenEnd::Said(_) => "agreed",
        WrittenEnd::Illegal(_) => "illegal",
        WrittenEnd::Unfinished => "unfinished",
    }
}
