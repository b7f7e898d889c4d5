//! Records back to positions: playing a game's tree through.

use shakmaty::{CastlingMode, Move, Position};

use crate::chess::{FenError, Game};
use crate::encode::{Input, policy_index};

use super::label::{Labelled, Reading};
use super::legal::Legal;
use super::record::{Record, StrayNode};
use super::sample::{Policy, Sample};

/// Why a record cannot be played through.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The game starts from no position.
    #[error(transparent)]
    Fen(#[from] FenError),
    /// Its moves form no tree.
    #[error(transparent)]
    Stray(#[from] StrayNode),
    /// A move is not among the legal ones.
    #[error("move {node} of the game's tree asks for legal move {ordinal} of {legal}")]
    Ordinal {
        /// The move's place in the record, from 0.
        node: usize,
        /// The legal move it names, from 0.
        ordinal: u8,
        /// How many legal moves there are.
        legal: usize,
    },
}

/// How much a variation's samples count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariationWeight {
    /// Weight of a variation's first move.
    pub first: f32,
    /// Factor for each ply further from the game.
    pub decay: f32,
}

/// Plays `record` through and hands every labelled position to `emit`, in the
/// record's order, for as long as `keep`, called once for each, says so.
///
/// # Errors
/// [`ReplayError`] if the record does not describe a game; samples before the
/// fault have been handed out.
pub fn replay(
    record: &Record,
    reading: &Reading,
    variations: VariationWeight,
    mut keep: impl FnMut() -> bool,
    mut emit: impl FnMut(Sample),
) -> Result<(), ReplayError> {
    let places = reading.label(record)?;
    let mut game = match &record.fen {
        None => Game::default(),
        Some(fen) => Game::from_fen(fen, CastlingMode::Standard)?,
    };
    // The latest move of each depth. It is played only when its line goes on,
    // so that the alternatives in between start from the position before it.
    let mut latest: Vec<Move> = Vec::new();
    for (index, (node, place)) in record.nodes.iter().zip(places).enumerate() {
        let depth = usize::from(node.depth);
        if node.starts_line || index == 0 {
            game.truncate(place.ply + 1);
        } else {
            game.truncate(place.ply);
            game.play(latest[depth]);
        }
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let legal = Legal::of(&moves, turn);
        let chosen = legal.nth(node.ordinal.into()).and_then(|target| {
            let mv = moves.iter().find(|&&mv| policy_index(mv, turn) == target)?;
            Some((*mv, target))
        });
        let (mv, target) = chosen.ok_or(ReplayError::Ordinal {
            node: index,
            ordinal: node.ordinal,
            legal: moves.len(),
        })?;
        latest.truncate(depth);
        latest.push(mv);
        if place.label.is_some() && keep() {
            emit(sample(&game, legal, target, place, variations));
        }
    }
    Ok(())
}

fn sample(
    game: &Game,
    legal: Legal,
    target: u16,
    place: Labelled,
    variations: VariationWeight,
) -> Sample {
    let label = place.label;
    Sample {
        input: Input::encode(game),
        legal,
        policy: match label {
            Some(label) if label.is_target => Policy::Move(target),
            _ => Policy::Unknown,
        },
        result: label.and_then(|label| label.result),
        q: label.and_then(|label| label.q),
        short_term: label.and_then(|label| label.short_term),
        moves_left: label.and_then(|label| label.moves_left),
        weight: match place.off_line {
            None => 1.0,
            Some(plies) => variations.first * variations.decay.powi(plies as i32),
        },
    }
}
