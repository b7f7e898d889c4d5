//! Tests the page in a browser, using it as a person would.

use super::{WHITE, explain, explained, succeed};
use crate::support::printed;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Finds Chromium, which renders pages headless.
pub fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let probe = Command::new(name).arg("--version").output();
        probe.is_ok_and(|probe| probe.status.success())
    })
}

/// Helper functions for the scripts that run in the page.
const TOOLS: &str = r#"
const probe = [];
const click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
const press = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("input")); };
"#;

/// Opens a page and returns what it shows; asserts that the browser reports no errors.
fn open(chromium: &str, page: &Path, user: &Path) -> String {
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .arg("--enable-logging=stderr")
        .arg(format!("--user-data-dir={}", user.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = errors.lines().filter(|line| line.contains("CONSOLE"));
    let said: Vec<&str> = said.collect();
    assert!(said.is_empty(), "{said:?}");
    printed(output)
}

/// Opens a page and runs `script` in it, which pushes its observations to `probe`; asserts that the
/// browser reports no errors.
pub fn use_page(chromium: &str, page: &Path, script: &str) -> Vec<Value> {
    let watch = "<script>const failures = []; addEventListener(\"error\", (event) => failures.push(event.message));</script>";
    let report = "const result = document.createElement(\"pre\");
result.id = \"probe\";
result.textContent = JSON.stringify({ probe, failures });
document.body.append(result);";
    let html = fs::read_to_string(page).unwrap();
    let user = page.with_file_name("user");
    open(chromium, page, &user);
    // The page's policy allows only its own script, and no probes.
    let (start, policy) = html.split_once("script-src ").expect("a policy");
    let (_, rest) = policy.split_once(';').unwrap();
    let html = format!("{start}script-src 'unsafe-inline';{rest}");
    let html = html.replacen("<style>", &format!("{watch}<style>"), 1);
    let script = format!("<script>{{{TOOLS}{script}{report}}}</script></body>");
    let html = html.replacen("</body>", &script, 1);
    let path = page.with_file_name("probed.html");
    fs::write(&path, html).unwrap();
    let shown = open(chromium, &path, &user);
    let (_, result) = shown
        .split_once("<pre id=\"probe\">")
        .expect("the script ran");
    let (result, _) = result.split_once("</pre>").unwrap();
    let mut result: Value = serde_json::from_str(result).unwrap();
    assert_eq!(result["failures"], Value::from(Vec::<Value>::new()));
    serde_json::from_value(result["probe"].take()).unwrap()
}

/// Selects squares, heads, layers and parts, collapses a line of the search, and selects the head
/// that attends along diagonals.
const USE: &str = r#"
const viewer = document.querySelector("[name=head]").closest(".viewer");
const show = () => probe.push(viewer.querySelector("figcaption").textContent);
show();
click(viewer.querySelector('[data-square="e5"] .square'));
show();
choose(viewer.querySelector("[name=head]"), "2");
show();
press(document.body, "[");
show();
press(viewer.querySelector(".choice"), "ArrowUp");
show();
press(document.body, "2");
show();
press(document.body, "f");
probe.push(document.querySelectorAll(".board").length);
const shown = () => document.querySelectorAll('#search tr:not([hidden])').length;
probe.push(shown());
click(document.querySelector('#search tr[aria-expanded=true]'));
probe.push(shown());
choose(document.querySelector('#heads select'), "bishop_line");
const diagonal = document.querySelectorAll('#heads tr')[1];
press(diagonal, "Enter");
const value = (name) => 1 + Number(document.querySelector(`[name=${name}]`).value);
probe.push([diagonal.cells[0].textContent, diagonal.ariaSelected, value("layer"), value("head")]);
"#;

/// Returns the layer and number of the head that attends most along a relation.
fn head_along(folder: &Path, relation: &str) -> [u64; 2] {
    let heads = explained(folder)["heads"].take();
    let score = |head: &&Value| {
        let relations = head["relations"].as_array().unwrap().iter();
        let mut found = relations.filter(|it| it["relation"] == relation);
        found.next().unwrap()["score"].as_f64().unwrap()
    };
    let heads = heads.as_array().unwrap().iter();
    let best = heads.max_by(|a, b| score(a).total_cmp(&score(b))).unwrap();
    ["layer", "head"].map(|name| best[name].as_u64().unwrap())
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_browser_shows_the_page() {
    let Some(chromium) = chromium() else {
        crate::skip::skip("Chromium (Debian: apt install chromium)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let searched = ["--nodes", "100", "-o", "page.html", "--json"];
    succeed(explain(
        folder.path(),
        &[&["--fen", WHITE], &searched[..]].concat(),
    ));
    let probe = use_page(chromium, &folder.path().join("page.html"), USE);
    let captions: Vec<&str> = probe.iter().filter_map(Value::as_str).collect();
    let [before, square, head, layer, moved, part] = captions[..] else {
        panic!("{probe:?}");
    };
    assert!(!before.starts_with("e5"), "{before}");
    for caption in [square, head, layer] {
        assert!(caption.starts_with("e5 attends to"), "{caption}");
    }
    assert!(
        moved.starts_with("e6 attends to") && part.starts_with("e6"),
        "{moved}, {part}"
    );
    assert!(
        square != head && head != layer && moved != part,
        "{captions:?}"
    );
    // The position, two attention boards plus one per head, and four attributions.
    assert_eq!(probe[6], Value::from(1 + 2 + 4 + 4));
    // The best move's replies are collapsed.
    let [open, folded] = [7, 8].map(|place| probe[place].as_u64().unwrap());
    assert!(open > folded && folded > 1, "{open} {folded}");
    let [layer, head] = head_along(folder.path(), "bishop_line");
    assert_eq!(
        probe[9],
        json!([format!("layer {layer}, head {head}"), "true", layer, head])
    );
}
