//! `train pack`: games into a shard.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use tessera::data::Curve;
use tessera::data::label::{Evals, Reading};
use tessera::data::pgn::{self, GameError};
use tessera::data::record::Record;
use tessera::data::shard::{Block, Header, SAMPLES_PER_BLOCK, ShardWriter};

/// Bytes of text that are parsed side by side before anything is written.
const CHUNK: usize = 16 << 20;

/// What `train pack` is asked to do.
#[derive(Args)]
#[command(group(ArgGroup::new("reading").args(["evals", "played"]).required(true).multiple(true)))]
pub struct Pack {
    /// Files of games: PGN, plain or compressed with gzip or zstd.
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The shard to write.
    #[arg(short, long, value_name = "OUT.shard")]
    output: PathBuf,
    /// What a score after a move belongs to: the engine that chose the move
    /// (chooser) or an analysis of the position after it (analysis).
    #[arg(long, value_enum)]
    evals: Option<Evals>,
    /// Make every move of the games a policy target, as for human games.
    #[arg(long, conflicts_with = "noise")]
    played: bool,
    /// The games contain injected random moves: those without a score.
    #[arg(long, requires = "evals")]
    noise: bool,
    /// The curve from the engines' scores to values.
    #[arg(long, value_enum, default_value = "lichess")]
    curve: Curve,
    /// Make one distribution of the moves of a position that bear scores
    /// (`train label --multipv`): a softmax of their chances of winning at this
    /// temperature, as 0.05.
    #[arg(long, value_name = "TEMPERATURE", value_parser = temperature, requires = "evals")]
    alternatives: Option<f32>,
    /// Stop at the first game that cannot be read instead of skipping it.
    #[arg(long)]
    strict: bool,
    /// Read so many games at most.
    #[arg(long, value_name = "N")]
    limit_games: Option<usize>,
}

impl Pack {
    /// Packs the games.
    pub fn run(self) -> anyhow::Result<()> {
        let reading = Reading {
            evals: self.evals,
            played: self.played,
            noise: self.noise,
            curve: self.curve,
            alternatives: self.alternatives,
        };
        if self.alternatives.is_some() && self.evals != Some(Evals::Chooser) {
            bail!("--alternatives needs --evals chooser: an analysis scores what was played");
        }
        let header = Header {
            sources: self.inputs.iter().map(|path| file_name(path)).collect(),
            reading,
        };
        let progress = self.progress()?;
        let mut packing = Packing {
            writer: ShardWriter::create(&self.output, &header)?,
            pending: Pending::default(),
            tally: Tally::default(),
        };
        for input in &self.inputs {
            let counted = progress.clone();
            let left = self.limit_games.unwrap_or(usize::MAX) - packing.tally.read;
            let mut games = pgn::open(input, |file| counted.wrap_read(file))
                .with_context(|| input.display().to_string())?
                .take(left);
            let mut number = 0;
            loop {
                let texts = next_chunk(&mut games).with_context(|| input.display().to_string())?;
                if texts.is_empty() {
                    break;
                }
                let parsed: Vec<_> = texts.par_iter().map(|text| parse(text, &reading)).collect();
                for game in &parsed {
                    number += 1;
                    let Err(error) = game else { continue };
                    let message = format!("{}, game {number}: {error}", input.display());
                    if self.strict {
                        bail!("{message}; without --strict it would be skipped");
                    }
                    progress.suspend(|| eprintln!("skipped {message}"));
                }
                packing.add(parsed)?;
                let tally = &packing.tally;
                progress.set_message(format!("{} games, {} samples", tally.packed, tally.samples));
            }
        }
        progress.finish_and_clear();
        let (tally, bytes) = packing.finish()?;
        println!(
            "{}: {} games, {} samples, {bytes} bytes ({:.2} a sample); \
             {} games without a target, {} skipped",
            self.output.display(),
            tally.packed,
            tally.samples,
            bytes as f64 / tally.samples as f64,
            tally.without_samples,
            tally.skipped,
        );
        Ok(())
    }

    /// A bar over the bytes of all inputs.
    fn progress(&self) -> anyhow::Result<ProgressBar> {
        let mut bytes = 0;
        for input in &self.inputs {
            let file = std::fs::metadata(input).with_context(|| input.display().to_string())?;
            bytes += file.len();
        }
        let style = "{elapsed} [{bar:40}] {binary_bytes}/{binary_total_bytes}, {eta} left, {msg}";
        let progress = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(style)?);
        progress.enable_steady_tick(Duration::from_millis(250));
        Ok(progress)
    }
}

/// A game and how many samples it gives.
type Parsed = Result<(Record, u64), GameError>;

/// What came of the games.
#[derive(Default)]
struct Tally {
    read: usize,
    packed: u64,
    samples: u64,
    without_samples: u64,
    skipped: u64,
}

/// Games waiting to fill a block.
#[derive(Default)]
struct Pending {
    records: Vec<Record>,
    samples: u64,
}

/// A shard in the making.
struct Packing {
    writer: ShardWriter,
    pending: Pending,
    tally: Tally,
}

impl Packing {
    /// Counts games and writes the blocks that they fill.
    fn add(&mut self, games: Vec<Parsed>) -> anyhow::Result<()> {
        let mut full = Vec::new();
        for game in games {
            self.tally.read += 1;
            match game {
                Err(_) => self.tally.skipped += 1,
                Ok((_, 0)) => self.tally.without_samples += 1,
                Ok((record, samples)) => {
                    self.tally.packed += 1;
                    self.tally.samples += samples;
                    self.pending.records.push(record);
                    self.pending.samples += samples;
                    if self.pending.samples >= SAMPLES_PER_BLOCK {
                        full.push(std::mem::take(&mut self.pending));
                    }
                }
            }
        }
        self.write(full)
    }

    /// Compresses blocks side by side and writes them in order.
    fn write(&mut self, blocks: Vec<Pending>) -> anyhow::Result<()> {
        let blocks: Vec<_> = blocks
            .into_par_iter()
            .map(|block| Block::new(&block.records, block.samples))
            .collect();
        for block in blocks {
            self.writer.append(&block?)?;
        }
        Ok(())
    }

    /// Completes the shard; returns what came of the games, and its size.
    fn finish(mut self) -> anyhow::Result<(Tally, u64)> {
        if self.tally.samples == 0 {
            bail!(
                "{} games hold no training target as they were to be read; \
                 see `train pack --help` on --evals and --played",
                self.tally.read
            );
        }
        if self.pending.samples > 0 {
            let last = std::mem::take(&mut self.pending);
            self.write(vec![last])?;
        }
        let bytes = self.writer.finish()?;
        Ok((self.tally, bytes))
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let temperature: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match temperature.is_finite() && temperature > 0.0 {
        true => Ok(temperature),
        false => Err("it must be positive".to_owned()),
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn parse(text: &[u8], reading: &Reading) -> Parsed {
    let record = pgn::parse_game(text)?;
    let samples = reading.samples(&record);
    Ok((record, samples))
}

/// The next games, enough to keep all threads busy; none at the end.
fn next_chunk(
    games: &mut impl Iterator<Item = std::io::Result<Vec<u8>>>,
) -> std::io::Result<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    let mut bytes = 0;
    while bytes < CHUNK {
        let Some(text) = games.next() else { break };
        let text = text?;
        bytes += text.len();
        texts.push(text);
    }
    Ok(texts)
}
