//! `train pack`: games and chunks into a shard.

use std::io::{BufRead, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::games::{make_folder, range, share};
use super::policies::{PolicyArguments, PolicyOptions, policy};
use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use tessera::chess::RATING_SPREAD;
use tessera::data::held_out::{HeldOut, is_held_out};
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::pgn::{Games, read_game};
use tessera::data::record::Record;
use tessera::data::shard::{Block, Header, SAMPLES_PER_BLOCK, ShardWriter};
use tessera::data::v6::Chunks;
use tessera::data::{Contents, Curve};
use tessera::error_report::tell;
use tessera::eval::positions;
use tessera::label::Teaching;
use tessera::overwrite;

/// Bytes of text that are parsed side by side before anything is written.
const TEXT: usize = 16 << 20;
/// Chunks that are parsed side by side.
const CHUNKS: usize = 256;
/// Games that teachers judge between two signs of progress.
const TAUGHT: usize = 512;

/// Arguments of `train pack`.
#[derive(Args)]
#[command(group(ArgGroup::new("networks").args(["teachers"])))]
pub struct Pack {
    /// Games: PGN, plain or compressed with gzip or zstd; or training chunks of
    /// Lc0 (versions 6 and 7), tars and folders of them. All but folders may come
    /// through a pipe, such as /dev/stdin.
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
    /// format) or test suites (EPD, or FEN on each line), plain or compressed with
    /// gzip or zstd; may be repeated.
    #[arg(long, value_name = "FILE")]
    without: Vec<PathBuf>,
    /// Leave out the share of games that `data.validation` of this size would keep
    /// for validation; a hash of a game's moves decides.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    hold_out: f64,
    /// Take the targets of policy and value from this network; may be repeated, with
    /// a rating each. A position asks one near its mover's rating (see
    /// --rating-spread). Temperatures above 1 (the default) flatten the policy.
    /// Example: maia-1500.pt,elo=1500.
    #[arg(
        long = "teacher",
        value_name = "FILE[,temperature=T][,elo=N]",
        value_parser = policy,
        requires = "played",
        conflicts_with = "evals"
    )]
    teachers: Vec<PolicyOptions>,
    #[command(flatten)]
    networks: PolicyArguments,
    /// With several --teacher: the standard deviation, in rating points, of the
    /// Gaussian by which a position's teacher is drawn; 0 takes the nearest.
    #[arg(long, default_value_t = RATING_SPREAD, value_name = "POINTS", requires = "networks")]
    rating_spread: u32,
    /// With --teacher: both players of each game get the same rating, drawn from this
    /// range, so that every rating is taught as often; their results are dropped. For
    /// games that were sampled. Example: 1000..2199.
    #[arg(long, value_name = "A..B", value_parser = ratings, requires = "networks")]
    random_ratings: Option<(u16, u16)>,
    /// With --teacher: the share of the move played in the policy's target.
    #[arg(
        long, default_value_t = 0.0, value_name = "SHARE",
        value_parser = share, requires = "networks"
    )]
    played_share: f64,
    /// With --teacher: games lose their first plies, a random number of this range,
    /// which thins out openings.
    #[arg(long, value_name = "A..B", value_parser = range, requires = "networks")]
    cut: Option<(usize, usize)>,
    /// With --teacher: seed of all random choices.
    #[arg(long, default_value_t = 0, requires = "networks")]
    seed: u64,
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
        let teachers = self.teachers.iter().map(PolicyOptions::file);
        let read = self.inputs.iter().chain(&self.without);
        overwrite::refuse(&self.output, read.map(PathBuf::as_path).chain(teachers))?;
        let held_out = held_out(&self.without)?;
        make_folder(&self.output)?;
        let progress = self.progress()?;
        let mut packing = Packing {
            progress,
            held_out,
            hold_out: self.hold_out,
            teaching: self.teaching()?,
            writer: ShardWriter::create(&self.output, &header)?,
            rules,
            is_strict: self.strict,
            pending: Pending::default(),
            counts: Counts::default(),
        };
        for input in &self.inputs {
            let counted = packing.progress.clone();
            match Contents::open(input, |file| counted.wrap_read(file))? {
                Contents::Chunks(chunks) => {
                    let files = (0..chunks.len()).map(|chunk| chunks.path(chunk));
                    overwrite::refuse(&self.output, files)?;
                    self.pack_chunks(&chunks, &mut packing)?;
                }
                Contents::Games(games) => self.pack_games(games, input, &mut packing)?,
                Contents::Shard(_) => bail!("{} is a shard already", input.display()),
            }
        }
        packing.progress.finish_and_clear();
        let (counts, bytes) = packing.finish()?;
        writeln!(
            stdout(),
            "{}: {} games, {} samples, {bytes} bytes ({:.2} a sample); \
             {} games without a target, {} skipped{}{}",
            self.output.display(),
            counts.packed,
            counts.samples,
            bytes as f64 / counts.samples as f64,
            counts.without_samples,
            counts.skipped,
            match self.without.is_empty() && self.hold_out == 0.0 {
                true => String::new(),
                false => format!(", {} left out", counts.left_out),
            },
            match counts.cut {
                0 => String::new(),
                cut => format!(", {cut} ended by a null move"),
            },
        )?;
        Ok(())
    }

    fn pack_games(
        &self,
        games: Games<impl BufRead>,
        input: &Path,
        packing: &mut Packing,
    ) -> anyhow::Result<()> {
        if self.evals.is_none() && !self.played {
            bail!("a PGN's targets need naming: give --evals, --played or both");
        }
        let mut games = games.take(self.left(packing));
        let mut number = 0;
        loop {
            let (texts, damage) = next_texts(&mut games);
            if texts.is_empty() && damage.is_none() {
                return Ok(());
            }
            let parsed: Vec<_> = texts.par_iter().map(|text| read_game(text)).collect();
            let mut records = Vec::with_capacity(parsed.len());
            for game in parsed {
                number += 1;
                match game {
                    Ok(game) => {
                        packing.counts.cut += u64::from(game.is_cut);
                        records.push(game.record);
                    }
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

    /// The teachers, if there are any.
    fn teaching(&self) -> anyhow::Result<Option<Teaching>> {
        if self.teachers.is_empty() {
            return Ok(None);
        }
        let callers = rayon::current_num_threads();
        let teachers = self.networks.players(&self.teachers, callers)?;
        if teachers.len() > 1 && teachers.iter().any(|teacher| teacher.rating.is_none()) {
            bail!("several teachers need a rating each, as in --teacher maia-1500.pt,elo=1500");
        }
        let (first, last) = self.cut.unwrap_or_default();
        let mut teaching = Teaching::new(teachers);
        teaching.played = self.played_share as f32;
        teaching.spread = self.rating_spread;
        teaching.ratings = self.random_ratings.map(|(first, last)| first..=last);
        teaching.cut = first..=last;
        teaching.seed = self.seed;
        Ok(Some(teaching))
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
    /// Games that a null move ended.
    cut: u64,
}

impl Counts {
    /// Why there are no samples.
    fn nothing(&self) -> String {
        let read = self.read;
        if read == 0 {
            "there are no games in the input".to_owned()
        } else if self.skipped == read as u64 {
            format!("none of {read} games or records can be read, see above")
        } else if self.left_out > 0 && self.without_samples == 0 {
            format!(
                "all games are left out by --without or --hold-out: {}",
                self.left_out
            )
        } else {
            format!(
                "{read} games hold no training target under these options; \
                 see `train pack --help` on --evals and --played"
            )
        }
    }
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
    /// Share of the games left out for validation.
    hold_out: f64,
    teaching: Option<Teaching>,
    is_strict: bool,
    progress: ProgressBar,
    writer: ShardWriter,
    pending: Pending,
    counts: Counts,
}

impl Packing {
    /// Counts games and writes the blocks that they fill.
    fn add(&mut self, records: Vec<Record>) -> anyhow::Result<()> {
        if self.teaching.is_none() {
            return self.add_some(records);
        }
        let mut records = records.into_iter();
        loop {
            let some: Vec<Record> = records.by_ref().take(TAUGHT).collect();
            if some.is_empty() {
                return Ok(());
            }
            self.add_some(some)?;
        }
    }

    fn add_some(&mut self, records: Vec<Record>) -> anyhow::Result<()> {
        let first = self.counts.read as u64;
        self.counts.read += records.len();
        let (held_out, hold_out) = (&self.held_out, self.hold_out);
        let is_left_out = |record: &Record| {
            // A record that cannot be played through is left out too.
            is_held_out(record.hash(), hold_out) || held_out.contains_any_of(record).unwrap_or(true)
        };
        let read = records.len();
        let mut records: Vec<Record> = records
            .into_par_iter()
            .filter(|record| !is_left_out(record))
            .collect();
        self.counts.left_out += (read - records.len()) as u64;
        if let Some(teaching) = &self.teaching {
            let kept = records.len();
            records = teaching.teach(&records, first)?;
            self.counts.without_samples += (kept - records.len()) as u64;
        }
        let rules = &self.rules;
        let samples: Vec<u64> = records.par_iter().map(|it| rules.samples(it)).collect();
        let mut full = Vec::new();
        for (record, samples) in records.into_iter().zip(samples) {
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
        self.progress
            .suspend(|| tell(format_args!("skipped {fault}")));
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
            bail!(self.counts.nothing());
        }
        if self.pending.samples > 0 {
            let last = std::mem::take(&mut self.pending);
            self.write(vec![last])?;
        }
        let bytes = self.writer.finish()?;
        Ok((self.counts, bytes))
    }
}

fn ratings(text: &str) -> Result<(u16, u16), String> {
    let ends = text.split_once("..");
    let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ends {
        Some((first, last)) if first <= last => Ok((first, last)),
        _ => Err("write the lowest and the highest rating, as in 1000..2199".to_owned()),
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
        let (games, refused) = positions::read(file)?;
        for error in refused {
            tell(format_args!("--without does not leave out: {error}"));
        }
        keys.extend(games.iter().map(|game| game.current().key));
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
