//! Converts searched games to V6 records and chunks.
//!
//! Every field has the same meaning as in Lc0's self-play, so that Lc0's rescorer and trainer can
//! read these chunks like Lc0's own.

use std::path::{Path, PathBuf};

use bytemuck::Zeroable;
use libdeflater::{CompressionLvl, Compressor};

use crate::atomic_file;
use crate::data::sample::Wdl;
use crate::encode::{Input, POLICY_SIZE};

use super::record::{ADJUDICATED, CUT_OFF, FORMAT, PROVEN, V6Record, VERSION};

/// The expected result of a position or a move, from the perspective of the side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectation {
    /// W − L in −1…1.
    pub q: f32,
    /// The probability of a draw.
    pub draw: f32,
    /// Expected number of plies to the end of the game, including the move itself; 0 if the network
    /// does not predict this number.
    pub moves_left: f32,
}

/// A position of a game with its search result.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// The position and its history.
    pub input: Input,
    /// The policy target: each legal move's policy index with the move's probability, for example
    /// its share of the visits of all moves. The probabilities sum to 1.
    pub policy: Vec<(u16, f32)>,
    /// The root's value.
    pub root: Expectation,
    /// The best move's value.
    pub best: Expectation,
    /// The value of the move played.
    pub played: Expectation,
    /// The network's evaluation of the position before the search, if known.
    pub network: Option<Expectation>,
    /// Number of root visits.
    pub visits: u32,
    /// Policy index of the best move.
    pub best_index: u16,
    /// Policy index of the move played.
    pub played_index: u16,
    /// Whether the best move's value is proven.
    pub is_proven: bool,
    /// The [`divergence`] of the visits from the network's policy at temperature 1.
    pub policy_divergence: f32,
}

/// How a game ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The result for White, if any.
    pub result: Option<Wdl>,
    /// Whether the game was adjudicated or resigned rather than played out.
    pub is_adjudicated: bool,
    /// Whether the game reached the maximum length.
    pub is_cut_off: bool,
}

/// Returns the records of a game, one for each of its searched positions, in order.
///
/// The field `plies_left` counts down to the expected number of plies at the last position. That
/// number is 1 if the best move at the last position ends the game.
pub fn game_records(game: &[Searched], ending: &Ending) -> Vec<V6Record> {
    let Some(last) = game.last() else {
        return Vec::new();
    };
    let plies_left = last.best.moves_left.max(1.0);
    let records = game.iter().enumerate().map(|(ply, searched)| {
        let later = game.len() - 1 - ply;
        record(searched, ending, plies_left + later as f32)
    });
    records.collect()
}

fn record(searched: &Searched, ending: &Ending, plies_left: f32) -> V6Record {
    let mut probabilities = [-1.0; POLICY_SIZE];
    for &(index, share) in &searched.policy {
        if let Some(probability) = probabilities.get_mut(usize::from(index)) {
            *probability = share;
        }
    }
    let flag = |holds, flag| if holds { flag } else { 0 };
    let turn = searched.input.turn();
    let result = ending.result.map(|result| result.seen_by(turn));
    let network = searched.network.unwrap_or(Expectation {
        q: f32::NAN,
        draw: f32::NAN,
        moves_left: f32::NAN,
    });
    let mut record = V6Record {
        version: VERSION,
        input_format: FORMAT,
        probabilities,
        invariance_info: flag(searched.is_proven, PROVEN)
            | flag(ending.is_cut_off, CUT_OFF)
            | flag(ending.is_adjudicated, ADJUDICATED),
        root_q: searched.root.q,
        best_q: searched.best.q,
        root_d: searched.root.draw,
        best_d: searched.best.draw,
        root_m: searched.root.moves_left,
        best_m: searched.best.moves_left,
        plies_left,
        result_q: result.map_or(0.0, Wdl::q),
        result_d: f32::from(u8::from(result == Some(Wdl::Draw))),
        played_q: searched.played.q,
        played_d: searched.played.draw,
        played_m: searched.played.moves_left,
        orig_q: network.q,
        orig_d: network.draw,
        orig_m: network.moves_left,
        visits: searched.visits,
        played_idx: searched.played_index,
        best_idx: searched.best_index,
        policy_kld: searched.policy_divergence,
        ..V6Record::zeroed()
    };
    record.set_input(&searched.input);
    record
}

/// Returns the Kullback–Leibler divergence of a policy from a prior: the sum of p · ln(p / prior)
/// over the legal moves, given as pairs (p, prior).
pub fn divergence(policy: impl IntoIterator<Item = (f32, f32)>) -> f32 {
    let terms = policy.into_iter().map(|(p, prior)| match p > 0.0 {
        true => p * (p / prior.max(f32::MIN_POSITIVE)).ln(),
        false => 0.0,
    });
    terms.sum()
}

/// Why a chunk cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the chunk {}: {source}", path.display())]
pub struct ChunkWriteError {
    /// The path of the chunk.
    pub path: PathBuf,
    /// The system's error.
    pub source: std::io::Error,
}

/// Writes the records of one game as a chunk: one gzip file, written atomically.
///
/// # Errors
/// [`ChunkWriteError`] if the file cannot be written.
pub fn write_chunk(path: &Path, records: &[V6Record]) -> Result<(), ChunkWriteError> {
    let write = || {
        let bytes: &[u8] = bytemuck::cast_slice(records);
        let mut compressor = Compressor::new(CompressionLvl::default());
        let mut packed = vec![0; compressor.gzip_compress_bound(bytes.len())];
        let length = compressor
            .gzip_compress(bytes, &mut packed)
            .map_err(std::io::Error::other)?;
        atomic_file::write(path, &packed[..length])
    };
    write().map_err(|source| ChunkWriteError {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_zero_between_equals_and_grows_with_surprise() {
        assert_eq!(divergence([(0.5, 0.5), (0.5, 0.5), (0.0, 0.0)]), 0.0);
        let surprised = divergence([(0.9, 0.5), (0.1, 0.5)]);
        assert!((surprised - 0.368_06).abs() < 1e-4, "{surprised}");
        assert!(divergence([(1.0, 0.0)]).is_finite());
    }

    #[test]
    fn a_game_of_no_positions_has_no_records() {
        assert!(game_records(&[], &Ending::default()).is_empty());
    }
}
