//! Open shards and chunks, divided into blocks that any thread can decode in any order.

use crate::data::examples::Examples;
use crate::data::shard::{Shard, ShardError};
use crate::data::v6::{Chunks, V6Error, V6Fault};
use std::io::ErrorKind;
use std::path::Path;

use super::{LoaderError, Sampling};

/// An open source of samples.
pub(super) struct OpenSource {
    data: Data,
    /// Number of uses of each sample per epoch.
    pub(super) rate: f64,
}

enum Data {
    /// A shard, whose blocks contain games of both splits.
    Shard(Box<Shard>),
    /// Chunks. Each chunk is a block and belongs entirely to one split, so the chunks of the other
    /// split need not be read.
    Chunks { chunks: Chunks, mean: f64 },
}

/// Opens the sources of a configuration: first its shards, then its chunks.
pub(super) fn open(sampling: &Sampling) -> Result<Vec<OpenSource>, LoaderError> {
    let mut sources = Vec::new();
    for entry in &sampling.shards {
        sources.push(OpenSource {
            data: Data::Shard(Box::new(Shard::open(&entry.path)?)),
            rate: entry.rate,
        });
    }
    for entry in &sampling.chunks {
        let chunks = Chunks::open(&entry.path)?;
        let mean = chunks.mean_records();
        sources.push(OpenSource {
            data: Data::Chunks { chunks, mean },
            rate: entry.rate,
        });
    }
    Ok(sources)
}

impl OpenSource {
    /// Returns the data's path.
    pub(super) fn path(&self) -> &Path {
        match &self.data {
            Data::Shard(shard) => &shard.path,
            Data::Chunks { chunks, .. } => &chunks.root,
        }
    }

    pub(super) fn blocks(&self) -> usize {
        match &self.data {
            Data::Shard(shard) => shard.blocks().len(),
            Data::Chunks { chunks, .. } => chunks.len(),
        }
    }

    /// Returns the approximate number of examples in a block, counting both splits.
    pub(super) fn expected(&self, block: usize, examples: &impl Examples) -> f64 {
        match &self.data {
            Data::Shard(shard) => {
                let entry = &shard.blocks()[block];
                examples.expected(entry.games as f64, entry.samples as f64)
            }
            // Lc0 writes each game to a separate chunk.
            Data::Chunks { mean, .. } => examples.expected(1.0, *mean),
        }
    }

    /// Returns the hash that selects a block's split, or `None` if the split is selected separately
    /// for each game of the block.
    pub(super) fn game(&self, block: usize) -> Option<u64> {
        match &self.data {
            Data::Shard(_) => None,
            Data::Chunks { chunks, .. } => Some(chunks.hash(block)),
        }
    }

    /// Announces that a block will soon be decoded.
    pub(super) fn announce(&self, block: usize) {
        if let Data::Shard(shard) = &self.data {
            shard.announce(block);
        }
    }

    /// Decodes a block and passes examples to `emit`. `admits` selects the games by the hash of
    /// their moves, and `keep` the examples of these games. Unusable records are passed to `bad`;
    /// if `bad` returns an error, decoding stops.
    pub(super) fn decode<E: Examples>(
        &self,
        block: usize,
        examples: &E,
        admits: impl Fn(u64) -> bool,
        mut keep: impl FnMut() -> bool,
        mut emit: impl FnMut(E::Example),
        mut bad: impl FnMut(LoaderError) -> Result<(), LoaderError>,
    ) -> Result<(), LoaderError> {
        let shard = match &self.data {
            Data::Shard(shard) => shard,
            Data::Chunks { chunks, .. } => {
                return match chunks.read(block) {
                    Ok(chunk) => examples.of_chunk(&chunk, keep, emit, |error| bad(error.into())),
                    // The file cannot be read at all.
                    Err(error) if is_io_error(&error) => Err(error.into()),
                    Err(error) => bad(error.into()),
                };
            }
        };
        let records = match shard.read(block) {
            Ok(records) => records,
            // The file cannot be read at all.
            Err(error @ ShardError::Io { .. }) => return Err(error.into()),
            Err(error) => return bad(error.into()),
        };
        for (game, record) in records.iter().enumerate() {
            if !admits(record.hash()) {
                continue;
            }
            let rules = &shard.header.rules;
            if let Err(source) = examples.of_record(record, rules, &mut keep, &mut emit) {
                let error = ShardError::Replay {
                    path: shard.path.clone(),
                    block,
                    game,
                    source,
                };
                bad(error.into())?;
            }
        }
        Ok(())
    }
}

/// Returns whether the error was caused by the file system rather than by the file's contents.
fn is_io_error(error: &V6Error) -> bool {
    matches!(&error.fault, V6Fault::Io(error) if error.kind() != ErrorKind::UnexpectedEof)
}
