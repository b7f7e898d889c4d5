//! Tests games that are sampled from networks' policies.

use super::*;
use std::collections::BTreeSet;
use tch::{Device, Kind, Tensor};
use tessera::data::replay::main_line;
use tessera::network::chessformer::{ModelConfig, PositionConfig};
use tessera::network::{About, Architecture, Chessformer, Network};
use tessera::torch::ExportPrecision;

/// Writes a tiny network with weights of size `scale`. With weights of 0, its policy is uniform,
/// bit for bit, in any batch.
fn write_network(folder: &Path, name: &str, scale: f64) {
    let config = ModelConfig {
        layers: 1,
        width: 16,
        heads: 2,
        feed_forward: 16,
        position: PositionConfig::Absolute,
        soft_policy: false,
        ..ModelConfig::preset("cf-1m-gab").unwrap()
    };
    let model = Chessformer::new(&config, Device::Cpu).unwrap();
    tch::manual_seed(7);
    let size = model.initial_weights().size();
    let weights = Tensor::randn(size, (Kind::Float, Device::Cpu)) * scale;
    let about = About {
        correction: None,
        name: name.to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let network = Network::new(Box::new(model), &weights, about);
    let path = folder.join(format!("{name}.pt"));
    network.write(ExportPrecision::F32, &path).unwrap();
}

/// Runs `tessera-train label --sample` with two networks.
fn sample(folder: &Path, games: &str, policies: [&str; 2], arguments: &[&str]) -> Command {
    let mut command = label(folder, &["--sample", "--limit", games, "--device", "cpu"]);
    for policy in policies {
        command.args(["--policy", policy]);
    }
    command.args(["--precision", "f32"]).args(arguments);
    command
}

/// Returns for each position of the game's main line whether it was labelled.
fn judged(record: &Record) -> Vec<bool> {
    let nodes = record.nodes.iter().enumerate();
    let own = nodes.filter(|(_, node)| node.depth == 0);
    own.map(|(index, node)| {
        let next = record.nodes.get(index + 1);
        let other = next.is_some_and(|next| next.starts_line && next.eval.is_some());
        node.eval.is_some() || other
    })
    .collect()
}

#[test]
fn games_need_no_engine() {
    let folder = tempfile::tempdir().unwrap();
    write_network(folder.path(), "weak", 0.0);
    let policies = ["weak.pt,elo=1100", "weak.pt,elo=1900"];
    let path = folder.path().join("out.pgn");
    let unjudged = |arguments: &[&str]| {
        let mut command = train(folder.path());
        command.args(["label", "--sample", "--limit", "12", "--unjudged"]);
        command.args([
            "--device",
            "cpu",
            "--precision",
            "f32",
            "-o",
            "out.pgn",
            "--json",
        ]);
        for policy in policies {
            command.args(["--policy", policy]);
        }
        // No engine can be found, but sampling does not need one.
        command
            .env("PATH", "")
            .args(["--max-plies", "300"])
            .args(arguments);
        command
    };
    let (said, errors) = succeed(unjudged(&[]));
    assert_eq!(
        (errors.as_str(), &said["games"], &said["positions"]),
        ("", &12.into(), &0.into())
    );
    let games = records(&path);
    assert_eq!(games.len(), 12);
    for record in &games {
        assert!(judged(record).iter().all(|&judged| !judged));
        let game = main_line(record).unwrap();
        assert_eq!(game.ending().is_some(), record.result.is_some());
    }
    assert!(games.iter().any(|record| record.result.is_some()));
    let refused = output(unjudged(&["--nodes", "100"]));
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && errors.contains("--unjudged"),
        "{errors}"
    );
}

