//! Conversion of scores to winning chances and accuracy, with the formulas that Lichess publishes
//! (<https://lichess.org/page/accuracy>).

use crate::engine::EngineScore;
use crate::play::{Score, WrittenScore};
use serde::{Deserialize, Serialize};

/// Steepness of Lichess's curve from centipawns to winning chances.
const STEEPNESS: f64 = 0.003_682_08;
/// Higher scores, in centipawns, count as this one.
const CEILING: i32 = 1_000;

/// A score. The field that contains it states the perspective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evaluation {
    /// Centipawns.
    Centipawns(i32),
    /// Mate in this many moves; negative if the other side mates, and 0 if the side to move is
    /// already checkmated.
    Mate(i32),
}

impl From<Score> for Evaluation {
    fn from(score: Score) -> Evaluation {
        match WrittenScore::from(score) {
            WrittenScore::Centipawns(centipawns) => Evaluation::Centipawns(centipawns),
            WrittenScore::Mate(moves) => Evaluation::Mate(moves),
        }
    }
}

/// Other engines' scores are taken as they are.
impl From<EngineScore> for Evaluation {
    fn from(score: EngineScore) -> Evaluation {
        match score {
            EngineScore::Centipawns(centipawns) => Evaluation::Centipawns(centipawns),
            EngineScore::Mate(moves) => Evaluation::Mate(moves),
        }
    }
}

impl Evaluation {
    /// Returns the same score from the other side's view. Mate on the board has no such score.
    #[must_use]
    pub fn reversed(self) -> Evaluation {
        match self {
            Evaluation::Centipawns(centipawns) => Evaluation::Centipawns(-centipawns),
            Evaluation::Mate(moves) => Evaluation::Mate(-moves),
        }
    }

    /// Returns the winning chances in −1…1.
    pub fn chances(self) -> f64 {
        let centipawns = match self {
            Evaluation::Centipawns(centipawns) => centipawns,
            Evaluation::Mate(1..) => CEILING,
            Evaluation::Mate(_) => -CEILING,
        };
        let centipawns = f64::from(centipawns.clamp(-CEILING, CEILING));
        2.0 / (1.0 + (-STEEPNESS * centipawns).exp()) - 1.0
    }
}

/// Converts winning chances in −1…1 to the expected score in percent.
pub fn percent(chances: f64) -> f64 {
    50.0 + 50.0 * chances
}

/// Returns the accuracy in percent of a move that changed the player's winning percentage from one
/// value to another.
pub fn accuracy(before: f64, after: f64) -> f64 {
    if after >= before {
        return 100.0;
    }
    let raw = 103.166_810_071_164_9 * (-0.043_544_153_867_539_51 * (before - after)).exp()
        - 3.166_924_740_191_411;
    // One is added because the scores are uncertain.
    (raw + 1.0).clamp(0.0, 100.0)
}

/// Returns a side's accuracy, given the accuracy and the weight of each move: the average of their
/// weighted mean and their harmonic mean. Returns `None` if there are no moves.
pub fn mean_accuracy(moves: &[(f64, f64)]) -> Option<f64> {
    let weights: f64 = moves.iter().map(|(_, weight)| weight).sum();
    if moves.is_empty() || weights <= 0.0 {
        return None;
    }
    let weighted = moves.iter().map(|(accuracy, weight)| accuracy * weight);
    let weighted = weighted.sum::<f64>() / weights;
    let inverse: f64 = moves
        .iter()
        .map(|(accuracy, _)| 1.0 / accuracy.max(1.0))
        .sum();
    Some((weighted + moves.len() as f64 / inverse) / 2.0)
}

/// Returns the weight of each move, which depends on how much the winning percentage swings around
/// it. There is one more percentage than there are moves.
pub fn weights(percentages: &[f64]) -> Vec<f64> {
    let moves = percentages.len().saturating_sub(1);
    let size = (moves / 10).clamp(2, 8).min(percentages.len());
    let first = std::iter::repeat_n(&percentages[..size], size.saturating_sub(2));
    let windows = first.chain(percentages.windows(size.max(1)));
    windows
        .map(|window| deviation(window).clamp(0.5, 12.0))
        .take(moves)
        .collect()
}

fn deviation(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_lichess() {
        for (evaluation, expected) in [
            (Evaluation::Centipawns(0), 50.0),
            (Evaluation::Centipawns(100), 59.1),
            (Evaluation::Centipawns(-300), 24.9),
            (Evaluation::Centipawns(5000), 97.5),
            (Evaluation::Mate(3), 97.5),
            (Evaluation::Mate(-3), 2.5),
            (Evaluation::Mate(0), 2.5),
        ] {
            let found = percent(evaluation.chances());
            assert!((found - expected).abs() < 0.05, "{evaluation:?}: {found}");
        }
        let mate = Evaluation::from(Score::Mate(-2));
        assert_eq!(mate.reversed(), Evaluation::Mate(2));
        assert_eq!(
            Evaluation::from(Score::Expected(0.0)),
            Evaluation::Centipawns(0)
        );
    }

    #[test]
    fn accuracy_falls_with_what_is_lost() {
        assert_eq!(accuracy(50.0, 60.0), 100.0);
        for (lost, expected) in [(0.0, 100.0), (10.0, 64.6), (50.0, 9.5), (100.0, 0.0)] {
            let found = accuracy(100.0, 100.0 - lost);
            assert!((found - expected).abs() < 0.05, "{lost}: {found}");
        }
        assert_eq!(mean_accuracy(&[]), None);
        let perfect = mean_accuracy(&[(100.0, 1.0), (100.0, 3.0)]).unwrap();
        assert!((perfect - 100.0).abs() < 1e-9);
        // The harmonic mean of 100 and 50 is 66.7, and the weighted mean is 87.5.
        let mixed = mean_accuracy(&[(100.0, 3.0), (50.0, 1.0)]).unwrap();
        assert!((mixed - (87.5 + 200.0 / 3.0) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn each_move_has_a_weight() {
        for moves in 0..40 {
            let percentages: Vec<f64> = (0..=moves).map(|it| f64::from(it % 3)).collect();
            assert_eq!(weights(&percentages).len(), moves as usize, "{moves}");
        }
        let quiet_then_wild = [50.0, 50.0, 50.0, 90.0, 10.0];
        assert_eq!(weights(&quiet_then_wild), [0.5, 0.5, 12.0, 12.0]);
    }
}
