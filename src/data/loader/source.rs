//! Training data as blocks, which can be decoded in any order and on any
//! thread.

use crate::data::replay::{VariationWeight, replay};
use crate::data::sample::Sample;
use crate::data::shard::{Shard, ShardError};
use crate::data::v6::{Chunks, V6Error, V6Fault};
use std::io::ErrorKind;

use super::{LoaderError, Sampling};

/// One source of samples, open.
pub(super) struct Source {
    data: Data,
    /// How often an epoch goes through it.
    rate: f64,
}

enum Data {
    /// The blocks are the shard's; each holds games of both splits.
    Shard(Box<Shard>),
    /// The blocks are the chunks; each belongs to one split as a whole, so
    /// that those of the other need not be read.
    Chunks { chunks: Chunks, mean: f64 },
}

/// Opens the sources of a configuration: its shards, then its chunks.
pub(super) fn open(sampling: &Sampling) -> Result<Vec<Source>, LoaderError> {
    let mut sources = Vec::new();
    for entry in &sampling.shards {
        sources.push(Source {
            data: Data::Shard(Box::new(Shard::open(&entry.path)?)),
            rate: entry.rate,
        });
    }
    for entry in &sampling.chunks {
        let chunks = Chunks::open(&entry.path)?;
        let mean = chunks.mean_records();
        sources.push(Source {
            data: Data::Chunks { chunks, mean },
            rate: entry.rate,
        });
    }
    Ok(sources)
}

impl Source {
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn blocks(&self) -> usize {
        match &self.data {
            Data::Shard(shard) => shard.blocks().len(),
            Data::Chunks { chunks, .. } => chunks.len(),
        }
    }

    /// About how many samples a block holds, of both splits.
    pub(super) fn samples(&self, block: usize) -> f64 {
        match &self.data {
            Data::Shard(shard) => shard.blocks()[block].samples as f64,
            Data::Chunks { mean, .. } => *mean,
        }
    }

    /// The number that decides which split a block belongs to; `None` if its
    /// games decide that for themselves.
    pub(super) fn game(&self, block: usize) -> Option<u64> {
        match &self.data {
            Data::Shard(_) => None,
            Data::Chunks { chunks, .. } => Some(chunks.hash(block)),
        }
    }

    /// Says that a block will be decoded soon.
    pub(super) fn announce(&self, block: usize) {
        if let Data::Shard(shard) = &self.data {
            shard.announce(block);
        }
    }

    /// Decodes a block. Of the games that `admits` lets in, by a number that
    /// equal games share, the samples for which `keep` says so, by their surprise,
    /// go to `emit`; what cannot be used goes to `bad`, whose error ends the
    /// decoding.
    pub(super) fn decode(
        &self,
        block: usize,
        variations: VariationWeight,
        admits: impl Fn(u64) -> bool,
        mut keep: impl FnMut(Option<f32>) -> bool,
        mut emit: impl FnMut(Sample),
        mut bad: impl FnMut(LoaderError) -> Result<(), LoaderError>,
    ) -> Result<(), LoaderError> {
        let shard = match &self.data {
            Data::Shard(shard) => shard,
            Data::Chunks { chunks, .. } => {
                return match chunks.read(block) {
                    Ok(chunk) => chunk.samples(keep, emit, |error| bad(error.into())),
                    // Without the file there is nothing to go on with.
                    Err(error) if is_of_the_system(&error) => Err(error.into()),
                    Err(error) => bad(error.into()),
                };
            }
        };
        let records = match shard.read(block) {
            Ok(records) => records,
            // Without the file there is nothing to go on with.
            Err(error @ ShardError::Io { .. }) => return Err(error.into()),
            Err(error) => return bad(error.into()),
        };
        for (game, record) in records.iter().enumerate() {
            if !admits(record.hash()) {
                continue;
            }
            let reading = &shard.header().reading;
            if let Err(source) = replay(record, reading, variations, &mut keep, &mut emit) {
                let error = ShardError::Replay {
                    path: shard.path().to_owned(),
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

/// Whether it is the file system that failed, not the file.
fn is_of_the_system(error: &V6Error) -> bool {
    matches!(&error.fault, V6Fault::Io(error) if error.kind() != ErrorKind::UnexpectedEof)
}
