//! Time spans on command lines: `90s`, `500ms`, `5m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest time span, about 27 years, so that one can always be added to an instant.
const LONGEST: Duration = Duration::from_secs(10_000 * 86_400);

/// A time span with its unit, such as `90s`, `500ms` or `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan(pub Duration);

impl TimeSpan {
    /// Parses a time span above zero.
    ///
    /// # Errors
    /// If the text is not a time span, the error explains how to write one.
    pub fn positive(text: &str) -> Result<TimeSpan, String> {
        match text.parse()? {
            TimeSpan(Duration::ZERO) => Err("it must be above zero".to_owned()),
            time => Ok(time),
        }
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        match humantime::parse_duration(text) {
            Ok(time) if time <= LONGEST => Ok(TimeSpan(time)),
            Ok(_) => Err("no time is longer than 10000 days".to_owned()),
            Err(_) => Err("write a number and its unit, such as 500ms, 90s, 5m or 2h".to_owned()),
        }
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        humantime::format_duration(self.0).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("5m", 300_000),
            ("0.1s", 100),
            ("1h 30m", 5_400_000),
            ("0s", 0),
        ] {
            let time: TimeSpan = text.parse().unwrap();
            assert_eq!(time.0.as_millis(), milliseconds, "{text}");
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for text in [
            "90",
            "",
            "s",
            "-1s",
            "5 parsecs",
            "1e400s",
            "100000days",
            "99999999999999y",
        ] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
        assert!(TimeSpan::positive("0ms").is_err() && TimeSpan::positive("1ms").is_ok());
    }
}
