//! Contempt: the players' strength, and the rescaling of results to that strength.
//!
//! The formulas are those of Lc0, by Naphthalin. As the players' strength increases, the
//! distribution of results gets narrower; a difference in strength shifts it in the stronger
//! player's favour.

use super::rescaling::Rescaling;
use clap::ValueEnum;
use shakmaty::Color;
use std::f64::consts::LN_10;

/// The side that contempt assumes to be stronger (Lc0: ContemptMode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ContemptMode {
    /// The side to move at the root; neither in an infinite search.
    #[default]
    Play,
    /// White.
    WhiteSideAnalysis,
    /// Black.
    BlackSideAnalysis,
    /// Neither.
    Disable,
}

/// Options for rescaling results. By default, results are not rescaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Contempt {
    /// The side assumed to be stronger.
    pub mode: ContemptMode,
    /// That side's Elo advantage (Lc0: Contempt).
    pub elo: f32,
    /// The attenuation: 1 for realistic values, less when playing (Lc0: WDLContemptAttenuation).
    pub attenuation: f32,
    /// The Elo of the side with contempt, which determines the width; if it is 0,
    /// `draw_rate_target` determines the width (Lc0: WDLCalibrationElo).
    pub calibration_elo: f32,
    /// The share of draws from equal positions that the network assumes, in 0.001…0.999 (Lc0:
    /// WDLDrawRateReference).
    pub draw_rate_reference: f32,
    /// The share of draws from equal positions after rescaling; 0 leaves the share unchanged (Lc0:
    /// WDLDrawRateTarget).
    pub draw_rate_target: f32,
    /// The share of the contempt that is removed from reported values, in 0…1 (Lc0:
    /// WDLEvalObjectivity).
    pub objectivity: f32,
}

impl Default for Contempt {
    fn default() -> Contempt {
        Contempt {
            mode: ContemptMode::Play,
            elo: 0.0,
            attenuation: 1.0,
            calibration_elo: 0.0,
            draw_rate_reference: 0.5,
            draw_rate_target: 0.0,
            objectivity: 1.0,
        }
    }
}

/// Limit on contempt in Elo when `draw_rate_target` determines the width (Lc0: ContemptMaxValue).
const MAX_ELO: f64 = 420.0;
/// The advantage μ with which games are assumed to leave the opening book (Lc0: WDLBookExitBias).
const BOOK_EXIT_BIAS: f64 = 0.65;
/// The lowest share of draws that results may be rescaled to.
const MIN_DRAW_RATE: f64 = 0.001;

/// Lc0's fit of the width to the Elo of Stockfish's levels is a sigmoid with the width of the
/// weakest level, …
const WIDEST: f64 = 15.0;
/// … the Elo difference over which the width falls by a factor of e, …
const NARROWING: f64 = 425.0;
/// … and the midpoint, in units of that difference.
const NARROWING_AT: f64 = 6.75;
/// Elo of single games is converted to Elo of game pairs around this level …
const PAIRS_AT: f64 = 2737.0;
/// … with a transition this wide (also Lc0's fit).
const PAIRS_WITHIN: f64 = 250.0;

/// μ per Elo in a position of width 1.
const MU_PER_ELO: f64 = LN_10 / 200.0;

impl Contempt {
    /// Returns the rescaling for `turn` to move at the root; `None` if results are unchanged.
    pub(crate) fn rescaling(&self, turn: Color, infinite: bool) -> Option<Rescaling> {
        // Computed in f64, so that results round to the same f32 whichever math library the system
        // has.
        let (ratio, shift) = match self.calibration_elo > 0.0 {
            true => self.by_elo(),
            false => self.by_draw_rate(),
        };
        let stronger = match self.mode {
            ContemptMode::Play => (!infinite).then_some(turn),
            ContemptMode::WhiteSideAnalysis => Some(Color::White),
            ContemptMode::BlackSideAnalysis => Some(Color::Black),
            ContemptMode::Disable => None,
        };
        let shift = shift * f64::from(self.attenuation);
        let rescaling = Rescaling {
            ratio: ratio as f32,
            shift: stronger.map_or(0.0, |stronger| stronger.fold_wb(shift, -shift)) as f32,
        };
        (rescaling.ratio != 1.0 || rescaling.shift != 0.0).then_some(rescaling)
    }

