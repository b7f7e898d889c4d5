//! Packs games and Lc0 chunks into a shard.

use super::held_out::{HeldOut, is_held_out};
use super::label::TargetRules;
use super::pgn::{GameText, Games, read_game};
use super::record::Record;
use super::shard::{Block, Header, SAMPLES_PER_BLOCK, ShardError, ShardWriter};
use super::v6::Chunks;
use rayon::prelude::*;
use std::error::Error;
use std::io::{self, BufRead};
use std::path::Path;

/// Number of bytes of text that are parsed in parallel between two writes.
const TEXT: usize = 16 << 20;
/// Number of chunks parsed in parallel.
const CHUNKS: usize = 256;
/// Number of games passed to the judge between two progress events.
const JUDGED: usize = 512;

/// Options for packing.
#[derive(Debug, Default)]
pub struct PackOptions {
    /// The held-out positions; games that reach one of them are left out.
    pub held_out: HeldOut,
    /// The share of games left out for validation, selected by a hash of a game's moves.
    pub hold_out: f64,
    /// Maximum number of games and records to read.
    pub limit: Option<usize>,
    /// Whether packing stops at the first unusable game, part of a game or record.
    pub is_strict: bool,
}

/// Counts of packed games and their samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackCounts {
    /// Number of games and records read, including unusable ones.
    pub read: usize,
    /// Number of games in the shard.
    pub packed: u64,
    /// Number of samples that the packed games give.
    pub samples: u64,
    /// Number of games without a training target.
    pub without_samples: u64,
    /// Number of unusable games and records.
    pub skipped: u64,
    /// Number of games held out.
    pub left_out: u64,
    /// Number of games truncated at a null move.
    pub cut: u64,
    /// Number of variations left out because they cannot be read.
    pub bad_variations: u64,
}

/// An event to report while packing.
#[derive(Debug)]
pub enum PackEvent<'a> {
    /// An unusable game, record or part of a game was skipped: its location and the reason.
    Skipped(&'a str),
    /// Games were added.
    Added(&'a PackCounts),
}

/// Why no shard was written.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A game, a part of a game or a record is unusable, and packing is strict.
    #[error("{0}")]
    Unusable(String),
    /// No game contains a sample.
    #[error("none of {} games provides a training target", .0.read)]
    Nothing(PackCounts),
    /// The judge failed.
    #[error(transparent)]
    Judge(Box<dyn Error + Send + Sync>),
    /// The games cannot be compressed.
    #[error(transparent)]
    Compression(io::Error),
    /// The shard cannot be written.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

/// Replaces games with new records, and may leave some of them out. The second argument is the
/// number of the first game.
pub type Judge<'a> = dyn Fn(&[Record], u64) -> Judged + 'a;

/// The output of a [`Judge`].
pub type Judged = Result<Vec<Record>, Box<dyn Error + Send + Sync>>;

/// Writes a shard.
pub struct Packer<'a> {
    rules: TargetRules,
    options: PackOptions,
    judge: Option<&'a Judge<'a>>,
    report: &'a mut dyn FnMut(PackEvent),
    writer: ShardWriter,
    pending: Pending,
    counts: PackCounts,
}

/// Games collected for the next block.
#[derive(Default)]
struct Pending {
    records: Vec<Record>,
    samples: u64,
}

