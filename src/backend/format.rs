//! The format that a loaded network runs in.

use super::Precision;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The format that a network runs in, and the measurements behind the choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Format {
    /// The format; never [`Precision::Auto`].
    pub precision: Precision,
    /// The speed of each format that was tried, in the order in which [`Precision::Auto`] prefers
    /// them. Empty if the user requested the format or there is only one.
    pub speeds: Vec<Speed>,
}

/// The speed of a network in one format.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The format.
    pub precision: Precision,
    /// Evaluations per second on one core.
    pub evaluations_per_second: f64,
}

impl From<Precision> for Format {
    fn from(precision: Precision) -> Format {
        Format {
            precision,
            speeds: Vec::new(),
        }
    }
}

/// Formats like `int8 (evaluations/s: int8 4793, bf16 2261, f32 970)`.
impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}", self.precision)?;
        for (place, speed) in self.speeds.iter().enumerate() {
            let before = match place {
                0 => " (evaluations/s: ",
                _ => ", ",
            };
            let (precision, rate) = (speed.precision, speed.evaluations_per_second);
            write!(formatter, "{before}{precision} {rate:.0}")?;
        }
        match self.speeds.is_empty() {
            true => Ok(()),
            false => formatter.write_str(")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_says_what_it_was_chosen_by() {
        let speed = |precision, evaluations_per_second| Speed {
            precision,
            evaluations_per_second,
        };
        let mut format = Format::from(Precision::F32);
        assert_eq!(format.to_string(), "f32");
        format.speeds = vec![
            speed(Precision::Bf16, 1090.4),
            speed(Precision::F32, 3298.0),
        ];
        let expected = "f32 (evaluations/s: bf16 1090, f32 3298)";
        assert_eq!(format.to_string(), expected);
    }
}
