//! How often people follow habits, and how often a network predicts that they do.

use super::estimate::{Estimate, estimate};
use super::habits::{HABITS, Habit, NAMES};
use super::{Positions, Prediction};
use serde::Serialize;

/// How often a habit is followed over some positions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Frequency {
    /// The habit's name.
    pub habit: &'static str,
    /// Number of positions that test it.
    pub positions: usize,
    /// The share of them in which the move played follows it.
    pub people: Estimate,
    /// The mean predicted probability.
    pub predicted: Estimate,
    /// The prediction minus the people's share.
    pub difference: Estimate,
}

/// Returns the frequency of each habit over the positions at `places`.
pub fn frequencies(
    positions: &Positions,
    predictions: &[Prediction],
    places: &[usize],
) -> [Frequency; HABITS] {
    std::array::from_fn(|habit| {
        let of = |place: usize| predictions[place].habits[habit];
        let tested: Vec<usize> = places
            .iter()
            .copied()
            .filter(|&place| of(place).is_some())
            .collect();
        let mean = |value: fn(Habit) -> f64| {
            estimate(positions, &tested, |place| of(place).map_or(0.0, value))
        };
        let played = |of: Habit| f64::from(u8::from(of.played));
        let predicted = |of: Habit| f64::from(of.predicted);
        Frequency {
            habit: NAMES[habit],
            positions: tested.len(),
            people: mean(played),
            predicted: mean(predicted),
            difference: mean(|of| f64::from(of.predicted) - f64::from(u8::from(of.played))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::positions::tests::{ALL, positions};
    use super::super::{Evaluator, ask};
    use super::*;
    use crate::backend::Uniform;

    #[test]
    fn habits_are_counted_where_the_position_tests_them() {
        let mate = "[WhiteElo \"1500\"]\n[BlackElo \"1500\"]\n\n1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n";
        let set = positions(mate, &ALL);
        let found = ask(vec![Evaluator(&Uniform::default())], &set, |_| true, |_| {}).unwrap();
        let predictions: Vec<_> = found
            .iter()
            .map(|(_, answer)| answer.prediction())
            .collect();
        let places: Vec<usize> = (0..predictions.len()).collect();
        let [finds, allows, leaves] = frequencies(&set, &predictions, &places);
        assert_eq!((finds.positions, finds.people.mean), (1, 1.0));
        assert_eq!((allows.positions, allows.people.mean), (1, 1.0));
        // One of White's 43 moves mates.
        assert!(
            (finds.predicted.mean - 1.0 / 43.0).abs() < 1e-6,
            "{finds:?}"
        );
        assert!(allows.predicted.mean > 0.5 && allows.predicted.mean < 1.0);
        // The knight, too, is a piece that White can take, but no move leaves more.
        assert!(
            leaves.positions > 0 && leaves.people.mean < 0.5,
            "{leaves:?}"
        );
    }
}
