//! Converts engines' scores in centipawns to values.

use serde::{Deserialize, Serialize};

/// A curve for converting centipawns to q = W − L in −1…1. Engines scale their scores differently,
/// so the user chooses the curve when packing games.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Curve {
    /// Lichess's win percentage: a logistic curve fitted to its players' games. Ruoss et al. (2024)
    /// train on its values.
    Lichess,
    /// The inverse of Lc0's conversion to centipawns, cp = 90 · tan(1.5637541897 · q).
    Lc0,
    /// The win–draw–loss model of Stockfish 15.1 at move 32. At a score of one pawn, Stockfish wins
    /// half of its games against itself.
    Stockfish,
}

/// The factor k in Lc0's conversion cp = 90 · tan(k · q).
const CENTIPAWN_ANGLE: f64 = 1.563_754_189_7;

/// Returns Lc0's score in centipawns for a value q. This is the inverse of [`Curve::Lc0`].
pub fn centipawns(q: f32) -> i16 {
    // A cast from float to integer saturates.
    (90.0 * (CENTIPAWN_ANGLE * f64::from(q)).tan()).round() as i16
}

impl Curve {
    /// Returns the value q of a score. Both are from the perspective of the same player.
    pub fn q(self, centipawns: i16) -> f32 {
        let centipawns = f64::from(centipawns);
        let q = match self {
            Curve::Lichess => 2.0 / (1.0 + (-0.003_682_08 * centipawns).exp()) - 1.0,
            Curve::Lc0 => (centipawns / 90.0).atan() / CENTIPAWN_ANGLE,
            Curve::Stockfish => {
                let wins = |pawns: f64| 1.0 / (1.0 + ((1.0 - pawns) / 0.183).exp());
                let pawns = centipawns / 100.0;
                wins(pawns) - wins(-pawns)
            }
        };
        q.clamp(-1.0, 1.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_odd_and_rise() {
        for curve in [Curve::Lichess, Curve::Lc0, Curve::Stockfish] {
            let mut before = -1.0;
            for centipawns in (-32_000..=32_000).step_by(10) {
                let q = curve.q(centipawns);
                assert!(q >= before && q <= 1.0, "{curve:?} at {centipawns}");
                assert!((q + curve.q(-centipawns)).abs() < 1e-6);
                before = q;
            }
        }
    }

    #[test]
    fn known_points() {
        let near = |q: f32, expected: f32| assert!((q - expected).abs() < 1e-3, "{q}");
        near(Curve::Lichess.q(100), 0.1821);
        near(Curve::Lc0.q(90), 0.5022);
        for q in [-1.0, -0.3, 0.0, 0.7, 1.0] {
            let rounded = Curve::Lc0.q(centipawns(q));
            assert!((rounded - q).abs() < 4e-3, "{q} {rounded}");
        }
        near(Curve::Stockfish.q(100), 0.5);
    }
}
