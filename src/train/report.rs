//! Creates a self-contained HTML page that compares runs.

use super::history::History;
use crate::atomic_file;
use crate::page::Page;
use serde_json::{Value, json};
use std::path::Path;

const BODY: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/style.css");
const SCRIPT: &str = include_str!("report/script.js");

/// Returns the page, with the curves, calibration, speed and configuration of `runs` and with
/// statistics of their data. `data` has one entry per run: an object with the counts from
/// [`Findings`](crate::data::statistics::Findings), or null.
pub fn report(runs: &[History], data: &[Value]) -> String {
    let described: Vec<Value> = runs
        .iter()
        .zip(data)
        .map(|(run, data)| {
            json!({
                "name": run.name,
                "config": run.config,
                "lines": run.lines,
                "data": data,
                "strengths": run.strengths,
            })
        })
        .collect();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let page = Page {
        title: &format!("{} – training report", names.join(", ")),
        body: BODY,
        style: STYLE,
        script: SCRIPT,
    };
    page.render(&json!(described))
}

/// Writes the page that [`report`] returns to `path`.
///
/// # Errors
/// The system's error if the page cannot be written.
pub fn write_report(path: &Path, runs: &[History], data: &[Value]) -> std::io::Result<()> {
    atomic_file::write(path, report(runs, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;

    #[test]
    fn the_page_holds_the_runs_and_asks_for_nothing_else() {
        let run = History {
            name: "a</script><b>".to_owned(),
            config: None,
            lines: vec![json!({"split": "train", "step": 1, "policy": 3.5})],
            strengths: Vec::new(),
        };
        let page = report(&[run], &[json!({"games": 7})]);
        for part in ["\"policy\":3.5", "\"games\":7", "a&lt;/script>"] {
            assert!(page.contains(part), "{part}");
        }
        page::assert_self_contained(&page);
    }
}
