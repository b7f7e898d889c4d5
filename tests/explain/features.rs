//! Tests that the reported effects of transcoder features equal the effects of removing these
//! features from the network.

use super::browser::{chromium, use_page};
use super::{TOLERANCE, WHITE, explain, explained, fail, numbers, root, succeed, write_row};
use crate::golden::Golden;
use crate::support::{printed, train};
use base64::prelude::*;
use rand::Rng;
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The same position without castling rights, and mirrored for Black.
const NO_CASTLING: [&str; 2] = [
    "r1bqkbnr/ppp2ppp/2np4/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R w - - 0 4",
    "rnbqk2r/pppp1ppp/5n2/4p3/1b2P3/2NP4/PPP2PPP/R1BQKBNR b - - 0 4",
];
/// Arguments that write a full explanation with the transcoder from [`fit`].
const SHOWN: [&str; 5] = ["--transcoder", "t.json", "-o", "page.html", "--json"];

/// Fits a small transcoder to a layer of the built-in network.
fn fit(folder: &Path, layer: &str) -> Command {
    let games = root().join("bench/matches/tessera-xs-sf1350.pgn");
    let mut command = train(folder, &[]);
    command
        .args(["transcoder", "-o", "t.json", "--layer", layer, "--games"])
        .arg(games)
        .args(["--limit", "80", "--features", "32"])
        .args(["--top-k", "4", "--steps", "20"]);
    command
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_page_shows_the_features_of_a_transcoder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let errors = fail(fit(folder, "5"));
    assert!(errors.contains("no layer 5"), "{errors}");
    let said = succeed(fit(folder, "3"));
    assert!(
        said.contains("layer 3 of tessera-xs, 32 features"),
        "{said}"
    );
    succeed(explain(folder, &[&["--fen", WHITE], &SHOWN[..]].concat()));
    let found = explained(folder);
    let report = &found["transcoder"];
    assert_eq!(
        (&report["layer"], &report["features"]),
        (&3.into(), &32.into())
    );
    let active = report["active"].as_array().unwrap();
    assert!(!active.is_empty());
    assert_eq!(report["present"], report["ablated"]);
    assert!(report["present"].as_u64().unwrap() >= active.len() as u64);
    assert!(active.is_sorted_by(|a, b| a["strength"].as_f64() >= b["strength"].as_f64()));
    let moves = found["moves"].as_array().unwrap().len();
    for feature in active {
        let count = |name: &str| feature[name].as_array().unwrap().len();
        assert_eq!((count("squares"), count("moves")), (64, moves));
    }
    let net = root().join("nets/tessera-s.pt");
    let other = ["--net", net.to_str().unwrap()];
    let errors = fail(explain(folder, &[&other[..], &SHOWN].concat()));
    assert!(
        errors.contains("the weights of another network"),
        "{errors}"
    );
}

/// Replaces the weights of the transcoder from [`fit`] with random numbers, which, unlike fitted
/// weights, are the same on every machine.
fn randomise(folder: &Path) {
    let path = folder.join("t.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut stored: Value = serde_json::from_str(&text).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for (name, scale) in [("encoder", 0.2), ("encoder_bias", 0.2), ("decoder", 0.1)] {
        let fitted = BASE64_STANDARD.decode(stored[name].as_str().unwrap());
        let numbers = (0..fitted.unwrap().len() / 4).map(|_| {
            let number: f32 = random.sample(StandardNormal);
            scale * number
        });
        let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        stored[name] = BASE64_STANDARD.encode(bytes).into();
    }
    fs::write(path, stored.to_string()).unwrap();
}

