//! Names in a store.
//!
//! Names are read from listings of folders and buckets that others can write to. They are therefore
//! checked: a name cannot lead outside the store, and it has only one spelling.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a name in bytes.
const LONGEST: usize = 200;
/// Maximum length of a worker's name in bytes …
const LONGEST_WORKER: usize = 71;
/// … and of the mark of its run, which is appended to it.
const LONGEST_MARK: usize = "-0123abcd".len();

/// The name of an object in a store: parts separated by slashes. Each part consists of ASCII
/// letters, digits, `-`, `_` and `.`, and does not begin with `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a text is not a name in a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a name in a store: its parts are of letters, digits, `-`, `_` and `.`, do not \
     begin with `.`, and it has at most {longest} bytes"
)]
pub struct NameError {
    text: String,
    longest: usize,
}

impl NameError {
    fn new(text: &str, longest: usize) -> NameError {
        NameError {
            text: text.chars().take(longest).collect(),
            longest,
        }
    }
}

impl Name {
    /// The folder of the measured strengths.
    pub(super) const STRENGTHS: &str = "strengths";

    /// Returns the name of a generation's manifest.
    pub fn generation(number: u64) -> Name {
        Name(format!("generations/{number:06}.json"))
    }

    /// Returns the name of the manifest of a generation that the gate has not judged yet.
    pub fn candidate(number: u64) -> Name {
        Name(format!("candidates/{number:06}.json"))
    }

    /// Returns the name of a generation's network.
    pub fn network(number: u64) -> Name {
        Name(format!("networks/{number:06}.pt"))
    }

    /// Returns the name of the learner's checkpoint after a generation.
    pub fn checkpoint(number: u64) -> Name {
        Name(format!("checkpoints/{number:06}.safetensors"))
    }

    /// Returns the name of a generation's measured strength.
    pub fn strength(number: u64) -> Name {
        Name(format!("{}/{number:06}.json", Name::STRENGTHS))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number of the generation whose manifest or strength has this name, or `None` if
    /// this is another name.
    pub fn number(&self) -> Option<u64> {
        let (_, file) = self.0.split_once('/')?;
        let number = file.strip_suffix(".json")?.parse().ok()?;
        let ours = [Name::generation, Name::candidate, Name::strength];
        ours.iter()
            .any(|name| name(number) == *self)
            .then_some(number)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        let is_name = text.len() <= LONGEST && text.split('/').all(is_part);
        match is_name {
            true => Ok(Name(text.to_owned())),
            false => Err(NameError::new(text, LONGEST)),
        }
    }
}

fn is_part(part: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_allowed)
}

/// The name of a worker, which is one part of a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName(String);

impl WorkerName {
    /// Returns the name with a mark that distinguishes this run of the worker from others with the
    /// same name, so that no two runs ever store a shard under the same name.
    pub fn marked(&self, mark: u32) -> WorkerName {
        WorkerName(format!("{}-{mark:08x}", self.0))
    }

    /// Parses a worker's name, with or without a mark.
    fn of_run(text: &str) -> Option<WorkerName> {
        let is_name = is_part(text) && text.len() <= LONGEST_WORKER + LONGEST_MARK;
        is_name.then(|| WorkerName(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for WorkerName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<WorkerName, NameError> {
        match is_part(text) && text.len() <= LONGEST_WORKER {
            true => Ok(WorkerName(text.to_owned())),
            false => Err(NameError::new(text, LONGEST_WORKER)),
        }
    }
}

/// The name of a shard of games: the generation whose network searched them, the worker that wrote
/// it, and the shard's number among that worker's shards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardName {
    /// The generation.
    pub generation: u64,
    /// The worker.
    pub worker: WorkerName,
    /// The shard's number, from 0.
    pub serial: u64,
}

impl ShardName {
    /// The folder that contains all shards.
    pub const FOLDER: &str = "games";

    /// Returns the folder that contains a generation's shards.
    pub(super) fn folder(generation: u64) -> String {
        format!("{}/{generation:06}", ShardName::FOLDER)
    }

    /// Returns the shard's name in the store.
    pub fn name(&self) -> Name {
        let ShardName {
            generation,
            worker,
            serial,
        } = self;
        let folder = ShardName::folder(*generation);
        Name(format!("{folder}/{worker}-{serial:06}.shard"))
    }

    /// Returns the shard that has this name, or `None` if this is not a shard's name.
    pub fn of(name: &Name) -> Option<ShardName> {
        let mut parts = name.as_str().split('/').skip(1);
        let (generation, file) = (parts.next()?, parts.next()?);
        let (worker, serial) = file.strip_suffix(".shard")?.rsplit_once('-')?;
        let shard = ShardName {
            generation: generation.parse().ok()?,
            worker: WorkerName::of_run(worker)?,
            serial: serial.parse().ok()?,
        };
        // Reject other spellings of the same name.
        (shard.name() == *name).then_some(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_lead_nowhere_else() {
        for text in [
            "",
            "/",
            "a//b",
            "/etc/passwd",
            "../a",
            "games/../../a",
            "games/.unfinished",
            "a b",
            "a\\b",
            "games/+00001/a-000000.shard",
            "ä",
            "a/",
        ] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
        assert!("games/000001/a-000000.shard".parse::<Name>().is_ok());
        assert!("a".repeat(LONGEST + 1).parse::<Name>().is_err());
    }

    #[test]
    fn a_shard_has_one_spelling() {
        for text in [
            "games/1/a-000000.shard",
            "games/000001/a-0.shard",
            "games/0000001/a-000000.shard",
            "other/000001/a-000000.shard",
            "games/000001/a-000000.shard/b",
            "games/000001/-000000.shard",
            "games/000001/000000.shard",
        ] {
            let name: Name = text.parse().unwrap();
            assert_eq!(ShardName::of(&name), None, "{text}");
        }
    }

    #[test]
    fn the_longest_worker_s_shards_are_known_again() {
        let longest = "a".repeat(LONGEST_WORKER);
        let shard = ShardName {
            generation: u64::MAX,
            worker: longest.parse::<WorkerName>().unwrap().marked(u32::MAX),
            serial: u64::MAX,
        };
        assert_eq!(shard.worker.as_str().len(), LONGEST_WORKER + LONGEST_MARK);
        assert_eq!(ShardName::of(&shard.name()), Some(shard));
        let error = format!("{longest}a").parse::<WorkerName>().unwrap_err();
        assert!(error.to_string().contains("at most 71 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn shards_are_named_and_known_again(
            generation: u64,
            worker in "[a-zA-Z0-9][a-zA-Z0-9_.-]{0,70}",
            mark: u32,
            serial: u64,
        ) {
            let worker = worker.parse::<WorkerName>().unwrap().marked(mark);
            let shard = ShardName { generation, worker, serial };
            let name = shard.name();
            prop_assert_eq!(ShardName::of(&name), Some(shard));
            prop_assert_eq!(name.as_str().parse::<Name>().unwrap(), name);
            let manifest = Name::generation(generation);
            prop_assert_eq!(manifest.number(), Some(generation));
            prop_assert_eq!(Name::network(generation).number(), None);
        }

        #[test]
        fn any_text_is_read_without_panic(text: String, place in "[a-z/.0-9-]{0,60}") {
            for text in [text, place] {
                if let Ok(name) = text.parse::<Name>() {
                    prop_assert!(!name.as_str().split('/').any(|part| part == ".."), "{}", name);
                    let _ = (ShardName::of(&name), name.number());
                }
                let _ = text.parse::<WorkerName>();
            }
        }
    }
}
