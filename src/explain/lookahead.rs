//! Compares a position's value with the values after its moves. A network that agreed with itself
//! would expect the same result before and after its best move.

use super::MoveReport;
use serde::Serialize;

/// Maximum number of best moves.
const MOST: usize = 3;
/// Mean absolute gap of tessera-xs over 150 positions of masters' games; bench/explain.md has the
/// measurement.
const USUAL_GAP: f32 = 0.17;
/// Absolute gap above which the values disagree.
const LARGE_GAP: f32 = 0.2;

/// The values after the best moves, compared with the position's own value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lookahead {
    /// The moves with the best values after them, best first, as indices into the list of moves.
    pub best: Vec<usize>,
    /// The position's value minus the best value after a move, −2…2.
    pub gap: f32,
    /// Whether the gap is so large that the values disagree.
    pub is_large: bool,
    /// The usual absolute gap.
    pub usual_gap: f32,
}

impl Lookahead {
    /// Compares the value `q` of a position with those after its moves.
    pub(super) fn new(q: f32, moves: &[MoveReport]) -> Lookahead {
        let mut best: Vec<usize> = (0..moves.len()).collect();
        best.sort_by(|&a, &b| moves[b].q.total_cmp(&moves[a].q));
        best.truncate(MOST);
        let gap = q - best.first().map_or(q, |&index| moves[index].q);
        Lookahead {
            best,
            gap,
            is_large: gap.abs() > LARGE_GAP,
            usual_gap: USUAL_GAP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(values: &[f32]) -> Vec<MoveReport> {
        let report = |&q: &f32| MoveReport {
            uci: String::new(),
            san: String::new(),
            from: 0,
            to: 0,
            prior: 0.0,
            q,
            wdl: [0.0; 3],
            ending: None,
        };
        values.iter().map(report).collect()
    }

    #[test]
    fn the_best_moves_are_those_with_the_best_values_after_them() {
        let found = Lookahead::new(0.5, &moves(&[-0.5, 0.25, 0.0, 0.125, -1.0]));
        assert_eq!(
            (found.best, found.gap, found.is_large),
            (vec![1, 3, 2], 0.25, true)
        );
        let found = Lookahead::new(0.0, &moves(&[-0.25, 0.0625]));
        assert_eq!(
            (found.best, found.gap, found.is_large),
            (vec![1, 0], -0.0625, false)
        );
        assert!(Lookahead::new(-0.5, &moves(&[1.0])).is_large);
    }
}
