//! Describes the changes to a configuration since the run was last saved.

use super::TrainConfig;
use serde_json::Value;

/// Keys that are read only at the start of a run.
const ONLY_AT_THE_START: [&str; 2] = ["seed", "init"];
/// Maximum number of changes to list.
const MOST: usize = 6;

impl TrainConfig {
    /// Describes in one line which keys have changed since `then`, and how these changes affect the
    /// resumed run. Returns `None` if nothing has changed, or only the number of steps.
    pub fn changes_since(&self, then: &TrainConfig) -> Option<String> {
        let then = TrainConfig {
            steps: self.steps,
            // The architecture is the same, but another of these three keys may specify it.
            preset: self.preset.clone(),
            model: self.model.clone(),
            network: self.network.clone(),
            ..then.clone()
        };
        let [old, new] = [&then, self].map(|it| serde_json::to_value(it).expect("plain data"));
        let mut changed = Vec::new();
        compare("", &old, &new, &mut changed);
        if changed.is_empty() {
            return None;
        }
        let (idle, taken): (Vec<_>, Vec<_>) = changed
            .into_iter()
            .partition(|(key, _)| ONLY_AT_THE_START.contains(&key.as_str()));
        let mut parts = Vec::new();
        if !taken.is_empty() {
            let mut listed: Vec<String> = taken.iter().take(MOST).map(told).collect();
            if taken.len() > MOST {
                listed.push(format!("{} more keys", taken.len() - MOST));
            }
            parts.push(listed.join(", "));
            parts.push("weights and step are kept".to_owned());
        }
        if then.optimizer.kind != self.optimizer.kind {
            parts.push("optimizer state that the previous method lacks starts at zero".to_owned());
        }
        if !then.data.draws_like(&self.data) {
            parts.push("the data starts a new epoch".to_owned());
        }
        if !idle.is_empty() {
            let idle: Vec<String> = idle.iter().map(told).collect();
            let idle = idle.join(", ");
            parts.push(format!("ignored on resume: {idle}"));
        }
        Some(parts.join("; "))
    }
}

/// Formats a changed key with its old and new value.
fn told((key, [old, new]): &(String, [String; 2])) -> String {
    format!("{key} is {new} (was {old})")
}

/// Collects the keys below `path` whose values differ.
fn compare(path: &str, old: &Value, new: &Value, changed: &mut Vec<(String, [String; 2])>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let gone = before.keys().filter(|key| !after.contains_key(*key));
            for key in after.keys().chain(gone) {
                let [old, new] = [before, after].map(|it| it.get(key).unwrap_or(&Value::Null));
                compare(&below(key), old, new, changed);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (place, (old, new)) in before.iter().zip(after).enumerate() {
                compare(&below(&place.to_string()), old, new, changed);
            }
        }
        _ if old != new => changed.push((path.to_owned(), [short(old), short(new)])),
        _ => {}
    }
}

/// Formats a value, shortened to fit on one line.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::Array(values) => format!("a list of {}", values.len()),
        Value::Object(_) => "a table".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> TrainConfig {
        let least = "name = \"x\"\npreset = \"cf-1m-gab\"\nsteps = 9\nbatch = 4\n[data]\n\
            shards = [{ path = \"here/a.shard\" }]\n";
        let mut table: toml::Table = least.parse().unwrap();
        let own: toml::Table = text.parse().unwrap();
        table.extend(own);
        table.try_into().unwrap()
    }

    #[test]
    fn lists_changed_keys_and_their_effect() {
        let then = config("");
        let change = |text: &str| config(text).changes_since(&then);
        assert_eq!(change(""), None);
        assert_eq!(change("steps = 12"), None);
        let told = change("batch = 8\noptimizer = { kind = \"sgd\" }").unwrap();
        assert_eq!(
            told,
            "batch is 8 (was 4), optimizer.kind is \"sgd\" (was \"nadam\"); weights and step are \
             kept; optimizer state that the previous method lacks starts at zero"
        );
        let told = change("seed = 3").unwrap();
        assert_eq!(told, "ignored on resume: seed is 3 (was 0)");
        let told = change("data = { seed = 1, shards = [{ path = \"b.shard\" }] }").unwrap();
        assert!(told.contains("data.seed is 1 (was 0)"), "{told}");
        assert!(
            told.contains("data.shards.0.path is \"b.shard\" (was"),
            "{told}"
        );
        assert!(told.ends_with("the data starts a new epoch"), "{told}");
        let told = change("data = { shards = [{ path = \"there/a.shard\" }] }").unwrap();
        assert!(!told.contains("epoch"), "{told}");
    }
}