impl<'a> Packer<'a> {
    /// Starts a shard at `output`. The rules in the header define its samples.
    ///
    /// # Errors
    /// [`ShardError`] if the shard cannot be written there.
    pub fn create(
        output: &Path,
        header: &Header,
        options: PackOptions,
        judge: Option<&'a Judge<'a>>,
        report: &'a mut dyn FnMut(PackEvent),
    ) -> Result<Packer<'a>, ShardError> {
        Ok(Packer {
            rules: header.rules,
            options,
            judge,
            report,
            writer: ShardWriter::create(output, header)?,
            pending: Pending::default(),
            counts: PackCounts::default(),
        })
    }

    /// Packs games in PGN; `source` names their file in messages.
    ///
    /// # Errors
    /// [`PackError`]
    pub fn games(&mut self, games: Games<impl BufRead>, source: &Path) -> Result<(), PackError> {
        let source = source.display();
        let mut games = games.take(self.left());
        loop {
            let (texts, damage) = next_texts(&mut games);
            if texts.is_empty() && damage.is_none() {
                return Ok(());
            }
            let parsed: Vec<_> = texts.par_iter().map(|text| read_game(text)).collect();
            let mut records = Vec::with_capacity(parsed.len());
            for (text, game) in texts.iter().zip(parsed) {
                let place = format!("{source}, {}", text.place);
                match game {
                    Ok(game) => {
                        if let Some(null) = game.null_move {
                            self.counts.cut += 1;
                            self.leave_out(&format!(
                                "the rest of {place}, from the null move {null}"
                            ))?;
                        }
                        for error in game.bad_variations {
                            self.counts.bad_variations += 1;
                            self.leave_out(&format!("a variation of {place}: {error}"))?;
                        }
                        records.push(game.record);
                    }
                    Err(error) => self.skip(&format!("{place}: {error}"))?,
                }
            }
            self.add(records)?;
            if let Some(error) = damage {
                return self.skip(&format!("the rest of {source}: {error}"));
            }
        }
    }

    /// Packs the games of Lc0 chunks.
    ///
    /// # Errors
    /// [`PackError`]
    pub fn chunks(&mut self, chunks: &Chunks) -> Result<(), PackError> {
        for first in (0..chunks.len()).step_by(CHUNKS) {
            if self.left() == 0 {
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
                    self.skip(&fault.to_string())?;
                }
                records.truncate(self.left());
                self.add(records)?;
            }
        }
        Ok(())
    }

    /// Completes the shard. Returns the counts and its size in bytes.
    ///
    /// # Errors
    /// [`PackError`]
    pub fn finish(mut self) -> Result<(PackCounts, u64), PackError> {
        if self.counts.samples == 0 {
            return Err(PackError::Nothing(self.counts));
        }
        if self.pending.samples > 0 {
            let last = std::mem::take(&mut self.pending);
            self.write(vec![last])?;
        }
        let bytes = self.writer.finish()?;
        Ok((self.counts, bytes))
    }

    /// Returns the number of further games that may be read.
    fn left(&self) -> usize {
        let limit = self.options.limit;
        limit.map_or(usize::MAX, |limit| limit.saturating_sub(self.counts.read))
    }

    /// Counts games and writes completed blocks.
    fn add(&mut self, records: Vec<Record>) -> Result<(), PackError> {
        if self.judge.is_none() {
            return self.add_some(records);
        }
        let mut records = records.into_iter();
        loop {
            let some: Vec<Record> = records.by_ref().take(JUDGED).collect();
            if some.is_empty() {
                return Ok(());
            }
            self.add_some(some)?;
        }
    }

    fn add_some(&mut self, records: Vec<Record>) -> Result<(), PackError> {
        let first = self.counts.read as u64;
        self.counts.read += records.len();
        let PackOptions {
            held_out, hold_out, ..
        } = &self.options;
        let is_left_out = |record: &Record| {
            // Records that cannot be replayed are also left out.
            is_held_out(record.hash(), *hold_out)
                || held_out.contains_any_of(record).unwrap_or(true)
        };
        let read = records.len();
        let mut records: Vec<Record> = records
            .into_par_iter()
            .filter(|record| !is_left_out(record))
            .collect();
        self.counts.left_out += (read - records.len()) as u64;
        if let Some(judge) = self.judge {
            let kept = records.len();
            records = judge(&records, first).map_err(PackError::Judge)?;
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
        (self.report)(PackEvent::Added(&self.counts));
        Ok(())
    }

    /// Skips an unusable game or record.
    fn skip(&mut self, fault: &str) -> Result<(), PackError> {
        self.leave_out(fault)?;
        self.counts.read += 1;
        self.counts.skipped += 1;
        Ok(())
    }

    /// Reports an unusable game, part of a game or record.
    fn leave_out(&mut self, fault: &str) -> Result<(), PackError> {
        if self.options.is_strict {
            return Err(PackError::Unusable(fault.to_owned()));
        }
        (self.report)(PackEvent::Skipped(fault));
        Ok(())
    }

    /// Compresses blocks in parallel and writes them in order.
    fn write(&mut self, blocks: Vec<Pending>) -> Result<(), PackError> {
        let blocks: Vec<_> = blocks
            .into_par_iter()
            .map(|block| Block::new(&block.records, block.samples))
            .collect();
        for block in blocks {
            let block = block.map_err(PackError::Compression)?;
            self.writer.append(&block)?;
        }
        Ok(())
    }
}

