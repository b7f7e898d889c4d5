//! Samples for fitting a [correction](crate::tactics::correction), as lines of JSON.

use super::positions::Positions;
use super::prediction::Answer;
use crate::data::replay::{ReplayError, main_line};
use crate::tactics::{Features, features};
use serde::Serialize;
use shakmaty::Position as _;

/// A position in which a person made a move, without the position itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The rating of the player to move.
    pub rating: u16,
    /// The index of the move played.
    pub played: usize,
    /// The logarithm of each legal move's probability, in the order of the move generator.
    pub logits: Vec<f32>,
    /// Each legal move's [`Features::inputs`].
    pub features: Vec<[f32; Features::COUNT]>,
}

/// Calls `write` with the sample of each position, given the uncorrected predictions for all of
/// them.
///
/// # Errors
/// [`ReplayError`] if a game cannot be replayed, or the error of `write`.
pub fn samples<E: From<ReplayError>>(
    positions: &Positions,
    answers: &[(usize, Answer)],
    mut write: impl FnMut(Sample) -> Result<(), E>,
) -> Result<(), E> {
    for (record, places) in &positions.games {
        let game = main_line(record)?;
        for (place, answer) in &answers[places.clone()] {
            let of = &positions.positions[*place];
            let position = &game.plies()[of.ply].position;
            let features = features(position, &position.legal_moves());
            write(Sample {
                rating: of.rating,
                played: answer.played,
                logits: answer
                    .policy
                    .iter()
                    .map(|share| share.max(f32::MIN_POSITIVE).ln())
                    .collect(),
                features: features.iter().map(Features::inputs).collect(),
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::positions::tests::{ALL, positions};
    use super::super::{Uncorrected, ask};
    use super::*;
    use crate::backend::Random;

    #[test]
    fn samples_hold_the_move_played_and_the_uncorrected_policy() {
        let text = "[WhiteElo \"1500\"]\n[BlackElo \"1700\"]\n\n1. e4 e5 2. Qh5 Nf6 3. Qxf7+ *\n";
        let set = positions(text, &ALL);
        let backend = Random::new(1);
        let answers = ask(vec![Uncorrected(&backend)], &set, |_| true, |_| {}).unwrap();
        let mut found = Vec::new();
        let write = |sample| {
            found.push(sample);
            Ok::<_, ReplayError>(())
        };
        samples(&set, &answers, write).unwrap();
        let ratings: Vec<u16> = found.iter().map(|of| of.rating).collect();
        assert_eq!(ratings, [1500, 1700, 1500, 1700, 1500]);
        for (sample, (_, answer)) in found.iter().zip(&answers) {
            assert_eq!(sample.features.len(), sample.logits.len());
            let share = sample.logits[sample.played].exp();
            assert!((share - answer.policy[sample.played]).abs() < 1e-5);
        }
        // Qxf7+ checks and captures.
        let last = &found[4];
        assert_eq!(last.features[last.played][..3], [0.0, 1.0, 1.0]);
    }
}
