//! Tests that the output of `tessera explain` matches the network's computation, and that a browser
//! displays it.

pub mod browser;
mod features;
mod lens;

use crate::golden::Golden;
use crate::support::{fail, printed, succeed, tessera};
use serde_json::Value;
use shakmaty::CastlingMode;
use shakmaty::san::SanPlus;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tessera::backend::{CodePolicy, DeviceChoice, Precision, evaluate_games};
use tessera::chess::Game;
use tessera::encode::{Input, SCALARS};

/// One position for each side to move.
const WHITE: &str = "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 2 4";
const BLACK: &str = "r3k2r/pp3ppp/2n5/1B1pP3/3P4/2N2N2/P4PPP/R3K2R b KQkq - 1 12";

/// Tolerance for values in an explanation, to allow for differences between machines.
const TOLERANCE: f64 = 3e-5;

/// Maximum size in bytes of a page for a network that ships with the engine.
const LARGEST: u64 = 3_000_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn explain(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = tessera(folder, &["explain"]);
    command.args(arguments);
    if arguments.contains(&"--json") {
        command.stdout(fs::File::create(folder.join("x.json")).unwrap());
    }
    command
}

/// Returns the explanation from the `--json` output, which must contain exactly one.
fn explained(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("x.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["explanations"][0].take()
}

/// Returns the numbers in nested arrays.
fn numbers(array: &Value) -> Vec<f64> {
    match array {
        Value::Array(parts) => parts.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// Writes a network's input words for a position and the names of its scalars.
fn write_row(folder: &Path, fen: &str) {
    let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    let row = [Input::encode(&game)];
    fs::write(folder.join("row"), bytemuck::cast_slice::<Input, u8>(&row)).unwrap();
    fs::write(folder.join("scalars"), SCALARS.join("\n")).unwrap();
}

#[test]
fn attention_follows_the_formulas() {
    let python = crate::python::with("torch");
    let mut golden = Golden::open("attention", python.is_some());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let network = root().join("nets/tessera-xs.pt");
    for fen in [WHITE, BLACK] {
        let net = network.to_str().unwrap();
        let written = ["--json", "--svg", "pictures"];
        succeed(explain(
            folder,
            &[&["--fen", fen, "--net", net], &written[..]].concat(),
        ));
        let found = explained(folder);
        let layers = found["attention"]["layers"].as_array().unwrap();
        for (place, layer) in layers.iter().enumerate() {
            for name in ["products", "bias", "weights"] {
                let label = format!("{fen}, {name} of layer {}", place + 1);
                golden.numbers(&label, &numbers(&layer[name]), TOLERANCE);
            }
        }
        for picture in fs::read_dir(folder.join("pictures")).unwrap() {
            let picture = fs::read_to_string(picture.unwrap().path()).unwrap();
            roxmltree::Document::parse(&picture).unwrap();
        }
        let Some(python) = &python else { continue };
        write_row(folder, fen);
        let output = Command::new(python)
            .current_dir(folder)
            .arg(root().join("tests/python/attention.py"))
            .arg(&network)
            .args(["row", "scalars", "x.json", "pictures"])
            .output()
            .unwrap();
        let text = printed(output);
        assert_eq!(text.lines().count(), 4 * 3, "{text}");
        print!("{text}");
    }
    golden.finish();
}

/// Checks the sentences below the picture in the README.
#[test]
fn the_figures_of_the_readme_match_the_network() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("tessera explain --fen \"").unwrap();
    let (fen, rest) = rest.split_once('"').unwrap();
    let (_, rest) = rest.split_once("--move ").unwrap();
    let (mv, _) = rest.split_once(' ').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let asked = ["--fen", fen, "--move", mv, "--json"];
    succeed(explain(folder.path(), &asked));
    let found = explained(folder.path());
    let [bishop, knight, king] = [33, 42, 60];
    let last = found["attention"]["layers"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    let looks = |head: usize, square: usize| {
        let map = &last["weights"][head];
        100.0 * map[64 * bishop + square].as_f64().unwrap()
    };
    let layer = found["attention"]["layers"].as_array().unwrap().len();
    let heads = found["heads"].as_array().unwrap().iter();
    let heads = heads.filter(|head| head["layer"] == layer);
    let lines = heads.map(|head| {
        let relations = head["relations"].as_array().unwrap();
        let of_bishops = relations.iter().find(|it| it["relation"] == "bishop_line");
        of_bishops.unwrap().clone()
    });
    let lines: Vec<Value> = lines.collect();
    let share = |head: usize| lines[head]["share"].as_f64().unwrap();
    let at_knight: Vec<usize> = (0..lines.len())
        .filter(|&it| looks(it, knight) > 25.0)
        .collect();
    assert_eq!(at_knight.len(), 2, "two heads look at the knight");
    let head = at_knight
        .into_iter()
        .max_by(|&a, &b| share(a).total_cmp(&share(b)));
    let head = head.unwrap();
    let expected = format!(
        "over 34 positions {:.0} % of its attention falls on bishop lines, where chance is {:.0} %. \
         Here it looks at the knight ({:.0} %) and at the king behind it ({:.0} %).",
        100.0 * share(head),
        100.0 * lines[head]["chance"].as_f64().unwrap(),
        looks(head, knight),
        looks(head, king)
    );
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(&expected), "README lacks: {expected}");
}

/// Returns win, draw and loss, and the policy's first move, for positions without a history.
#[test]
fn the_figures_of_the_gallery_match_the_networks() {
    let backends = ["tessera-xs", "tessera-s"].map(|name| {
        let file = fs::read(root().join(format!("nets/{name}.pt"))).unwrap();
        let (code, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
        let opened = tessera::inference::open(&file, code, device, Precision::F32, 1);
        (name, opened.unwrap())
    });
    let gallery = fs::read_to_string(root().join("bench/gallery/README.md")).unwrap();
    let mut game = None;
    let mut rows = 0;
    for line in gallery.lines() {
        if let Some(fen) = line.strip_prefix('`') {
            let fen = fen.trim_end_matches('`');
            let is_alone = fen.ends_with(" 0 1");
            game = is_alone.then(|| Game::from_fen(fen, CastlingMode::Standard).unwrap());
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let backend = backends
            .iter()
            .find(|(name, _)| line.starts_with(&format!("| {name} | ")));
        let (Some(game), Some((_, backend)), [_, wdl, first, ..]) = (&game, backend, &cells[..])
        else {
            continue;
        };
        let found = evaluate_games(backend, [game]).unwrap().remove(0);
        let said: Vec<f32> = wdl
            .split(" / ")
            .map(|share| share.parse().unwrap())
            .collect();
        for (said, found) in said.iter().zip(found.value.wdl()) {
            assert!((said - 100.0 * found).abs() < 0.6, "{line}: {found}");
        }
        let (mv, prior) = found.priors().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let (san, said) = first.trim_end_matches(" %").rsplit_once(' ').unwrap();
        let position = game.position().clone();
        assert_eq!(SanPlus::from_move(position, mv).to_string(), san, "{line}");
        let said: f32 = said.parse().unwrap();
        assert!((said - 100.0 * prior).abs() < 0.06, "{line}: {prior}");
        rows += 1;
    }
    assert_eq!(rows, 6 * 2);
}

/// The command uses a single libtorch thread. With more threads, libtorch would sum in a different
/// order, and threads that wait for each other would take CPU time from other programs.
#[test]
#[ignore = "long: runs in tools/test --all"]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let written = ["1", "4"].map(|threads| {
        let arguments = ["--fen", WHITE, "-o", "x.html", "--json"];
        let mut command = explain(folder.path(), &arguments);
        for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(variable, threads);
        }
        succeed(command);
        ["x.html", "x.json"].map(|name| fs::read(folder.path().join(name)).unwrap())
    });
    assert!(written[0] == written[1], "one thread, and four");
}