    fn reference(&self) -> f64 {
        width_at(f64::from(self.draw_rate_reference))
    }

    /// Returns the ratio and the shift of the rescaling if the draw rate determines the width.
    fn by_draw_rate(&self) -> (f64, f64) {
        let reference = self.reference();
        let target = match f64::from(self.draw_rate_target) {
            rate if rate > 0.0 => width_at(rate.max(MIN_DRAW_RATE)),
            _ => reference,
        };
        let density = |distance: f64| (0.5 * distance / target).cosh().powi(-2);
        let slope = density(1.0 - BOOK_EXIT_BIAS) + density(1.0 + BOOK_EXIT_BIAS);
        let elo = f64::from(self.elo).clamp(-MAX_ELO, MAX_ELO);
        let shift = target / (reference * reference) / slope * MU_PER_ELO * elo;
        (target / reference, shift)
    }

    /// Returns the ratio and the shift of the rescaling if both sides' strength determines the
    /// width.
    fn by_elo(&self) -> (f64, f64) {
        let pairs = |elo: f64| {
            let below = ((PAIRS_AT - elo) / PAIRS_WITHIN).exp();
            elo + 0.5 * PAIRS_WITHIN * below.ln_1p()
        };
        let own = f64::from(self.calibration_elo);
        let opponent = pairs(own - f64::from(self.elo));
        let own = pairs(own);
        let width = |elo: f64| 1.0 / (1.0 / WIDEST + (elo / NARROWING - NARROWING_AT).exp());
        // The integral of the width over Elo.
        let strength = |elo: f64| {
            -WIDEST * NARROWING * ((NARROWING_AT - elo / NARROWING).exp() / WIDEST).ln_1p()
        };
        let reference = self.reference();
        let mean_square = (width(own).powi(2) + width(opponent).powi(2)) / 2.0;
        let shift = MU_PER_ELO * (strength(own) - strength(opponent)) / (reference * reference);
        (mean_square.sqrt() / reference, shift)
    }
}