#[test]
fn every_position_is_labelled_and_ratings_reach_the_shard() {
    let folder = tempfile::tempdir().unwrap();
    write_network(folder.path(), "weak", 0.0);
    write_network(folder.path(), "strong", 0.3);
    let epd = "4k3/pppp4/8/8/8/8/PPPP4/4K3 w - - 0 1\n";
    std::fs::write(folder.path().join("endgames.epd"), epd).unwrap();
    let people = crate::support::games("master-games.pgn");
    let people = format!("{},cut=4..12", people.display());
    let policies = ["weak.pt,elo=1100", "strong.pt,elo=1900,temperature=0.5"];
    let arguments = [
        "--openings",
        "endgames.epd,share=0.5",
        "--openings",
        &people,
    ];
    let mut command = sample(folder.path(), "24", policies, &arguments);
    command.args(["--max-plies", "40", "--jobs", "2", "-o", "out.pgn"]);
    let (said, errors) = succeed(command);
    assert_eq!(errors, "");
    assert_eq!(said["games"], 24);
    let event = said["event"].as_str().unwrap();
    for part in [
        "elo 1900",
        "temperature 0.5",
        "endgames.epd share 0.5",
        "cut 4..12",
    ] {
        assert!(event.contains(part), "{event}");
    }
    let path = folder.path().join("out.pgn");
    let mut positions = 0;
    let mut openings = BTreeSet::new();
    for record in records(&path) {
        let judged = judged(&record);
        let opening = judged.iter().take_while(|&&judged| !judged).count();
        assert!(judged[opening..].iter().all(|&judged| judged));
        positions += judged.len() - opening;
        match &record.fen {
            Some(fen) => assert_eq!((fen.as_str(), opening), (epd.trim(), 0)),
            None => assert!((4..=12).contains(&opening), "{opening}"),
        }
        openings.insert((record.fen.is_some(), opening));
        let game = main_line(&record).unwrap();
        let is_long = game.plies().len() == 41;
        assert_eq!(is_long && game.ending().is_none(), record.result.is_none());
        assert!(is_long || game.ending().is_some());
    }
    assert_eq!(said["positions"], positions);
    assert!(openings.len() > 4, "{openings:?}");
    let mut pairs = BTreeSet::new();
    for text in texts(&path) {
        let told = |name| tag(&text, name).unwrap();
        for (name, rating) in [("White", "WhiteElo"), ("Black", "BlackElo")] {
            let expected = match told(name).as_str() {
                "weak" => "1100",
                _ => "1900",
            };
            assert_eq!(told(rating), expected);
        }
        pairs.insert((told("White"), told("Black")));
    }
    assert_eq!(pairs.len(), 4);
    let findings = pack(folder.path(), "out.pgn", &["--unscored-random"]);
    let histogram = |name: &str| -> Vec<(String, u64)> {
        let bars = findings[name].as_object().unwrap().iter();
        bars.map(|(bar, count)| (bar.clone(), count.as_u64().unwrap()))
            .collect()
    };
    let ratings = histogram("rating_histogram");
    assert_eq!((&*ratings[0].0, &*ratings[1].0), ("1100", "1900"));
    assert_eq!(ratings[0].1 + ratings[1].1, 48);
    assert_eq!(findings["sources"], serde_json::json!(["out.pgn"]));
    let pieces: u64 = histogram("piece_histogram").iter().map(|bar| bar.1).sum();
    assert_eq!(findings["samples"], pieces);
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn sampling_resumes_to_the_same_games() {
    let folder = tempfile::tempdir().unwrap();
    write_network(folder.path(), "one", 0.0);
    write_network(folder.path(), "other", 0.0);
    assert_resumes_after_kills(folder.path(), |name| {
        let policies = ["one.pt,elo=1500", "other.pt"];
        let mut command = sample(folder.path(), "30", policies, &["--max-plies", "30"]);
        command.args(["--jobs", "2", "-o", name]);
        command
    });
    // A larger limit, with the same settings, keeps the existing games.
    let path = folder.path().join("whole.pgn");
    let before = texts(&path);
    let policies = ["one.pt,elo=1500", "other.pt"];
    let mut command = sample(folder.path(), "34", policies, &["--max-plies", "30"]);
    command.args(["--jobs", "1", "-o", "whole.pgn"]);
    let (said, _) = succeed(command);
    assert_eq!((&said["games"], &said["found"]), (&4.into(), &30.into()));
    assert_eq!(texts(&path)[..30], before);
}

#[test]
fn scores_end_sampled_games_too() {
    let folder = tempfile::tempdir().unwrap();
    write_network(folder.path(), "one", 0.0);
    let arguments = ["--draw", "1,2,30000", "--max-plies", "30"];
    let mut command = sample(folder.path(), "3", ["one.pt", "one.pt"], &arguments);
    command.args(["-o", "out.pgn"]);
    let (said, _) = succeed(command);
    assert_eq!(
        (&said["games"], &said["positions"]),
        (&3.into(), &12.into())
    );
    for record in records(&folder.path().join("out.pgn")) {
        assert_eq!(record.main_line().count(), 4);
        assert_eq!(record.result.unwrap().q(), 0.0);
    }
}
