//! Elementary functions that return the same bits on every machine.
//!
//! The system's functions differ in the last digit between C libraries, which would make search
//! trees differ too.

use std::f32::consts::{LN_2, LOG2_E};

/// 1.5·2²³: adding and subtracting it rounds a small number to an integer.
const ROUND: f32 = 12_582_912.0;

/// Returns 2 to the power of `x`, for `x` ≤ 0; below −126 the result is 2⁻¹²⁶. The relative error
/// is under 3e-7.
#[inline]
pub(crate) fn exp2(x: f32) -> f32 {
    let x = x.clamp(-126.0, 0.0);
    let whole = (x + ROUND) - ROUND;
    let r = (x - whole) * LN_2;
    // Taylor series for |r| ≤ ln 2 / 2.
    let power = 1.0
        + r * (1.0
            + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    let scale = f32::from_bits(((whole as i32 + 127) << 23) as u32);
    power * scale
}

/// Returns the base-2 logarithm of a positive normal number. The error is under 3e-7 for numbers
/// near 1.
#[inline]
pub(crate) fn log2(x: f32) -> f32 {
    // The mantissa is in √½…√2, so that numbers near 1 lose no precision to cancellation.
    let bits = x.to_bits() as i32;
    let exponent = (bits - 0x3f35_04f3) >> 23;
    let mantissa = f32::from_bits((bits - (exponent << 23)) as u32);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    let series = 2.0 + s2 * (2.0 / 3.0 + s2 * (2.0 / 5.0 + s2 * (2.0 / 7.0 + s2 * (2.0 / 9.0))));
    exponent as f32 + s * series * LOG2_E
}

/// Returns the natural logarithm, with the accuracy of [`log2`].
#[inline]
pub(crate) fn ln(x: f32) -> f32 {
    log2(x) * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_systems_own() {
        for step in 0..20_000 {
            let x = -(step as f32) / 1000.0;
            let exact = f64::from(x).exp2();
            assert!((f64::from(exp2(x)) / exact - 1.0).abs() < 3e-7, "{x}");
            let y = 0.001 + step as f32 * 0.37;
            let exact = f64::from(y).log2();
            assert!((f64::from(log2(y)) - exact).abs() < 2e-6, "{y}");
        }
        assert_eq!(log2(1.0), 0.0);
        assert_eq!(exp2(0.0), 1.0);
        assert!(exp2(-1e9) > 0.0);
    }
}
