//! Converts the games of a chunk to records for shards.

use crate::chess::{Game, fen};
use crate::data::record::{Node, Record, SearchResult};
use crate::data::sample::{Sample, Wdl};
use crate::encode::Input;

use super::record::DELETED;
use super::samples::follows;
use super::{Chunk, V6Error, V6Fault, V6Record};

impl Chunk {
    /// Returns the games as records that include the search results. An unusable record is passed
    /// to `bad`. If `bad` returns an error, reading stops; otherwise, the rest of the game becomes
    /// a separate game.
    ///
    /// If a game does not start at the initial position, the history before its first position is
    /// lost. Values are rounded, see [`SearchResult`].
    ///
    /// # Errors
    /// The error that `bad` returns.
    pub fn games<E>(
        &self,
        mut bad: impl FnMut(V6Error) -> Result<(), E>,
    ) -> Result<Vec<Record>, E> {
        let mut games: Vec<Record> = Vec::new();
        let mut previous: Option<&V6Record> = None;
        let mut records = self.records();
        loop {
            let offset = records.offset;
            let record = match records.next() {
                Some(Ok(record)) => record,
                Some(Err(error)) => {
                    bad(error)?;
                    previous = None;
                    continue;
                }
                None => return Ok(games),
            };
            let goes_on = previous.is_some_and(|previous| follows(previous, record));
            match add(record, goes_on, &mut games) {
                Ok(()) => previous = Some(record),
                Err(fault) => {
                    previous = None;
                    bad(V6Error::new(&self.path, offset, fault))?;
                }
            }
        }
    }
}

/// Adds a record to the game that it continues, or starts a new game with it.
fn add(record: &V6Record, goes_on: bool, games: &mut Vec<Record>) -> Result<(), V6Fault> {
    let sample = record.sample()?;
    if record.q_st != 0.0 || record.invariance_info & DELETED != 0 {
        return Err(V6Fault::Rescored);
    }
    let game = match games.last_mut() {
        Some(game) if goes_on && game.result != result_for_white(&sample) => {
            return Err(V6Fault::Rescored);
        }
        Some(game) if goes_on => game,
        _ => {
            games.push(begin(&sample)?);
            games.last_mut().expect("one was just added")
        }
    };
    let place = |index| sample.legal.ordinal(index) as u8;
    let policy = sample
        .legal
        .iter()
        .map(|index| (place(index), record.probabilities[usize::from(index)]));
    game.nodes.push(Node {
        ordinal: place(record.played_idx),
        depth: 0,
        starts_line: false,
        eval: None,
    });
    game.searches
        .push(SearchResult::new(policy, record.root_q, record.best_q));
    // The game's last record determines this number. Its `plies_left` includes the move from its
    // own position.
    game.unplayed = (record.plies_left - 1.0).round() as u16;
    Ok(())
}

fn begin(sample: &Sample) -> Result<Record, V6Fault> {
    let position = sample.input.position()?;
    let is_initial = sample.input == Input::encode(&Game::default());
    let fen = fen(&position);
    Ok(Record {
        fen: (!is_initial).then_some(fen),
        result: result_for_white(sample),
        ..Record::default()
    })
}

fn result_for_white(sample: &Sample) -> Option<Wdl> {
    Some(sample.result?.seen_by(sample.input.turn()))
}
