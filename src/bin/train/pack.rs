//! `train pack`: games and chunks into a shard.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::games::make_folder;
use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use tessera::data::Curve;
use tessera::data::held_out::HeldOut;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::pgn;
use tessera::data::record::Record;
use tessera::data::shard::{Block, Header, SAMPLES_PER_BLOCK, ShardWriter};
use tessera::data::v6::Chunks;
use tessera::eval::{epd, puzzles};

/// Bytes of text that are parsed side by side before anything is written.
const TEXT: usize = 16 << 20;
/// Chunks that are parsed side by side.
const CHUNKS: usize = 256;

/// Arguments of `train pack`.
#[derive(Args)]
pub struct Pack {
    /// Games: PGN, plain or compressed with gzip or zstd; or training chunks of
    /// Lc0 (versions 6 and 7), tars and folders of them.
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The shard to write.
    #[arg(short, long, value_name = "OUT.shard")]
    output: PathBuf,
    /// What a score after a move refers to: the move, by the engine that chose it
    /// (chooser), or the position after it, by an analysis (analysis).
    #[arg(long, value_enum)]
    evals: Option<EvalRefersTo>,
    /// Make every move of the games a policy target, as for human games.
    #[arg(long, conflicts_with = "noise")]
    played: bool,
    /// The games contain injected random moves: those without a score.
    #[arg(long, requires = "evals")]
    noise: bool,
    /// The curve from the engines' scores to values.
    #[arg(long, value_enum, default_value = "lichess")]
    curve: Curve,
    /// Merge the scored moves of a position (`train label --multipv`) into one
    /// policy target: a softmax of their chances of winning at this temperature,
    /// such as 0.05.
    #[arg(long, value_name = "TEMPERATURE", value_parser = temperature, requires = "evals")]
    alternatives: Option<f32>,
    /// Leave out games that reach a position of these puzzles (CSV in Lichess's
    /// format) or test suites (EPD); may be repeated.
    #[arg(long, value_name = "FILE")]
    without: Vec<PathBuf>,
    /// Stop at the first unusable game or record instead of skipping it.
    #[arg(long)]
    strict: bool,
    /// Read at most this many games.
    #[arg(long, value_name = "N")]
    limit_games: Option<usize>,
}

impl Pack {
    /// Packs the games.
    pub fn run(self) -> anyhow::Result<()> {
        let rules = TargetRules {
            evals: self.evals,
            played: self.played,
            noise: self.noise,
            curve: self.curve,
            alternatives: self.alternatives,
        };
        if self.alternatives.is_some() && self.evals != Some(EvalRefersTo::MovePlayed) {
            bail!("--alternatives needs --evals chooser: an analysis scores what was played");
        }
        let header = Header {
            sources: self.inputs.iter().map(|path| file_name(path)).collect(),
            rules,
        };
        let held_out = held_out(&self.without)?;
        make_folder(&self.output)?;
        let progress = self.progress()?;
        let mut packing = Packing {
            progress,
            held_out,
            writer: ShardWriter::create(&self.output, &header)?,
            rules,
            is_strict: self.strict,
            pending: Pending::default(),
            counts: Counts::default(),
        };
        for input in &self.inputs {
            if Chunks::are_at(input).with_context(|| input.display().to_string())? {
                self.pack_chunks(&Chunks::open(input)?, &mut packing)?;
            } else {
                self.pack_pgn(input, &mut packing)?;
            }
        }
        packing.progress.finish_and_clear();
        let (counts, bytes) = packing.finish()?;
        println!(
            "{}: {} games, {} samples, {bytes} bytes ({:.2} a sample); \
             {} games without a target, {} skipped{}",
            self.output.display(),
            counts.packed,
            counts.samples,
            bytes as f64 / counts.samples as f64,
            counts.without_samples,
            counts.skipped,
            match self.without.is_empty() {
                true => String::new(),
                false => format!(", {} left out", counts.left_out),
            },
        );
        Ok(())
    }

    fn pack_pgn(&self, input: &Path, packing: &mut Packing) -> anyhow::Result<()> {
        if self.evals.is_none() && !self.played {
            bail!("a PGN's targets need naming: give --evals, --played or both");
        }
        let named = || input.display().to_string();
        let counted = packing.progress.clone();
        let left = self.left(packing);
        let mut games = pgn::open(input, |file| counted.wrap_read(file))
            .with_context(named)?
            .take(left);
        let mut number = 0;
        loop {
            let (texts, damage) = next_texts(&mut games);
            if texts.is_empty() && damage.is_none() {
                return Ok(());
            }
            let parsed: Vec<_> = texts.par_iter().map(|text| pgn::parse_game(text)).collect();
            let mut records = Vec::with_capacity(parsed.len());
            for game in parsed {
                number += 1;
                match game {
                    Ok(record) => records.push(record),
                    Err(error) => {
                        packing.skip(&format!("{}, game {number}: {error}", input.display()))?;
                    }
                }
            }
            packing.add(records)?;
            if let Some(error) = damage {
                return packing.skip(&format!("the rest of {}: {error}", input.display()));
            }
        }
    }