#[test]
fn a_search_is_shown_beside_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let written = ["--nodes", "300", "--json", "--svg", "pictures"];
    succeed(explain(folder, &[&["--fen", WHITE], &written[..]].concat()));
    let found = explained(folder);
    let search = &found["search"];
    assert_eq!(search["nodes"], 300);
    // The search's priors are the policy at its temperature, so the order is the same.
    assert_eq!(search["policy_first"], found["moves"][0]["san"]);
    let moves = search["moves"].as_array().unwrap();
    assert_eq!(
        search["disagrees"],
        moves[0]["san"] != search["policy_first"]
    );
    let visits = |it: &Value| it["visits"].as_u64().unwrap();
    for it in moves {
        let replies = it["moves"].as_array().unwrap();
        assert!(visits(it) >= 3 && replies.iter().map(visits).sum::<u64>() <= visits(it));
        for reply in replies {
            let prior = reply["prior"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&prior), "{reply}");
        }
    }
    let picture = fs::read_to_string(folder.join("pictures/position.svg")).unwrap();
    assert!(picture.starts_with("<svg"));
    let mate = ["--fen", "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1"];
    succeed(explain(folder, &[&mate, &written[..]].concat()));
    let best = &explained(folder)["search"]["moves"][0];
    assert_eq!(
        (best["san"].as_str(), best["q"].as_f64()),
        (Some("Ra8#"), Some(1.0))
    );
}