/// Checks the features in the last explanation of a position with PyTorch.
fn judge(python: &Path, folder: &Path, network: &Path, fen: &str) {
    write_row(folder, fen);
    let output = Command::new(python)
        .current_dir(folder)
        .arg(root().join("tests/python/features.py"))
        .arg(network)
        .args(["row", "scalars", "t.json", "x.json"])
        .output()
        .unwrap();
    let said = printed(output);
    assert!(said.lines().count() >= 4, "{said}");
    print!("{said}");
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn feature_effects_follow_the_formulas() {
    let python = crate::python::with("torch");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(fit(folder, "3"));
    let network = root().join("nets/tessera-xs.pt");
    let net = ["--net", network.to_str().unwrap()];
    let show = |fen| {
        let shown = [&["--fen", fen], &net[..], &SHOWN].concat();
        succeed(explain(folder, &shown));
        if let Some(python) = &python {
            judge(python, folder, &network, fen);
        }
    };
    NO_CASTLING.iter().for_each(|fen| show(fen));

    randomise(folder);
    let mut golden = Golden::open("features", python.is_some());
    for fen in NO_CASTLING {
        show(fen);
        let found = explained(folder);
        for feature in found["transcoder"]["active"].as_array().unwrap() {
            let mut effect = numbers(&feature["moves"]);
            effect.extend(numbers(&feature["value"]));
            assert!(effect.iter().any(|effect| effect.abs() > 0.001));
            let label = format!("{fen}, feature {}", feature["feature"]);
            golden.numbers(&label, &effect, TOLERANCE);
        }
    }
    golden.finish();
}

/// Selects a feature, a move by its row, a move from the list, and the value.
const USE: &str = r##"
const section = document.getElementById("featured");
const features = () => [...section.querySelectorAll("tr")].slice(1);
const show = () => probe.push([
  section.querySelectorAll("th")[1].textContent,
  features().findIndex((row) => row.getAttribute("aria-selected") === "true"),
  features().length,
  section.querySelector("figcaption").textContent,
  [...document.querySelectorAll("#moves tr")].findIndex((row) => row.getAttribute("aria-selected") === "true") - 1,
]);
show();
probe.push(features().map((row) => row.cells[1].textContent));
click(features()[1]);
show();
click(document.querySelectorAll("#moves tr")[3]);
show();
press(document.querySelectorAll("#moves tr")[2], "Enter");
show();
const chooser = section.querySelector("[name=target]");
choose(chooser, chooser.options[5].value);
show();
choose(chooser, "value");
show();
press(document.body, "f");
show();
"##;

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_browser_shows_a_features_effect_on_a_move() {
    let Some(chromium) = chromium() else {
        crate::skip::skip("Chromium (Debian: apt install chromium)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(fit(folder, "3"));
    succeed(explain(folder, &[&["--fen", WHITE], &SHOWN[..]].concat()));
    let probe = use_page(chromium, &folder.join("page.html"), USE);
    let found = explained(folder);
    let san = |place: usize| found["moves"][place]["san"].as_str().unwrap();
    let active = found["transcoder"]["active"].as_array().unwrap();
    // Initially, the features shown are those of the explained move.
    let [heading, row, count, caption, selected] = &probe[0].as_array().unwrap()[..] else {
        panic!("{probe:?}");
    };
    assert_eq!(heading, &format!("speaks for {}", san(0)));
    assert_eq!((row, selected), (&0.into(), &0.into()));
    assert!((2..=12).contains(&count.as_u64().unwrap()));
    // The first feature is the one that supports the move most.
    let effect = |feature: &&Value| feature["moves"][0].as_f64().unwrap();
    let most = active.iter().max_by(|a, b| effect(a).total_cmp(&effect(b)));
    let most = most.unwrap();
    let caption = caption.as_str().unwrap();
    let number = &most["feature"];
    assert!(
        caption.starts_with(&format!("Feature {number} here")),
        "{caption}"
    );
    let listed = &probe[1].as_array().unwrap()[..];
    assert_eq!(listed.len() as u64, count.as_u64().unwrap());
    assert_eq!(listed[0], format!("+{:.3}", effect(&most)));
    // Selecting another feature changes the board.
    assert_eq!(probe[2][1], 1);
    assert!(
        !probe[2][3]
            .as_str()
            .unwrap()
            .starts_with(&format!("Feature {number} here"))
    );
    // Moves are selected by their rows, with the keyboard and from the list, and then the value is
    // selected.
    for (place, heading, selected) in [
        (3, format!("speaks for {}", san(2)), 2),
        (4, format!("speaks for {}", san(1)), 1),
        (5, format!("speaks for {}", san(4)), 4),
        (6, "adds to the value".to_owned(), -2),
        // Flipping the board keeps the selection.
        (7, "adds to the value".to_owned(), -2),
    ] {
        assert_eq!(
            (&probe[place][0], &probe[place][4]),
            (&heading.into(), &selected.into())
        );
    }
}
