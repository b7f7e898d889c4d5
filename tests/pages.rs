//! Opens every page that the programs write in a browser: no script fails, no id is duplicated, no
//! section is empty, and nothing is cut off on a desktop screen or a phone.

use crate::serve::Server;
use crate::serve::browser::Browser;
use crate::train::workplace::{games, run, succeed, train, workplace};
use crate::train::{diffusion, games as gpt, worlds};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tessera::train::{History, write_report};

/// A name that acts as markup, as an attribute or as a script if it is not escaped.
const NAME: &str = "<!--<script> \" ' & </script> \u{2028} {{data}} |";
/// A similar name for a run, which is the name of the run's folder.
const RUN: &str = "<!--<script> \" ' & \u{2028} {{data}} |";

const SCREEN: u32 = 1440;
const PHONE: u32 = 390;

/// Returns the faults of the current page. Headings, introductions and placeholders do not count as
/// content of a section. All chessground boards share the id of their shapes' filter.
const FAULTS: &str = r#"(() => {
  const ids = [...document.querySelectorAll("[id]:not(.cg-shapes *)")].map((it) => it.id);
  const faults = ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `two elements have the id ${id}`);
  const begin = (it) => it.outerHTML.slice(0, 160);
  for (const part of document.querySelectorAll("section, main, article, table, figure")) {
    if (!part.checkVisibility()) continue;
    const rest = part.cloneNode(true);
    for (const it of rest.querySelectorAll("h2, h2 + .note, .none, th, figcaption, [hidden]")) it.remove();
    if (!rest.textContent.trim() && !rest.querySelector("svg, input, select, cg-board")) faults.push(`empty: ${begin(part)}`);
  }
  const blank = document.body.innerText.match(/.*\b(NaN|undefined|Infinity)\b.*/);
  if (blank) faults.push(`no number: ${blank[0]}`);
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.push(`${scrollWidth} pixels wide`);
  if (clientWidth > 1000) {
    const cut = [...document.querySelectorAll(".scroll")].filter((it) => it.scrollWidth > it.clientWidth);
    faults.push(...cut.map((it) => `cut off: ${begin(it)}`));
  }
  return faults;
})()"#;

/// Asserts that the current page has no faults; returns its text.
fn check(browser: &mut Browser, page: &str) -> String {
    for width in [PHONE, SCREEN] {
        browser.resize(width);
        let faults = browser.evaluate(FAULTS);
        assert_eq!(faults, json!([]), "{page} at {width} pixels");
    }
    browser.assert_quiet();
    let text = browser.evaluate("document.title + '\\n' + document.body.textContent");
    text.as_str().unwrap().to_owned()
}

/// Trains a tiny network of each family and writes the network files.
fn networks(folder: &Path) {
    diffusion::configure(folder);
    worlds::configure(folder);
    gpt::configure(folder);
    let mut runs = [
        run(folder, RUN),
        diffusion::run(folder, "diffusion", &[]),
        worlds::run(folder, "world", &[]),
        gpt::run(folder, "gpt", &[]),
    ];
    std::thread::scope(|scope| {
        for run in &mut runs {
            scope.spawn(|| succeed(run));
        }
    });
    for (run, file) in [
        (RUN, "tiny.pt"),
        ("diffusion", "diffusion.pt"),
        ("world", "world.pt"),
        ("gpt", "gpt.pt"),
    ] {
        let export = ["export", run, "-o", file, "--name", NAME];
        succeed(train(folder).args(export));
    }
}

/// Writes the trainer's pages. The loop's page is the page of its run without data statistics.
fn write_reports(folder: &Path) -> [&'static str; 3] {
    succeed(train(folder).args(["report", RUN, "-o", "one.html"]));
    let runs = ["report", RUN, "diffusion", "world", "gpt"];
    succeed(train(folder).args(runs).args(["-o", "several.html"]));
    let history = History::read(&folder.join("gpt")).unwrap();
    write_report(&folder.join("loop.html"), &[history], &[Value::Null]).unwrap();
    ["one.html", "several.html", "loop.html"]
}

/// Writes a page of each kind of explanation.
fn write_explanations(folder: &Path) -> [&'static str; 9] {
    std::fs::write(folder.join("one.pgn"), games(1)).unwrap();
    let fit = ["transcoder", "--net", "tiny.pt", "--layer", "1"];
    let small = ["--limit", "120", "--features", "16", "--top-k", "4"];
    let output = ["--steps", "5", "--games", "games.pgn", "-o", "t.json"];
    succeed(train(folder).args(fit).args(small).args(output));
    let lens = ["lens", "--net", "tiny.pt", "--limit", "120", "--steps", "2"];
    let output = ["--games", "games.pgn", "-o", "l.json"];
    succeed(train(folder).args(lens).args(output));
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/nets/tessera-human.pt");
    let game = ["--games", "one.pgn", "--ply", "9"];
    [
        ("searched.html", vec!["tiny.pt", "--nodes", "50"]),
        ("features.html", vec!["tiny.pt", "--transcoder", "t.json"]),
        ("lens.html", vec!["tiny.pt", "--lens", "l.json"]),
        ("against.html", vec!["tiny.pt", "--against", "diffusion.pt"]),
        ("ratings.html", vec![shipped, "--elo", "1200,1900"]),
        ("world.html", [&["world.pt"], &game[..]].concat()),
        ("diffusion.html", vec!["diffusion.pt"]),
        (
            "steps.html",
            [&["diffusion.pt", "--steps", "3"], &game[..]].concat(),
        ),
        ("gpt.html", [&["gpt.pt"], &game[..]].concat()),
    ]
    .map(|(page, arguments)| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command
            .current_dir(folder)
            .args(["explain", "-o", page, "--net"]);
        succeed(command.args(arguments));
        page
    })
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn every_page_is_faultless_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let workplace = workplace(2);
    let folder = workplace.path();
    networks(folder);
    let reports = write_reports(folder);
    let explanations = write_explanations(folder);
    for page in reports.into_iter().chain(explanations) {
        browser.go(&format!("file://{}", folder.join(page).display()));
        let text = check(&mut browser, page);
        let name = match page {
            "loop.html" => "gpt",
            "ratings.html" => "tessera-human – explanation",
            page if reports.contains(&page) => RUN,
            _ => NAME,
        };
        assert!(text.contains(name), "{page} does not show {name}: {text}");
    }

    let [imagines, writes] = ["diffusion.pt", "gpt.pt"].map(|net| folder.join(net));
    let also = [&imagines, &writes].map(|net| net.to_str().unwrap());
    let server = Server::start(&["--also", also[0], "--also", also[1]]);
    for place in [
        "#play",
        "#analyse",
        "#review",
        "#explain",
        "#generate",
        "docs",
    ] {
        browser.go(&format!("http://{}/{place}", server.address));
        browser.evaluate("for (const it of document.querySelectorAll('details')) it.open = true");
        check(&mut browser, place);
    }
}
