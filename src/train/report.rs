//! A self-contained HTML page that compares runs.

use super::history::History;
use crate::atomic_file;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

const PAGE: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/style.css");
const SCRIPT: &str = include_str!("report/script.js");

/// The page: curves, calibration, speed and configuration of `runs`, and statistics
/// of their data. `data` has an entry for each run: an object with the counts of
/// [`Findings`](crate::data::statistics::Findings), or null.
#[must_use]
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
            })
        })
        .collect();
    // Inside a script element nothing but its end is markup.
    let described = json!(described).to_string().replace("</", "<\\/");
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    PAGE.replace("{{title}}", &escaped(&names.join(", ")))
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{runs}}", &described)
}

/// Writes [`report`]'s page to `path`.
///
/// # Errors
/// What the system says.
pub fn write_report(path: &Path, runs: &[History], data: &[Value]) -> std::io::Result<()> {
    let mut file = atomic_file::unfinished(path)?;
    file.write_all(report(runs, data).as_bytes())?;
    atomic_file::persist(file, path)
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_page_holds_the_runs_and_asks_for_nothing_else() {
        let run = History {
            name: "a</script><b>".to_owned(),
            config: None,
            lines: vec![json!({"split": "train", "step": 1, "policy": 3.5})],
        };
        let page = report(&[run], &[json!({"games": 7})]);
        for part in ["\"policy\":3.5", "\"games\":7", "a&lt;/script>"] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("{{"));
        for foreign in ["http://", "https://", "src=", "@import", "url("] {
            // The namespace of SVG is a name, not an address.
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(foreign), "{foreign}");
        }
    }

    /// The page's own script, as far as it needs no page.
    #[test]
    fn what_is_absent_is_shown_as_absent() {
        let (elements, _) = SCRIPT.split_once("/* Charts */").unwrap();
        let shown = "[undefined, null, NaN, Math.max(), 0 / 0, 0, 12345].map(short).join(' ')";
        let script = format!(
            "globalThis.document = {{ getElementById: () => ({{ textContent: '[]' }}) }};\n\
             {elements}\nconsole.log({shown});"
        );
        let Ok(output) = Command::new("node").args(["-e", &script]).output() else {
            crate::skip::skip("node");
            return;
        };
        let shown = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(shown.trim_end(), "– – – – – 0 12.35 k", "{errors}");
    }
}