/// Returns the width at which this share of games from equal positions is drawn.
fn width_at(draw_rate: f64) -> f64 {
    1.0 / ((1.0 + draw_rate) / (1.0 - draw_rate)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Value;
    use proptest::prelude::*;

    fn contempt(elo: f32) -> Contempt {
        Contempt {
            elo,
            ..Contempt::default()
        }
    }

    fn calibrated(elo: f32, calibration_elo: f32) -> Contempt {
        Contempt {
            calibration_elo,
            ..contempt(elo)
        }
    }

    fn value(q: f32, d: f32) -> Value {
        Value {
            q,
            d,
            moves_left: 30.0,
            error: 0.1,
        }
    }

    fn rescaled(contempt: &Contempt, value: Value, turn: Color) -> Value {
        let rescaling = contempt.rescaling(Color::White, false);
        rescaling.map_or(value, |rescaling| rescaling.apply(value, turn))
    }

    /// Values with win, draw and loss all possible.
    fn open() -> impl Strategy<Value = Value> {
        (0.01f32..1.0, 0.01f32..1.0, 0.01f32..1.0).prop_map(|(win, draw, loss)| {
            let sum = win + draw + loss;
            value((win - loss) / sum, draw / sum)
        })
    }

    #[test]
    fn results_stand_unless_told_otherwise() {
        for turn in Color::ALL {
            assert_eq!(Contempt::default().rescaling(turn, false), None);
            assert_eq!(contempt(100.0).rescaling(turn, true), None);
            let disabled = Contempt {
                mode: ContemptMode::Disable,
                ..contempt(100.0)
            };
            assert_eq!(disabled.rescaling(turn, false), None);
        }
        let analysis = Contempt {
            mode: ContemptMode::BlackSideAnalysis,
            ..contempt(100.0)
        };
        let rescaling = analysis.rescaling(Color::White, true);
        assert!(rescaling.is_some());
        assert_eq!(rescaling, analysis.rescaling(Color::Black, false));
        assert_eq!(rescaling, contempt(100.0).rescaling(Color::Black, false));
    }

    /// The expected values were computed independently of this code, with the formulas of Lc0 0.33.
    #[test]
    fn the_numbers_are_lc0s() {
        let near = |found: f32, wanted: f64| {
            assert!((f64::from(found) - wanted).abs() < 2e-4, "{found} {wanted}");
        };
        let rescaling = contempt(100.0).rescaling(Color::White, false).unwrap();
        near(rescaling.ratio, 1.0);
        near(rescaling.shift, 0.874_449);
        let rescaling = calibrated(200.0, 3000.0);
        let rescaling = rescaling.rescaling(Color::White, false).unwrap();
        near(rescaling.ratio, 0.879_226);
        near(rescaling.shift, 1.791_990);
        let told = rescaling.apply(value(0.2, 0.5), Color::White);
        near(told.q, 0.712_481);
        near(told.d, 0.239_489);
    }

    #[test]
    fn more_draws_are_a_narrower_width() {
        let sharper = Contempt {
            draw_rate_reference: 0.5,
            draw_rate_target: 0.8,
            ..Contempt::default()
        };
        let rescaling = sharper.rescaling(Color::White, true).unwrap();
        let even = rescaling.apply(value(0.0, 0.5), Color::White);
        assert!(
            (even.d - 0.8).abs() < 1e-4 && even.q.abs() < 1e-6,
            "{even:?}"
        );
        // Only the draw rate was changed, so there is no contempt to remove.
        let (q, d) = rescaling.without_contempt(even.q, even.d, 1.0, Color::White);
        assert_eq!((q, d), (even.q, even.d));
    }

    proptest! {
        #[test]
        fn a_distribution_stays_one(
            value in open(),
            elo in -5000f32..5000.0,
            calibration_elo in prop::option::of(1f32..10_000.0),
            attenuation in -10f32..10.0,
            reference in 0.001f32..0.999,
            target in prop::option::of(0.0f32..0.999),
            white in any::<bool>(),
        ) {
            let contempt = Contempt {
                attenuation,
                draw_rate_reference: reference,
                draw_rate_target: target.unwrap_or(0.0),
                ..calibrated(elo, calibration_elo.unwrap_or(0.0))
            };
            let turn = Color::from_white(white);
            let found = rescaled(&contempt, value, turn);
            prop_assert!((0.0..=1.0).contains(&found.d), "{found:?}");
            prop_assert!(found.q.abs() <= 1.0 - found.d + 1e-5, "{found:?}");
            prop_assert_eq!((found.moves_left, found.error), (value.moves_left, value.error));
            if let Some(rescaling) = contempt.rescaling(Color::White, false) {
                let (q, d) = rescaling.without_contempt(found.q, found.d, 1.0, turn);
                prop_assert!((0.0..=1.0).contains(&d) && q.abs() <= 1.0 - d + 1e-5, "{q} {d}");
            }
        }

        /// A gain for one colour is an equal loss for the other.
        #[test]
        fn colours_are_alike(value in open(), elo in -400f32..400.0, calibration in 0f32..3500.0) {
            let contempt = calibrated(elo, calibration);
            let found = |root, turn, value| {
                let rescaling = contempt.rescaling(root, false);
                rescaling.map_or(value, |rescaling: Rescaling| rescaling.apply(value, turn))
            };
            let own = found(Color::White, Color::White, value);
            prop_assert_eq!(own, found(Color::Black, Color::Black, value));
            let turned = Value { q: -value.q, ..value };
            let other = found(Color::White, Color::Black, turned);
            prop_assert!((own.q + other.q).abs() < 1e-5 && (own.d - other.d).abs() < 1e-5);
        }

    }
}
