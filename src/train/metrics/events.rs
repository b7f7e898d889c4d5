//! Writes metrics in TensorBoard's format.
//!
//! An event file is a sequence of records. Each record consists of the length of its data as a u64,
//! the checksum of the length, the data, which is one message of TensorFlow's `event.proto`, and
//! the checksum of the data. This module writes only scalars, which need four short message types.
//! The existing crates for such files run protoc in the build or depend on a protobuf version from
//! 2020.

use super::appended::Appended;
use prost::Message;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version that the first event must name.
const VERSION: &str = "brain.Event:2";

/// The status in `SessionLog` that marks the start of a session.
const START: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    session: Option<Session>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
struct Scalar {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Session {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Writes a single event file.
#[derive(Debug)]
pub(super) struct Events {
    folder: PathBuf,
    /// The step at which the session started.
    step: u64,
    /// The file, which is created with the first event, because many sessions write none.
    file: Option<Appended>,
}

impl Events {
    /// Returns a writer for a session that resumes after `step`. The file's start event makes
    /// TensorBoard drop later steps in the files of earlier sessions.
    pub fn new(folder: &Path, step: u64) -> Events {
        Events {
            folder: folder.to_owned(),
            step,
            file: None,
        }
    }

    fn begin(&self) -> std::io::Result<Appended> {
        let (seconds, process) = (now() as u64, std::process::id());
        let name = |number: u32| {
            let name = format!("events.out.tfevents.{seconds:010}.{process}.{number:03}");
            self.folder.join(name)
        };
        let fresh = (0..).map(name).find(|path| !path.exists());
        let mut file = Appended::open(&fresh.expect("numbers do not end"), 0)?;
        let version = Event {
            wall_time: now(),
            file_version: Some(VERSION.to_owned()),
            ..Event::default()
        };
        let start = Event {
            wall_time: now(),
            step: self.step as i64 + 1,
            session: Some(Session { status: START }),
            ..Event::default()
        };
        file.append(&[record(&version), record(&start)].concat())?;
        Ok(file)
    }

    /// Writes all numbers in a line of metrics, tagged `split/name`.
    pub fn write(
        &mut self,
        split: &str,
        step: u64,
        line: &Map<String, Value>,
    ) -> std::io::Result<()> {
        let mut values = Vec::new();
        let fields = line.iter().filter(|(name, _)| *name != "step");
        for (name, value) in fields {
            scalars(&format!("{split}/{name}"), value, &mut values);
        }
        let event = Event {
            wall_time: now(),
            step: step as i64,
            summary: Some(Summary { values }),
            ..Event::default()
        };
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.begin()?),
        };
        file.append(&record(&event))
    }
}

/// Collects the numbers in a value and its nested objects.
fn scalars(tag: &str, value: &Value, found: &mut Vec<Scalar>) {
    if let Some(number) = value.as_f64() {
        found.push(Scalar {
            tag: tag.to_owned(),
            value: Some(number as f32),
        });
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        scalars(&format!("{tag}/{name}"), value, found);
    }
}

fn record(event: &Event) -> Vec<u8> {
    let data = event.encode_to_vec();
    let length = (data.len() as u64).to_le_bytes();
    let parts = [
        &length[..],
        &masked(&length).to_le_bytes(),
        &data,
        &masked(&data).to_le_bytes(),
    ];
    parts.concat()
}

/// Returns the format's checksum, a CRC-32C that is rotated and offset by a constant. Because of
/// this masking, the checksum stays reliable if the data itself contains checksums.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads a file as the format's specification describes, and verifies every checksum.
    fn read(path: &Path) -> Vec<Event> {
        let bytes = std::fs::read(path).unwrap();
        let mut rest = bytes.as_slice();
        let mut events = Vec::new();
        while !rest.is_empty() {
            let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(number(8), masked(&rest[..8]));
            let data = &rest[12..12 + length];
            assert_eq!(number(12 + length), masked(data));
            events.push(Event::decode(data).unwrap());
            rest = &rest[16 + length..];
        }
        events
    }

    #[test]
    fn scalars_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = Events::new(folder.path(), 7);
        let line = json!({"split": "train", "step": 8, "policy": 1.5, "time": {"data": 0.25}});
        events.write("train", 8, line.as_object().unwrap()).unwrap();
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap();
        let found = read(&file.unwrap().path());
        assert_eq!(found[0].file_version.as_deref(), Some(VERSION));
        assert_eq!((found[1].step, found[2].step), (8, 8));
        let summary = found[2].summary.clone().unwrap();
        let values: Vec<_> = summary
            .values
            .into_iter()
            .map(|scalar| (scalar.tag, scalar.value.unwrap()))
            .collect();
        let tag = |tag: &str, value| (tag.to_owned(), value);
        assert_eq!(
            values,
            [tag("train/policy", 1.5), tag("train/time/data", 0.25)]
        );
    }

    #[test]
    fn the_checksum_is_the_formats() {
        // Every event file written by TensorFlow starts with a length of 24 in eight bytes,
        // followed by this checksum.
        assert_eq!(masked(&24u64.to_le_bytes()), 0x224b_7fa3);
    }
}