/// Writes a network shaped like Lc0's BT4-1024x15x32h with random weights.
#[test]
#[ignore = "full-size network: takes a minute and gigabytes"]
fn a_page_of_bt4s_shape_takes_a_minute() {
    use tessera::network::lc0::{
        AttentionBody, EncoderConfig, HeadChoice, Lc0Config, PolicyConfig, PolicyHead,
        PolicyHeadConfig, SmolgenConfig, SquareEmbedding, ValueHead, ValueHeadConfig,
    };
    use tessera::network::{About, Activation, Architecture, Lc0, Network};
    let head = PolicyHeadConfig::Attention {
        embedding: None,
        encoder: None,
        width: 1024,
    };
    let value = ValueHeadConfig {
        features: 128,
        hidden: 128,
        wdl: true,
        error: false,
        buckets: None,
    };
    let config = Lc0Config {
        input_format: 1,
        activation: Activation::Mish,
        tower: None,
        attention: Some(AttentionBody {
            width: 1024,
            embedding: SquareEmbedding::Dense {
                board: 512,
                feed_forward: 1536,
            },
            gates: true,
            encoder: EncoderConfig {
                layers: 15,
                heads: 32,
                attention: 1024,
                feed_forward: 1536,
                smolgen: Some(SmolgenConfig {
                    compress: 32,
                    hidden: 256,
                    generator: 256,
                }),
            },
            smolgen_activation: Activation::Swish,
            feed_forward_activation: Activation::Mish,
        }),
        policy: PolicyConfig {
            embedding: Some(1024),
            heads: [(PolicyHead::Vanilla, head)].into(),
        },
        value: [(ValueHead::Winner, value)].into(),
        moves_left: None,
    };
    let lc0 = Lc0::new(&config, HeadChoice::default(), tch::Device::Cpu).unwrap();
    let weights = lc0.initial_weights();
    let about = About {
        correction: None,
        name: "random BT4".to_owned(),
        search_value: "wdl".to_owned(),
        training: Value::Null,
        licence: "unknown".to_owned(),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bt4.pt");
    let size = lc0.size();
    let network = Network::new(Box::new(lc0), &weights, about);
    network
        .write(tessera::torch::ExportPrecision::F32, &path)
        .unwrap();
    drop((network, weights));
    let clock = Instant::now();
    let shown = [
        "--net",
        path.to_str().unwrap(),
        "--fen",
        WHITE,
        "-o",
        "page.html",
    ];
    let said = succeed(explain(folder.path(), &shown));
    let seconds = clock.elapsed().as_secs_f64();
    let bytes = folder.path().join("page.html").metadata().unwrap().len();
    println!("{size:?}: {said}{seconds:.1} s, {bytes} bytes");
    assert!(bytes <= LARGEST, "{bytes}");
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn pages_of_the_networks_that_ship_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["tessera-xs", "tessera-s"] {
        let network = root().join(format!("nets/{name}.pt"));
        let clock = Instant::now();
        let arguments = ["--net", network.to_str().unwrap(), "-o", "page.html"];
        let said = succeed(explain(folder, &arguments));
        assert!(!said.contains("--layers"), "{said}");
        let bytes = folder.join("page.html").metadata().unwrap().len();
        println!(
            "{name}: {bytes} bytes, {:.1} s",
            clock.elapsed().as_secs_f64()
        );
        assert!(bytes <= LARGEST, "{name}: {bytes}");
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn two_networks_are_shown_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pgn = "[White \"A\"]\n[Black \"B\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n";
    fs::write(folder.join("game.pgn"), pgn).unwrap();
    let xs = root().join("nets/tessera-xs.pt");
    let against = ["--against", xs.to_str().unwrap(), "--layers", "1,4"];
    let of_game = ["--games", "game.pgn", "--ply", "4", "--move", "d2d4"];
    let files = ["-o", "page.html", "--json", "--svg", "pictures"];
    succeed(explain(folder, &[&of_game[..], &against, &files].concat()));
    let written = fs::read_to_string(folder.join("x.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let [one, other] = &written["explanations"].as_array().unwrap()[..] else {
        panic!("two networks");
    };
    assert_eq!(
        one["fen"],
        "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
    );
    // The other network is the built-in one.
    assert_eq!(one["moves"], other["moves"]);
    let chosen = one["chosen"].as_u64().unwrap() as usize;
    assert_eq!(one["moves"][chosen]["san"], "d4");
    assert!(folder.join("pictures/2-position.svg").exists());
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert_eq!(page.matches("\"layer\":1,\"products\"").count(), 2);
    assert_eq!(page.matches("\"layer\":2,\"products\"").count(), 0);
}

#[test]
fn a_mistake_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("game.pgn"), "1. e4 e5 *\n").unwrap();
    let mated = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3";
    for (arguments, told) in [
        (vec!["--fen", mated], "checkmate"),
        (vec!["--fen", "nonsense"], "--fen"),
        (vec!["--move", "e2e5"], "--move"),
        (
            vec!["--games", "game.pgn", "--ply", "3"],
            "--ply takes 0 to 2",
        ),
        (vec!["--games", "none.pgn", "--ply", "3"], "none.pgn"),
        (vec!["--games", "game.pgn"], "--ply"),
        (vec!["--layers", "5"], "--layers takes 1 to 4"),
        (vec!["--elo", "1500"], "reads no ratings"),
        (vec!["--net", "none.pt"], "none.pt"),
    ] {
        let errors = fail(explain(
            folder,
            &[&arguments[..], &["-o", "x.html"]].concat(),
        ));
        assert!(errors.contains(told), "{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
    let errors = fail(explain(folder, &["--nodes", "0"]));
    assert!(errors.contains("--nodes"), "{errors}");
    assert!(fail(explain(folder, &[])).contains("--output"));
    assert!(!folder.join("x.html").exists());
}
