//! Tests of the tuned lens, and of the effects of attention heads over many positions.

use super::{WHITE, explain, explained, fail, root, succeed};
use crate::support::train;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn command(folder: &Path, name: &str, arguments: &[&str]) -> Command {
    let games = root().join("bench/matches/tessera-xs-sf1350.pgn");
    let mut command = train(folder, &[]);
    command.args([name, "--games"]).arg(games).args(arguments);
    command
}

/// Returns a network that ships with the engine.
fn net(name: &str) -> String {
    let path = root().join(format!("nets/{name}.pt"));
    path.to_str().unwrap().to_owned()
}

/// Returns the number at `pointer`.
fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap()
}

#[test]
fn the_lens_that_ships_belongs_to_the_network_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for asked in [vec![], vec!["--net", &net("tessera-xs")]] {
        let arguments = ["--fen", WHITE, "--json"];
        succeed(explain(folder, &[&asked[..], &arguments].concat()));
        let found = explained(folder);
        let layers = found["lens"]["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 5);
        let usual = |layer: usize, of: &str| number(&layers[layer], &format!("/usual/{of}"));
        // bench/explain.md has the figures: 0.6 nats after the embedding, 0.15 before the last layer.
        for of in ["divergence", "q"] {
            assert!(usual(0, of) < 0.8 && usual(3, of) < 0.25);
            assert!((1..4).all(|layer| usual(layer, of) < usual(layer - 1, of)));
        }
        assert!(layers[4]["usual"].is_null() && number(&layers[4], "/divergence") < 1e-4);
        // The readings approach the value in this position also.
        let off =
            |layer: usize| (number(&layers[layer], "/q") - number(&found, "/evaluation/q")).abs();
        assert!((0..4).all(|layer| off(layer) < 0.9), "{layers:?}");
    }
    let other = ["--fen", WHITE, "--net", &net("tessera-s"), "--json"];
    succeed(explain(folder, &other));
    assert!(explained(folder)["lens"].is_null());
}

#[test]
fn a_lens_is_fitted_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fit = ["--limit", "80", "--steps", "2", "-o", "l.json"];
    let said = succeed(command(folder, "lens", &fit));
    assert!(
        said.contains("a lens of tessera-xs, fitted to ") && said.contains("| layer 3 |"),
        "{said}"
    );
    let shown = ["--lens", "l.json", "-o", "page.html", "--json"];
    succeed(explain(folder, &[&["--fen", WHITE], &shown[..]].concat()));
    let found = explained(folder);
    let lens = &found["lens"];
    // Eight positions from each of ten games, excluding mates.
    assert!(
        (70.0..=80.0).contains(&number(lens, "/positions")),
        "{said}"
    );
    let layers = lens["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 5);
    let moves = found["moves"].as_array().unwrap().len();
    for layer in layers {
        assert_eq!(layer["policy"].as_array().unwrap().len(), moves);
    }
    let net = net("tessera-s");
    let errors = fail(explain(folder, &[&["--net", &net], &shown[..]].concat()));
    assert!(
        errors.contains("l.json: made for the weights of another network, tessera-xs")
            && errors.contains("tessera-train lens"),
        "{errors}"
    );
    let errors = fail(explain(folder, &["--lens", "page.html", "--json"]));
    assert!(errors.contains("page.html: not a lens"), "{errors}");
    std::fs::write(folder.join("few.pgn"), "1. e4 e5 *\n").unwrap();
    let few = ["lens", "--games", "few.pgn", "-o", "m.json"];
    let errors = fail(train(folder, &few));
    assert!(errors.contains("too few games"), "{errors}");
    let few = [&few[..], &["--limit", "0"]].concat();
    let errors = fail(train(folder, &few));
    assert!(
        errors.contains("--limit 0 is reached before a game is held out: raise it to 73 or more"),
        "{errors}"
    );
}

#[test]
fn heads_are_ablated_over_many_positions() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let table = succeed(command(folder, "ablate-heads", &["--limit", "6"]));
    let rows = table.lines().filter(|line| line.starts_with("| layer "));
    assert_eq!(rows.count(), 16, "{table}");
    assert!(table.contains("over 6 positions"), "{table}");
    let json = ["--limit", "6", "--json"];
    let printed = succeed(command(folder, "ablate-heads", &json));
    let line = printed.lines().find(|line| line.starts_with('{')).unwrap();
    let found: Value = serde_json::from_str(line).unwrap();
    assert_eq!(found["network"], "tessera-xs");
    assert_eq!(found["positions"], 6);
    let heads = found["heads"].as_array().unwrap();
    assert_eq!(heads.len(), 16);
    for head in heads {
        for of in ["divergence", "q", "changed"] {
            let [low, mean, high] =
                ["low", "mean", "high"].map(|it| number(&head[of], &format!("/{it}")));
            assert!(0.0 <= low && low <= mean && mean <= high, "{head}");
        }
        assert!(number(head, "/divergence/mean") > 0.0);
    }
    assert!(
        heads.is_sorted_by(|a, b| number(a, "/divergence/mean") >= number(b, "/divergence/mean"))
    );
    std::fs::write(folder.join("one.pgn"), "1. e4 e5 *\n").unwrap();
    let one = ["ablate-heads", "--games", "one.pgn"];
    let errors = fail(train(folder, &one));
    assert!(errors.contains("too few games"), "{errors}");
    let errors = fail(train(folder, &[&one[..], &["--limit", "1"]].concat()));
    assert!(errors.contains("--limit 1 is too small"), "{errors}");
}
