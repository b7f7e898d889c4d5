//! Scores in centipawns, on the scale of Stockfish since version 15.1: at +100, the side wins half
//! of its games.
//!
//! A network's expected result does not grow with material as Stockfish's evaluations do, so the
//! scale is fitted: bench/play.md compares its scores with Stockfish's.

use super::Score;
use clap::ValueEnum;

/// Centipawns per unit of the logit of the expected score, fitted by `bench/scores.py`.
const SLOPE: f64 = 100.0;
/// The minimum distance between a result and a win; single precision does not distinguish much
/// smaller differences.
const LEAST_DOUBT: f64 = 1e-6;

/// Lc0's curve from expected results to centipawns: its scale, and the factor that determines how
/// closely it approaches the pole of the tangent.
const LC0_SCALE: f64 = 90.0;
const LC0_ANGLE: f64 = 1.563_754_189_7;

/// Score of a tablebase win in centipawns, above all expected results; the value is Stockfish's.
pub const TABLEBASE_CENTIPAWNS: i32 = 20_000;

/// The unit of `score cp`, under the names of Lc0's option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ScoreType {
    /// Centipawns on Stockfish's scale.
    #[default]
    #[value(name = "WDL_mu")]
    WdlMu,
    /// Lc0's older scale, 90·tan(1.5637541897·q), in −12,780…12,780.
    #[value(name = "centipawn")]
    Centipawn,
    /// The expected result, −1…1, times 10,000.
    #[value(name = "Q")]
    Q,
}

impl ScoreType {
    /// Converts an expected result in −1…1 to a score. NaN is 0.
    pub fn score(self, q: f32) -> i32 {
        if q.is_nan() {
            return 0;
        }
        let q = f64::from(q).clamp(-1.0, 1.0);
        let score = match self {
            ScoreType::WdlMu => {
                let size = q.abs().min(1.0 - LEAST_DOUBT);
                let logit = ((1.0 + size) / (1.0 - size)).ln();
                (SLOPE * logit).copysign(q)
            }
            ScoreType::Centipawn => LC0_SCALE * (LC0_ANGLE * q).tan(),
            ScoreType::Q => 10_000.0 * q,
        };
        // A cast from float to integer saturates.
        score.round() as i32
    }
}

/// Converts an expected result in −1…1 to centipawns on Stockfish's scale, in −1451…1451. The
/// function is monotonic, so a better value never has a lower score. Moves are not ranked by value
/// alone, so the second line may have the higher score.
pub fn centipawns(q: f32) -> i32 {
    ScoreType::WdlMu.score(q)
}

/// A score in the form that chess programs use: centipawns, or mate in N moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenScore {
    /// A score in centipawns; a tablebase score is above all others.
    Centipawns(i32),
    /// Mate in N moves; negative if the side to move gets mated.
    Mate(i32),
}

impl WrittenScore {
    /// Writes a score in a unit.
    pub fn of(score: Score, unit: ScoreType) -> WrittenScore {
        match score {
            Score::Expected(q) => WrittenScore::Centipawns(unit.score(q)),
            Score::Tablebase { won: true } => WrittenScore::Centipawns(TABLEBASE_CENTIPAWNS),
            Score::Tablebase { won: false } => WrittenScore::Centipawns(-TABLEBASE_CENTIPAWNS),
            Score::Mate(moves) => WrittenScore::Mate(moves),
        }
    }
}

impl From<Score> for WrittenScore {
    fn from(score: Score) -> WrittenScore {
        WrittenScore::of(score, ScoreType::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scores_are_finite_and_below_those_of_tablebases() {
        assert_eq!(centipawns(0.0), 0);
        assert_eq!(centipawns(f32::NAN), 0);
        assert_eq!(centipawns(-2.0), -centipawns(1.0));
        for won in [true, false] {
            let WrittenScore::Centipawns(known) = Score::Tablebase { won }.into() else {
                unreachable!()
            };
            assert_eq!(known.abs(), TABLEBASE_CENTIPAWNS);
            for unit in [ScoreType::WdlMu, ScoreType::Centipawn, ScoreType::Q] {
                assert!(known.abs() > unit.score(1.0), "{unit:?}");
            }
        }
    }

    #[test]
    fn the_older_units_are_lc0s() {
        assert_eq!(ScoreType::Centipawn.score(0.5), 89);
        assert_eq!(ScoreType::Q.score(-0.25), -2500);
    }

    proptest! {
        #[test]
        fn scores_rank_as_results_do(a in -1.0f32..=1.0, b in -1.0f32..=1.0) {
            for unit in [ScoreType::WdlMu, ScoreType::Centipawn, ScoreType::Q] {
                let [low, high] = [a.min(b), a.max(b)].map(|q| unit.score(q));
                prop_assert!(low <= high, "{unit:?}");
            }
        }

        #[test]
        fn the_inverse_returns_to_the_score(score in -1000i32..=1000) {
            let q = (f64::from(score) / (2.0 * SLOPE)).tanh();
            prop_assert!((-1.0..=1.0).contains(&q));
            prop_assert!((centipawns(q as f32) - score).abs() <= 1, "{score} {q}");
        }
    }
}
