//! The interval between checkpoints.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// An interval, as a number of steps or as a time. In a configuration, it is a number such as
/// `1000`, or a text such as `"5m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// A number of steps.
    Steps(u64),
    /// A time above zero.
    Time(Duration),
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Interval::Steps(steps) => serializer.serialize_u64(*steps),
            Interval::Time(time) => serializer.collect_str(&humantime::format_duration(*time)),
        }
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Interval, D::Error> {
        deserializer.deserialize_any(StepsOrTime)
    }
}

struct StepsOrTime;

impl Visitor<'_> for StepsOrTime {
    type Value = Interval;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a number of steps, such as 1000, or a time, such as \"5m\"")
    }

    fn visit_u64<E: Error>(self, steps: u64) -> Result<Interval, E> {
        Ok(Interval::Steps(steps))
    }

    fn visit_i64<E: Error>(self, steps: i64) -> Result<Interval, E> {
        // A negative number is rejected together with 0, see `check`.
        Ok(Interval::Steps(steps.try_into().unwrap_or(0)))
    }

    fn visit_str<E: Error>(self, time: &str) -> Result<Interval, E> {
        match humantime::parse_duration(time) {
            Ok(time) if !time.is_zero() => Ok(Interval::Time(time)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(time), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn steps_and_times_come_back() {
        for (text, interval) in [
            (json!(1000), Interval::Steps(1000)),
            (json!("5m"), Interval::Time(Duration::from_secs(300))),
            (json!("1h 30m"), Interval::Time(Duration::from_secs(5400))),
        ] {
            assert_eq!(from_value::<Interval>(text.clone()).unwrap(), interval);
            assert_eq!(serde_json::to_value(interval).unwrap(), text);
        }
        for text in [
            json!("5"),
            json!("0s"),
            json!("soon"),
            json!(true),
            json!(1.5),
        ] {
            let error = from_value::<Interval>(text).unwrap_err().to_string();
            assert!(
                error.contains("a number of steps, such as 1000, or"),
                "{error}"
            );
        }
    }
}
