//! Overrides of a configuration's keys, given on the command line or by a variant of an ablation.

use std::str::FromStr;
use toml::{Table, Value};

/// A key and its new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The key in the configuration: a path of names and zero-based array indices, separated by
    /// dots, as in `data.shards.0.rate`.
    pub key: String,
    /// The new value.
    pub value: Value,
}

/// Why a key cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// The text is not an assignment.
    #[error("`{0}` sets nothing: write KEY=VALUE, as in optimizer.beta1=0.95")]
    Form(String),
    /// A part of the key's path is a value that cannot contain other keys.
    #[error("{key}: `{parent}` is a single value")]
    Leaf {
        /// The whole key.
        key: String,
        /// The path of that value.
        parent: String,
    },
    /// The index is out of range.
    #[error("{key}: `{parent}` has {count} entries, and `{index}` is not one of 0, 1, …")]
    Index {
        /// The whole key.
        key: String,
        /// The array.
        parent: String,
        /// The array's length.
        count: usize,
        /// The requested index.
        index: String,
    },
}

impl FromStr for Override {
    type Err = OverrideError;

    /// Parses KEY=VALUE. A value that is not valid TOML is taken as a string, so plain words need
    /// no quotes.
    fn from_str(text: &str) -> Result<Override, OverrideError> {
        let form = || OverrideError::Form(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(form)?;
        let (key, value) = (key.trim(), value.trim());
        if key.split('.').any(str::is_empty) {
            return Err(form());
        }
        let parsed = format!("value = {value}").parse::<Table>();
        let parsed = parsed.ok().filter(|table| table.len() == 1);
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        Ok(Override {
            key: key.to_owned(),
            value: parsed.unwrap_or_else(|| Value::String(value.to_owned())),
        })
    }
}

impl Override {
    /// Sets the key in a table, creating missing parent tables.
    ///
    /// # Errors
    /// [`OverrideError`] if a part of the key's path is not a table or an array, or if an index is
    /// past the end of an array.
    pub fn apply(&self, table: &mut Table) -> Result<(), OverrideError> {
        let mut parts = self.key.split('.');
        let mut walked = parts.next().unwrap_or_default().to_owned();
        let mut at = entry(table, &walked);
        for part in parts {
            at = match at {
                Value::Table(table) => entry(table, part),
                other => self.indexed(other, &walked, part)?,
            };
            walked = format!("{walked}.{part}");
        }
        *at = self.value.clone();
        Ok(())
    }

    /// Returns an element of an array.
    fn indexed<'a>(
        &self,
        value: &'a mut Value,
        parent: &str,
        index: &str,
    ) -> Result<&'a mut Value, OverrideError> {
        let (key, parent) = (self.key.clone(), parent.to_owned());
        let Value::Array(entries) = value else {
            return Err(OverrideError::Leaf { key, parent });
        };
        let count = entries.len();
        let place = index.parse::<usize>().ok();
        place
            .and_then(|place| entries.get_mut(place))
            .ok_or_else(|| OverrideError::Index {
                key,
                parent,
                count,
                index: index.to_owned(),
            })
    }
}

fn entry<'a>(table: &'a mut Table, name: &str) -> &'a mut Value {
    table
        .entry(name.to_owned())
        .or_insert_with(|| Value::Table(Table::new()))
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, TrainConfig};
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"
name = "a"
preset = "cf-6m-gab"
steps = 10
batch = 2
[data]
shards = [{ path = "a.shard" }, { path = "b.shard", rate = 0.5 }]
"#;

    fn read(sets: &[&str]) -> Result<TrainConfig, ConfigError> {
        let sets: Result<Vec<Override>, _> = sets.iter().map(|set| set.parse()).collect();
        TrainConfig::from_table(FILE.parse().unwrap(), &sets?)
    }

    #[test]
    fn keys_of_all_kinds_are_set() {
        let config = read(&[
            "optimizer.beta1 = 0.95",
            "data.seed=3",
            "data.shards.1.rate=0.25",
            "name=two words",
            "optimizer.kind=muon",
            "schedule.shape={kind=\"cosine\", last=0.1}",
        ])
        .unwrap();
        assert_eq!((config.optimizer.beta1, config.data.seed), (0.95, 3));
        assert_eq!(
            (config.data.shards[0].rate, config.data.shards[1].rate),
            (1.0, 0.25)
        );
        assert_eq!(config.name, "two words");
        let shards = read(&["data.shards=[{path=\"c\"}]"]).unwrap().data.shards;
        assert_eq!(shards.len(), 1);
    }

    #[test]
    fn mistakes_name_the_key() {
        let cases = [
            (
                "schedule.warm_up=3",
                "schedule.warm_up",
                "did you mean `warmup`?",
            ),
            ("stpes=3", "stpes", "did you mean `steps`?"),
            ("optimizer.beta1=high", "optimizer.beta1", "expected f64"),
            ("data.shards.7.rate=1", "data.shards.7.rate", "2 entries"),
            ("data.shards.x=1", "data.shards.x", "2 entries"),
            ("steps.more=1", "steps.more", "single value"),
            ("batch=0", "batch", "at least 1"),
            ("batch", "batch", "KEY=VALUE"),
            (".=3", ".=3", "KEY=VALUE"),
        ];
        for (set, key, reason) in cases {
            let error = read(&[set]).unwrap_err().to_string();
            assert!(
                error.contains(key) && error.contains(reason),
                "{set}: {error}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(key in "[a-z0-9.]{0,12}", value in ".{0,12}") {
            if let Ok(set) = format!("{key}={value}").parse::<Override>() {
                let mut table: Table = FILE.parse().unwrap();
                if set.apply(&mut table).is_ok() {
                    let _ = TrainConfig::from_table(table, &[]);
                }
            }
        }
    }
}