    fn pack_chunks(&self, chunks: &Chunks, packing: &mut Packing) -> anyhow::Result<()> {
        for first in (0..chunks.len()).step_by(CHUNKS) {
            if self.left(packing) == 0 {
                break;
            }
            let read: Vec<_> = (first..chunks.len().min(first + CHUNKS))
                .into_par_iter()
                .map(|chunk| {
                    let mut faults = Vec::new();
                    let records = chunks.read(chunk).and_then(|chunk| {
                        chunk.games(|fault| {
                            faults.push(fault);
                            Ok(())
                        })
                    });
                    let records = records.unwrap_or_else(|fault| {
                        faults.push(fault);
                        Vec::new()
                    });
                    (records, faults)
                })
                .collect();
            for (mut records, faults) in read {
                for fault in faults {
                    packing.skip(&fault.to_string())?;
                }
                records.truncate(self.left(packing));
                packing.add(records)?;
            }
        }
        Ok(())
    }

    /// Number of games still to be read.
    fn left(&self, packing: &Packing) -> usize {
        self.limit_games.map_or(usize::MAX, |limit| {
            limit.saturating_sub(packing.counts.read)
        })
    }

    /// A bar over the bytes of all files of games.
    fn progress(&self) -> anyhow::Result<ProgressBar> {
        let mut bytes = 0;
        for input in &self.inputs {
            let file = std::fs::metadata(input).with_context(|| input.display().to_string())?;
            if file.is_file() {
                bytes += file.len();
            }
        }
        let style = "{elapsed} [{bar:40}] {binary_bytes}/{binary_total_bytes}, {eta} left, {msg}";
        let progress = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(style)?);
        progress.enable_steady_tick(Duration::from_millis(250));
        Ok(progress)
    }
}

/// Counts of games and samples.
#[derive(Default)]
struct Counts {
    read: usize,
    packed: u64,
    samples: u64,
    without_samples: u64,
    skipped: u64,
    left_out: u64,
}

/// Games waiting to fill a block.
#[derive(Default)]
struct Pending {
    records: Vec<Record>,
    samples: u64,
}

/// A shard in the making.
struct Packing {
    rules: TargetRules,
    held_out: HeldOut,
    is_strict: bool,
    progress: ProgressBar,
    writer: ShardWriter,
    pending: Pending,
    counts: Counts,
}

impl Packing {
    /// Counts games and writes the blocks that they fill.
    fn add(&mut self, records: Vec<Record>) -> anyhow::Result<()> {
        let rules = &self.rules;
        let held_out = &self.held_out;
        let judged: Vec<(u64, bool)> = records
            .par_iter()
            .map(|record| {
                // A record that cannot be played through is left out too.
                let is_held_out = held_out.contains_any_of(record).unwrap_or(true);
                (rules.samples(record), is_held_out)
            })
            .collect();
        let mut full = Vec::new();
        for (record, (samples, is_held_out)) in records.into_iter().zip(judged) {
            self.counts.read += 1;
            if is_held_out {
                self.counts.left_out += 1;
                continue;
            }
            if samples == 0 {
                self.counts.without_samples += 1;
                continue;
            }
            self.counts.packed += 1;
            self.counts.samples += samples;
            self.pending.records.push(record);
            self.pending.samples += samples;
            if self.pending.samples >= SAMPLES_PER_BLOCK {
                full.push(std::mem::take(&mut self.pending));
            }
        }
        self.write(full)?;
        let counts = &self.counts;
        let message = format!("{} games, {} samples", counts.packed, counts.samples);
        self.progress.set_message(message);
        Ok(())
    }

    /// Skips an unusable game or record.
    fn skip(&mut self, fault: &str) -> anyhow::Result<()> {
        if self.is_strict {
            bail!("{fault}; without --strict it would be skipped");
        }
        self.counts.read += 1;
        self.counts.skipped += 1;
        self.progress.suspend(|| eprintln!("skipped {fault}"));
        Ok(())
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

    /// Completes the shard; returns the counts and its size in bytes.
    fn finish(mut self) -> anyhow::Result<(Counts, u64)> {
        if self.counts.samples == 0 {
            bail!(
                "{} games hold no training target under these options; \
                 see `train pack --help` on --evals and --played",
                self.counts.read
            );
        }
        if self.pending.samples > 0 {
            let last = std::mem::take(&mut self.pending);
            self.write(vec![last])?;
        }
        let bytes = self.writer.finish()?;
        Ok((self.counts, bytes))
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let temperature: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match temperature.is_finite() && temperature > 0.0 {
        true => Ok(temperature),
        false => Err("it must be positive".to_owned()),
    }
}

/// The positions of puzzles and suites.
fn held_out(files: &[PathBuf]) -> anyhow::Result<HeldOut> {
    let mut keys = Vec::new();
    for file in files {
        if file.extension().is_some_and(|extension| extension == "csv") {
            for puzzle in puzzles::read(file)? {
                keys.extend(puzzle.positions().map(|game| game.current().key));
            }
        } else {
            // Unusable lines of a suite are skipped when it is run, too.
            let (entries, _) = epd::read(file)?;
            keys.extend(entries.iter().map(|entry| entry.game.current().key));
        }
    }
    Ok(keys.into_iter().collect())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The next games, enough to keep all threads busy; none at the end.
fn next_texts(
    games: &mut impl Iterator<Item = std::io::Result<Vec<u8>>>,
) -> (Vec<Vec<u8>>, Option<std::io::Error>) {
    let mut texts = Vec::new();
    let mut bytes = 0;
    while bytes < TEXT {
        let Some(text) = games.next() else { break };
        let text = match text {
            Ok(text) => text,
            Err(error) => return (texts, Some(error)),
        };
        bytes += text.len();
        texts.push(text);
    }
    (texts, None)
}