/// Returns the texts of the next games, enough to keep all threads busy, or none at the end.
fn next_texts(
    games: &mut impl Iterator<Item = io::Result<GameText>>,
) -> (Vec<GameText>, Option<io::Error>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Curve;

    const GAMES: &str = "[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n\
                         [Result \"1-0\"]\n\n1. e4 Nonsense 1-0\n\n\
                         [Result \"1-0\"]\n\n1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0\n";

    /// Packs [`GAMES`]; returns the result and the skipped games.
    fn pack(
        options: PackOptions,
        judge: Option<&Judge>,
    ) -> (Result<(PackCounts, u64), PackError>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let header = Header {
            sources: Vec::new(),
            rules: TargetRules {
                evals: None,
                played: true,
                noise: false,
                curve: Curve::Lichess,
                alternatives: None,
            },
        };
        let mut skipped = Vec::new();
        let mut report = |event: PackEvent| {
            if let PackEvent::Skipped(fault) = event {
                skipped.push(fault.to_owned());
            }
        };
        let path = folder.path().join("x.shard");
        let mut packer = Packer::create(&path, &header, options, judge, &mut report).unwrap();
        let games = Games::new(GAMES.as_bytes());
        let packed = packer.games(games, Path::new("x.pgn"));
        (packed.and_then(|()| packer.finish()), skipped)
    }

    #[test]
    fn games_are_counted_and_the_unusable_named() {
        let (packed, skipped) = pack(PackOptions::default(), None);
        let counts = packed.unwrap().0;
        assert_eq!((counts.read, counts.packed, counts.skipped), (3, 2, 1));
        assert_eq!(counts.samples, 4 + 7);
        assert!(skipped.len() == 1 && skipped[0].starts_with("x.pgn, game 2, line 5: "));

        let strict = PackOptions {
            is_strict: true,
            ..PackOptions::default()
        };
        let error = pack(strict, None).0.unwrap_err();
        assert!(
            error.to_string().starts_with("x.pgn, game 2, line 5: "),
            "{error}"
        );
    }

    #[test]
    fn games_are_limited_left_out_and_judged() {
        let first = PackOptions {
            limit: Some(1),
            ..PackOptions::default()
        };
        assert_eq!(pack(first, None).0.unwrap().0.samples, 4);

        let none = PackOptions {
            hold_out: 1.0,
            ..PackOptions::default()
        };
        let error = pack(none, None).0.unwrap_err();
        assert!(matches!(error, PackError::Nothing(counts) if counts.left_out == 2));

        let judge = |records: &[Record], first: u64| -> Judged {
            assert_eq!((records.len(), first), (2, 1));
            Ok(records[1..].to_vec())
        };
        let counts = pack(PackOptions::default(), Some(&judge)).0.unwrap().0;
        assert_eq!((counts.samples, counts.without_samples), (7, 1));

        let judge = |_: &[Record], _: u64| -> Judged { Err("it is out of order".into()) };
        let error = pack(PackOptions::default(), Some(&judge)).0.unwrap_err();
        assert_eq!(error.to_string(), "it is out of order");
    }
}
