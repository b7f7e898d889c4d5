//! The way and the format that a loaded network runs in.

use super::{Precision, Way};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The way and the format that a network runs in, and the measurements behind the choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Format {
    /// The way; never [`Way::Auto`].
    pub way: Way,
    /// The format; never [`Precision::Auto`].
    pub precision: Precision,
    /// The speed of each combination that was tried, in order of preference. Empty if there was
    /// nothing to choose from.
    pub speeds: Vec<Speed>,
    /// The combinations that were refused.
    pub refused: Vec<Refused>,
}

/// The speed of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The way.
    pub way: Way,
    /// The format.
    pub precision: Precision,
    /// Evaluations per second on one core or on the GPU.
    pub evaluations_per_second: f64,
}

/// A way in which a network does not run on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// The way.
    pub way: Way,
    /// The format.
    pub precision: Precision,
    /// The reason: an error, or how much the results differ.
    pub reason: String,
}

impl Format {
    /// Returns a format that was not chosen among others.
    pub fn only(way: Way, precision: Precision) -> Format {
        Format {
            way,
            precision,
            speeds: Vec::new(),
            refused: Vec::new(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Refused {
            way,
            precision,
            reason,
        } = self;
        write!(formatter, "{way} in {precision} ({reason})")
    }
}

/// Formats like `int8 by kernels (evaluations/s: int8 4793, bf16 2261, f32 970)`.
impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} by {}", self.precision, self.way)?;
        for (place, speed) in self.speeds.iter().enumerate() {
            let before = match place {
                0 => " (evaluations/s: ",
                _ => ", ",
            };
            let (precision, rate) = (speed.precision, speed.evaluations_per_second);
            formatter.write_str(before)?;
            if speed.way != self.way {
                write!(formatter, "{} ", speed.way)?;
            }
            write!(formatter, "{precision} {rate:.0}")?;
        }
        if !self.speeds.is_empty() {
            formatter.write_str(")")?;
        }
        for (place, refused) in self.refused.iter().enumerate() {
            let before = if place == 0 { "; refused: " } else { ", " };
            write!(formatter, "{before}{refused}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_says_what_it_was_chosen_by() {
        let speed = |way, precision, evaluations_per_second| Speed {
            way,
            precision,
            evaluations_per_second,
        };
        let mut format = Format::only(Way::Kernels, Precision::F32);
        assert_eq!(format.to_string(), "f32 by kernels");
        format.speeds = vec![
            speed(Way::Kernels, Precision::Bf16, 1090.4),
            speed(Way::Kernels, Precision::F32, 3298.0),
        ];
        let expected = "f32 by kernels (evaluations/s: bf16 1090, f32 3298)";
        assert_eq!(format.to_string(), expected);
        let format = Format {
            way: Way::Operators,
            precision: Precision::Fp16,
            speeds: vec![
                speed(Way::Operators, Precision::Fp16, 3e4),
                speed(Way::File, Precision::Fp16, 2e4),
            ],
            refused: vec![Refused {
                way: Way::Encoder,
                precision: Precision::Fp16,
                reason: "no NVRTC".to_owned(),
            }],
        };
        assert_eq!(
            format.to_string(),
            "fp16 by operators (evaluations/s: fp16 30000, file fp16 20000); \
             refused: encoder in fp16 (no NVRTC)"
        );
    }
}
