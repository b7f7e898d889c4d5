//! Rescaling: converts the network's win, draw and loss probabilities to those of a game between
//! two players of given strength.
//!
//! The model is Lc0's: the result of a game is a logistic random variable with mean μ (the
//! advantage) and width s, a win where it exceeds 1 and a loss where it falls below −1. Rescaling
//! multiplies s by a factor and shifts μ in proportion to s².

use crate::backend::Value;
use crate::search::numeric::{exp2, ln};
use shakmaty::Color;
use std::f32::consts::LOG2_E;

/// The largest width accepted from a network (Lc0: WDLMaxS).
const MAX_WIDTH: f32 = 1.4;
/// Results closer to certainty than this are left unchanged.
const SURE: f32 = 1e-4;

/// The rescaling of one search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rescaling {
    /// The factor by which widths are multiplied.
    pub(crate) ratio: f32,
    /// The shift of μ in White's favour, in a position of width 1.
    pub(crate) shift: f32,
}

impl Rescaling {
    /// Rescales the network's value, which is from the view of `turn`, the side to move.
    pub(crate) fn apply(self, value: Value, turn: Color) -> Value {
        let Some(result) = Logistic::of(value.q, value.d) else {
            return value;
        };
        let width = result.width.min(MAX_WIDTH);
        let (q, d) = Logistic {
            mu: result.mu + width * width * self.shift_for(turn),
            width: width * self.ratio,
        }
        .q_and_d();
        Value { q, d, ..value }
    }

    /// Removes a share of the contempt, but not the change in width, from a rescaled result (its q
    /// and d) for `turn` to move.
    pub(crate) fn without_contempt(self, q: f32, d: f32, share: f32, turn: Color) -> (f32, f32) {
        let shift = share * self.shift_for(turn);
        match Logistic::of(q, d) {
            Some(result) if shift != 0.0 => {
                let width = (result.width / self.ratio).min(MAX_WIDTH);
                Logistic {
                    mu: result.mu - width * width * shift,
                    ..result
                }
                .q_and_d()
            }
            _ => (q, d),
        }
    }

    fn shift_for(self, turn: Color) -> f32 {
        turn.fold_wb(self.shift, -self.shift)
    }
}

/// The parameters of a result that is still open.
#[derive(Clone, Copy, Debug)]
struct Logistic {
    mu: f32,
    width: f32,
}

impl Logistic {
    /// Returns `None` if a win, a draw or a loss is practically ruled out.
    fn of(q: f32, d: f32) -> Option<Logistic> {
        let (win, loss) = ((1.0 - d + q) / 2.0, (1.0 - d - q) / 2.0);
        if ![win, d, loss].into_iter().all(|part| part > SURE) {
            return None;
        }
        let odds = |part: f32| ln((1.0 - part) / part);
        let (against_loss, against_win) = (odds(loss), odds(win));
        let sum = against_loss + against_win;
        Some(Logistic {
            mu: (against_loss - against_win) / sum,
            width: 2.0 / sum,
        })
    }

    fn q_and_d(self) -> (f32, f32) {
        let win = logistic((self.mu - 1.0) / self.width);
        let loss = logistic((-self.mu - 1.0) / self.width);
        (win - loss, (1.0 - win - loss).max(0.0))
    }
}

/// Returns 1 / (1 + e⁻ˣ).
fn logistic(x: f32) -> f32 {
    let power = exp2(-x.abs() * LOG2_E);
    match x > 0.0 {
        true => 1.0 / (1.0 + power),
        false => power / (1.0 + power),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(q: f32, d: f32) -> Value {
        Value {
            q,
            d,
            moves_left: 30.0,
            error: 0.1,
        }
    }

    fn of(mu: f32, width: f32) -> Value {
        let (q, d) = Logistic { mu, width }.q_and_d();
        value(q, d)
    }

    #[test]
    fn sure_results_are_not_rescaled() {
        for (q, d) in [
            (1.0, 0.0),
            (-1.0, 0.0),
            (0.0, 1.0),
            (0.3, 0.0),
            (f32::NAN, 0.5),
        ] {
            let sure = Rescaling {
                ratio: 0.7,
                shift: 0.9,
            }
            .apply(value(q, d), Color::White);
            assert_eq!(sure.d, d);
            assert!(sure.q == q || q.is_nan());
        }
    }

    proptest! {
        /// The further the shift, the better the result for White and the worse for Black. Of two
        /// positions with equal width, the better one stays better.
        #[test]
        fn shifts_are_monotone(
            mu in -0.9f32..0.8,
            width in 0.2f32..1.3,
            ratio in 0.3f32..3.0,
            shift in -3f32..3.0,
            more in 0f32..1.0,
        ) {
            let less = Rescaling { ratio, shift };
            let more = Rescaling { ratio, shift: shift + more };
            let value = of(mu, width);
            prop_assume!(Logistic::of(value.q, value.d).is_some());
            let q = |rescaling: Rescaling, turn| rescaling.apply(value, turn).q;
            prop_assert!(q(more, Color::White) >= q(less, Color::White) - 1e-5);
            prop_assert!(q(more, Color::Black) <= q(less, Color::Black) + 1e-5);
            let better = of(mu + 0.1, width);
            prop_assume!(Logistic::of(better.q, better.d).is_some());
            prop_assert!(less.apply(better, Color::White).q >= q(less, Color::White) - 1e-4);
        }

        /// Removing the whole shift restores the network's result, at any width.
        #[test]
        fn shifts_are_undone(
            mu in -0.8f32..0.8,
            width in 0.25f32..1.3,
            ratio in 0.6f32..1.5,
            shift in -1f32..1.0,
            white in any::<bool>(),
        ) {
            let turn = Color::from_white(white);
            let rescaling = Rescaling { ratio, shift };
            let unmoved = Rescaling { ratio, shift: 0.0 }.apply(of(mu, width), turn);
            let inside = rescaling.apply(of(mu, width), turn);
            prop_assume!(Logistic::of(inside.q, inside.d).is_some());
            let (told, _) = rescaling.without_contempt(inside.q, inside.d, 1.0, turn);
            prop_assert!((told - unmoved.q).abs() < 5e-3, "{told} {unmoved:?}");
            let (kept, _) = rescaling.without_contempt(inside.q, inside.d, 0.0, turn);
            prop_assert_eq!(kept, inside.q);
        }
    }
}
