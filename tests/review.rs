//! `tessera review`, from the command line to the page in a browser.

mod judged;

use crate::explain::browser::chromium;
use crate::serve::browser::Browser;
use crate::support::wait_until;
use crate::waiting::at_some_pace;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tessera::data::pgn::{Games, read_game};

/// A beginners' game with many mistakes, clock times, a comment and a variation.
const GAME: &str = "[Event \"Club night\"]
[Site \"https://example.org/game\"]
[White \"Anna\"]
[Black \"Bert <b>\"]
[WhiteElo \"1210\"]
[BlackElo \"1180\"]
[Result \"1-0\"]

1. e4 {[%clk 0:05:00]} e5 {[%clk 0:04:58]} 2. Nf3 {[%clk 0:04:50]} Nc6 (2... d6) 3. Bc4 Nd4?
4. Nxe5 Qg5 5. Nxf7 Qxg2 6. Rf1 Qxe4+ 7. Be2 Nf3# {smothered} 0-1
";

fn review(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tessera"))
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .arg("review")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn succeed(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a folder with these games.
fn folder(games: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in games {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Options for a review without a network or a judge, which is fast but of little value.
const RANDOM: [&str; 6] = ["--judge", "none", "--backend", "random", "--nodes", "60"];

fn reviewed(folder: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &RANDOM, &["--json"]].concat();
    serde_json::from_str(&succeed(review(folder, &arguments))).unwrap()
}

#[test]
fn a_game_is_reviewed_in_every_form() {
    let folder = folder(&[("game.pgn", GAME)]);
    let outputs = [
        "-o",
        "page.html",
        "--pgn",
        "out.pgn",
        "--puzzles",
        "out.csv",
    ];
    let text = succeed(review(
        folder.path(),
        &[&["game.pgn"], &RANDOM[..], &outputs].concat(),
    ));
    assert!(
        text.starts_with("Anna (1210) – Bert <b> (1180), 0-1\n"),
        "{text}"
    );
    let annotated = fs::read(folder.path().join("out.pgn")).unwrap();
    let record = read_game(&annotated).unwrap().record;
    assert_eq!(record.main_line().count(), 14);
    assert!(record.nodes.iter().any(|node| node.eval.is_some()));
    let table = fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert!(table.starts_with("PuzzleId,FEN,Moves,Rating,"));
    let json = reviewed(folder.path(), &["game.pgn"]);
    let game = &json["games"][0];
    assert_eq!(game["plies"].as_array().unwrap().len(), 14);
    assert_eq!(game["game"]["ending"], "checkmate");
    assert_eq!(game["plies"][13]["win"].as_f64().unwrap().round(), 2.0);
    assert_eq!(game["plies"][0]["clock"], 300.0);
    assert_eq!(json["summary"]["games"].as_array().unwrap().len(), 1);
}

/// The second run searches nothing and reuses the stored results.
#[test]
fn results_are_kept() {
    let folder = folder(&[("game.pgn", GAME)]);
    let first = reviewed(folder.path(), &["game.pgn"]);
    let cache = folder.path().join("cache/tessera/review");
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    assert_eq!(reviewed(folder.path(), &["game.pgn"]), first);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
}

/// Old programs write names in Latin-1 or UTF-16.
#[test]
fn latin_1_and_utf_16_are_read() {
    let text = "[White \"J\u{f6}rg\"]\n\n1. f3 e5 2. g4 Qh4# 0-1";
    let narrow: Vec<u8> = text.chars().map(|it| u8::try_from(it).unwrap()).collect();
    let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
    for bytes in [
        narrow,
        units().flat_map(u16::to_le_bytes).collect(),
        units().flat_map(u16::to_be_bytes).collect(),
    ] {
        let folder = folder(&[]);
        fs::write(folder.path().join("game.pgn"), bytes).unwrap();
        let json = reviewed(folder.path(), &["game.pgn", "-o", "page.html"]);
        assert_eq!(json["games"][0]["white"]["name"], "J\u{f6}rg");
    }
}

/// Unusual games and their expected results.
#[test]
fn odd_games_are_reviewed_as_far_as_they_go() {
    let long = "Nf3 Nf6 Ng1 Ng8 ".repeat(150);
    for (text, plies, said) in [
        ("1. e4 e5 2. Nf3", 3, ""),
        ("1. e4 e5 2. Ke4 Nc6 3. d4 *", 2, "not a legal move"),
        ("1. e4 (1. d4 d5 (1... Nf6)) e5 {good} 1/2-1/2", 2, ""),
        (
            "[FEN \"4k3/8/8/8/8/8/4R3/4K3 b - - 0 1\"]\n[SetUp \"1\"]\n\n1... Kd7 2. Rd2+ *",
            2,
            "",
        ),
        (
            "[Variant \"Chess960\"]\n[FEN \"bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9\"]\n\n9. Nc3 O-O *",
            1,
            "9... O-O is not a legal move",
        ),
        (&long, 600, ""),
        ("[White \"a\"]\n[Result \"*\"]\n\n*", 0, ""),
        ("1. f3 e5 2. g4 Qh4# 0-1", 4, ""),
    ] {
        let folder = folder(&[("game.pgn", text)]);
        let json = reviewed(folder.path(), &["game.pgn", "-o", "page.html"]);
        let game = &json["games"][0];
        assert_eq!(game["plies"].as_array().unwrap().len(), plies, "{text}");
        let unreadable = json["summary"]["unreadable"].to_string();
        assert!(unreadable.contains(said), "{unreadable}");
        assert_eq!(unreadable == "[]", said.is_empty(), "{unreadable}");
        let warnings = game["game"]["warnings"].to_string();
        assert!(warnings.contains(said), "{warnings}");
        assert_eq!(warnings == "[]", said.is_empty(), "{warnings}");
    }
}

#[test]
fn one_broken_game_in_a_thousand_stops_nothing() {
    let games = "[White \"Anna\"]\n[Black \"Carl\"]\n\n1. e4 *\n\n".repeat(999);
    let broken = "[White \"Anna\"]\n[FEN \"nonsense\"]\n\n1. e4 *\n\n";
    let folder = folder(&[
        ("games/a.pgn", &games),
        ("games/b/c.pgn", broken),
        ("games/d.txt", "no"),
    ]);
    let arguments = [
        "games",
        "--judge",
        "none",
        "--nodes",
        "2",
        "--backend",
        "uniform",
        "--json",
    ];
    let output = review(
        folder.path(),
        &[&arguments[..], &["--player", "anna"]].concat(),
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let json: Value = serde_json::from_str(&succeed(output)).unwrap();
    assert_eq!(json["games"].as_array().unwrap().len(), 999);
    let unreadable = json["summary"]["unreadable"].to_string();
    assert!(
        unreadable.contains("c.pgn, game 1, line 1: `nonsense` is not a FEN"),
        "{unreadable}"
    );
    assert!(errors.contains("left out:"), "{errors}");
    assert_eq!(json["games"][0]["side"], "white");
}

/// Ctrl-C ends the searches; the positions searched so far are reviewed, written and cached.
#[cfg(unix)]
#[test]
fn an_interrupted_review_keeps_its_results() {
    at_some_pace("a part of the game is reviewed", keeps_results);
}

/// Interrupts a review after this many seconds of its second game; returns whether any of that
/// game's positions have been searched.
#[cfg(unix)]
fn keeps_results(factor: u32) -> bool {
    let long = "Nf3 Nf6 Ng1 Ng8 ".repeat(150);
    let folder = folder(&[("games.pgn", &format!("{GAME}\n[White \"b\"]\n\n{long}*\n"))]);
    let running = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .args(["review", "games.pgn", "-o", "pages", "--pgn", "out.pgn"])
        .args([
            "--judge",
            "none",
            "--backend",
            "random",
            "--nodes",
            "4000",
            "--json",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let first = folder.path().join("pages/game-0001.html");
    wait_until("the first game is reviewed", || first.exists());
    std::thread::sleep(Duration::from_secs(1) * factor);
    let interrupted = Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    let output = running.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("stopping: the review covers"), "{errors}");
    let json: Value = serde_json::from_str(&succeed(output)).unwrap();
    let games = json["games"].as_array().unwrap();
    assert_eq!(games[0]["game"]["warnings"], json!([]));
    let warnings = games[1]["game"]["warnings"].to_string();
    assert!(warnings.contains("The review was stopped"), "{warnings}");
    let plies = games[1]["plies"].as_array().unwrap();
    let known = plies.iter().filter(|ply| !ply["win"].is_null()).count();
    assert!(known < 600, "{known} of {}", plies.len());
    if known == 0 {
        return false;
    }
    let written = fs::read(folder.path().join("out.pgn")).unwrap();
    assert_eq!(Games::new(&written[..]).count(), 2);
    for page in ["game-0002.html", "index.html"] {
        assert!(folder.path().join("pages").join(page).exists(), "{page}");
    }
    let cache = folder.path().join("cache/tessera/review");
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 2);
    true
}

#[test]
fn several_games_produce_a_folder_of_pages() {
    let second = GAME.replace("Anna", "Dora").replace("Bert <b>", "Anna");
    let third = GAME.replace("Anna", "Emil");
    let games = format!("{GAME}\n{second}\n{third}");
    let folder = folder(&[("games.pgn", &games)]);
    let player = ["games.pgn", "--player", "ANNA"];
    let told = succeed(review(
        folder.path(),
        &[&player, &RANDOM[..], &["-o", "pages"]].concat(),
    ));
    assert!(told.starts_with("2 games, "), "{told}");
    let mut names: Vec<String> = fs::read_dir(folder.path().join("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["game-0001.html", "game-0002.html", "index.html"]);
    let json = reviewed(folder.path(), &player);
    let sides: Vec<&Value> = json["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["side"])
        .collect();
    assert_eq!(sides, ["white", "black"]);
    assert_eq!(json["summary"]["player"], "ANNA");
}

#[test]
fn a_name_without_an_ending_is_a_folder() {
    let folder = folder(&[("game.pgn", GAME)]);
    succeed(review(
        folder.path(),
        &[&["game.pgn", "-o", "reviews"], &RANDOM[..]].concat(),
    ));
    assert!(folder.path().join("reviews/index.html").is_file());
}

#[test]
fn refusals_give_their_reason() {
    let folder = folder(&[
        ("game.pgn", GAME),
        ("two.pgn", &format!("{GAME}\n{GAME}")),
        ("empty.pgn", ""),
        ("text.pgn", "hello"),
    ]);
    for (arguments, said) in [
        (&["none.pgn"][..], "none.pgn"),
        (&["text.pgn"], "1. hello is not a move"),
        (&["empty.pgn"], "no game was found"),
        (
            &["game.pgn", "--player", "Zoe"],
            "no game of Zoe was found: the players are ",
        ),
        (
            &["game.pgn", "--pgn", "game.pgn"],
            "is read, so it is not written",
        ),
        (&["two.pgn", "-o", "page.html"], "name a folder"),
        (&["game.pgn", "--white", "--black"], "cannot be used with"),
        (&["cache"], "cache"),
    ] {
        let output = review(folder.path(), &[arguments, &RANDOM].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(said),
            "{arguments:?}: {errors}"
        );
    }
}

#[test]
fn standard_input_is_read() {
    let folder = folder(&[("game.pgn", GAME)]);
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .args(["review", "-", "--pgn", "-", "--black"])
        .args(RANDOM)
        .stdin(fs::File::open(folder.path().join("game.pgn")).unwrap())
        .output()
        .unwrap();
    let text = succeed(output);
    assert_eq!(Games::new(text.as_bytes()).count(), 1);
}

/// An expression that returns the page's faults: content wider than the window, and invalid
/// numbers.
const FAULTS: &str = r#"(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  const blank = document.body.innerText.match(/.*\b(NaN|undefined|Infinity)\b.*/);
  return [scrollWidth > clientWidth ? scrollWidth : null, blank && blank[0]].filter(Boolean);
})()"#;

/// Steps through the game with keys and clicks; returns the state after each step.
const USE: &str = r##"(() => {
  const seen = [];
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const moment = () => document.getElementById("moment").textContent;
  const label = () => document.querySelector("#board svg").getAttribute("aria-label");
  seen.push(moment());
  press("ArrowRight");
  seen.push(label());
  press("End");
  seen.push(label());
  press("Home");
  press("ArrowDown");
  const marked = document.querySelector("#moves [aria-current]");
  seen.push(/[?!]$/.test(marked.textContent), document.querySelectorAll("#why p").length > 1);
  const line = document.querySelector(".line button");
  line.click();
  seen.push(/in a line$/.test(label()), document.querySelectorAll(".line [aria-current]").length);
  press("ArrowLeft");
  seen.push(/in a line$/.test(label()));
  const above = document.getElementById("above").textContent;
  document.getElementById("flip").click();
  seen.push(above !== document.getElementById("above").textContent);
  document.querySelector('#moves [data-ply="4"]').click();
  seen.push(label());
  seen.push(document.querySelectorAll("#curve path").length > 3, document.querySelectorAll("#graph circle").length > 0);
  return seen;
})()"##;

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_browser_steps_through_the_game() {
    if chromium().is_none() {
        crate::skip::skip("Chromium (Debian: apt install chromium)");
        return;
    }
    let folder = folder(&[(
        "two.pgn",
        &format!("{GAME}\n{}", GAME.replace("Anna", "Dora")),
    )]);
    succeed(review(
        folder.path(),
        &["two.pgn", "--judge", "none", "--nodes", "40", "-o", "pages"],
    ));
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let page = |name: &str| {
        format!(
            "file://{}",
            folder.path().join("pages").join(name).display()
        )
    };
    for name in ["index.html", "game-0001.html"] {
        browser.go(&page(name));
        for width in [390, 1440] {
            browser.resize(width);
            assert_eq!(
                browser.evaluate(FAULTS),
                json!([]),
                "{name} at {width} pixels"
            );
        }
        browser.assert_quiet();
    }
    let seen = browser.evaluate(USE);
    let expected = json!([
        "First position",
        "Position after 1. e4",
        "Position after 7... Nf3#",
        true,
        true,
        true,
        1,
        false,
        true,
        "Position after 2... Nc6",
        true,
        true,
    ]);
    assert_eq!(seen, expected);
    browser.assert_quiet();
    browser.go(&page("index.html"));
    let links = browser.evaluate("document.querySelectorAll('#games a').length");
    assert_eq!(links, 2);
}

/// python-chess reads the annotated game without errors.
#[test]
fn python_chess_reads_the_annotated_game() {
    let script = "import chess.pgn, sys\n\
        game = chess.pgn.read_game(open(sys.argv[1]))\n\
        assert not game.errors, game.errors\n\
        nodes = list(game.mainline())\n\
        print(len(nodes), sum(node.eval() is not None for node in nodes), \
        sum(bool(node.nags) for node in nodes) > 0, nodes[0].clock())";
    let folder = folder(&[("game.pgn", GAME)]);
    succeed(review(
        folder.path(),
        &[&["game.pgn", "--pgn", "out.pgn"], &RANDOM[..]].concat(),
    ));
    let output = Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(folder.path().join("out.pgn"))
        .output();
    let Some(output) = output.ok().filter(|it| {
        it.status.success() || !String::from_utf8_lossy(&it.stderr).contains("No module")
    }) else {
        crate::skip::skip("python-chess");
        return;
    };
    assert_eq!(succeed(output).trim(), "14 13 True 300.0");
}
