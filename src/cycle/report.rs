//! The report of a loop: the learner's curves, and the strength of its networks.

use super::config::CycleConfig;
use super::error::CycleError;
use crate::store::{Games, Strength};
use crate::train::{self, History};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name of the report in the loop's folder.
const REPORT: &str = "report.html";

/// Writes the report into the loop's folder, with the measured strengths by generation.
///
/// # Errors
/// [`CycleError`] if the learner's metrics cannot be read, or the report cannot be written.
pub fn write_report(
    config: &CycleConfig,
    strengths: &BTreeMap<u64, Strength>,
) -> Result<(), CycleError> {
    let mut history = History::read(&config.run_folder())?;
    history.strengths = strengths.values().map(described).collect();
    let path = config.folder.join(REPORT);
    train::write_report(&path, &[history], &[Value::Null]).map_err(CycleError::io(&path))
}

fn described(strength: &Strength) -> Value {
    // JSON has no infinite numbers; they become null.
    let games = |games: &Games| json!({ "games": games, "elo": games.elo() });
    json!({
        "generation": strength.number,
        "first": games(&strength.first),
        "previous": games(&strength.previous),
    })
}
