//! Counts the moves of games in standard algebraic notation.

use super::record::Record;
use super::replay::{ReplayError, main_line};
use super::shard::{Shard, ShardError};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use shakmaty::san::SanPlus;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The number of times that each move was played, by its notation.
pub type MoveCounts = BTreeMap<String, u64>;

/// Why moves cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The shard cannot be read.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A game cannot be replayed.
    #[error("{}: {source}", path.display())]
    Replay {
        /// The shard.
        path: PathBuf,
        /// Why the game cannot be replayed.
        source: ReplayError,
    },
}

/// Counts the moves of all games in a shard that start at the initial position. The notation marks
/// checks and mates.
///
/// # Errors
/// [`CountError`] if the shard cannot be read or a game cannot be replayed.
pub fn count_moves(shard: &Shard) -> Result<MoveCounts, CountError> {
    let blocks = (0..shard.blocks().len()).into_par_iter();
    let counts = blocks.map(|block| {
        let mut counts = MoveCounts::new();
        for record in shard.read(block)? {
            add(&mut counts, &record).map_err(|source| CountError::Replay {
                path: shard.path.clone(),
                source,
            })?;
        }
        Ok::<MoveCounts, CountError>(counts)
    });
    counts.try_reduce(MoveCounts::new, |mut all, part| {
        for (text, count) in part {
            *all.entry(text).or_default() += count;
        }
        Ok(all)
    })
}

fn add(counts: &mut MoveCounts, record: &Record) -> Result<(), ReplayError> {
    if record.fen.is_some() {
        return Ok(());
    }
    for plies in main_line(record)?.plies().windows(2) {
        if let Some(mv) = plies[1].played {
            let text = SanPlus::from_move(plies[0].position.clone(), mv).to_string();
            *counts.entry(text).or_default() += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pgn::parse_game;

    #[test]
    fn moves_of_the_main_line_are_counted() {
        let mut counts = MoveCounts::new();
        for pgn in [
            "1. f3 e5 2. g4 (2. d4 exd4) Qh4# 0-1",
            "1. f3 d5 *",
            "[FEN \"8/8/8/8/8/4k3/4p3/4K2R w K - 0 1\"]\n\n1. Rh3+ *",
        ] {
            add(&mut counts, &parse_game(pgn.as_bytes()).unwrap()).unwrap();
        }
        let texts: Vec<(&str, u64)> = counts.iter().map(|(text, &n)| (&**text, n)).collect();
        assert_eq!(
            texts,
            [("Qh4#", 1), ("d5", 1), ("e5", 1), ("f3", 2), ("g4", 1)]
        );
    }
}
