//! Networks of other programs on the command line: imported, described, and exported.

use crate::interop_lc0::plain;
use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tessera::torch::ExportPrecision;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn tessera(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("tessera").unwrap();
    command.args(arguments);
    command
}

/// Runs a command that must succeed; returns its standard output.
fn printed(arguments: &[&str]) -> String {
    let done = tessera(arguments).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).unwrap()
}

/// Runs a command that must fail; returns its error output, which must be one line.
fn failure(arguments: &[&str]) -> String {
    let done = tessera(arguments).assert().failure();
    let told = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    told
}

/// Returns a network's evaluation of the initial position.
fn evaluation(network: &str) -> Value {
    let text = printed(&["eval", "--net", network, "--precision", "f32", "--json"]);
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn shipped() -> String {
    let name = std::fs::read_to_string(Path::new(ROOT).join("nets/default")).unwrap();
    let path = Path::new(ROOT).join("nets").join(name.trim());
    path.to_str().unwrap().to_owned()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

fn assert_alike(network: &str, other: &str, tolerance: f64) {
    let [network, other] = [network, other].map(evaluation);
    let difference = |pointer: &str| {
        let number = |of: &Value| of.pointer(pointer).unwrap().as_f64().unwrap();
        (number(&network) - number(&other)).abs()
    };
    for pointer in ["/value", "/wdl/0", "/wdl/2", "/policy/e2e4", "/policy/d2d4"] {
        let off = difference(pointer);
        assert!(off < tolerance, "{pointer} is off by {off}");
    }
}

#[test]
fn our_network_survives_export_and_import() {
    let folder = Folder::new();
    let [plain, foreign, back] = ["plain.pt", "xs.pb.gz", "back.pt"].map(|name| folder.path(name));
    plain::write(Path::new(&plain), ExportPrecision::Fp16);
    let said = printed(&["export-lc0", &plain, "-o", &foreign]);
    assert!(said.contains("Lc0's own format"), "{said}");
    let described = printed(&["describe", &foreign, "--json"]);
    let described: Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["licence"], "GPL-3.0-or-later");
    let arguments = ["import", &foreign, "-o", &back, "--precision", "f32"];
    let said = printed(&arguments);
    assert!(said.contains("xs"), "{said}");
    // Lc0's files rank moves by win minus loss, which the export calls q.
    let heads = ["--policy-head", "vanilla", "--value-head", "q"];
    printed(&[&arguments as &[&str], &heads].concat());
    let [ours, theirs] = [&plain, &back].map(|network| evaluation(network));
    let value = |of: &Value| of["value"].as_f64().unwrap();
    assert!((value(&ours) - value(&theirs)).abs() < 0.01);
    let policy = |of: &Value| of["policy"]["e2e4"].as_f64().unwrap();
    assert!((policy(&ours) - policy(&theirs)).abs() < 0.01);
}

#[test]
fn exported_onnx_is_not_read_back() {
    let folder = Folder::new();
    let (shipped, back) = (shipped(), folder.path("back.pt"));
    for (command, name, told) in [
        (
            &["export-lc0", "--onnx"] as &[&str],
            "onnx.pb.gz",
            "ONNX in Lc0's file",
        ),
        (&["export-onnx"], "xs.onnx", "ONNX"),
    ] {
        let foreign = folder.path(name);
        let said = printed(&[command, &[&shipped, "-o", &foreign]].concat());
        assert!(said.contains(told), "{said}");
        let arguments: [&[&str]; 2] = [&["describe", &foreign], &["import", &foreign, "-o", &back]];
        for arguments in arguments {
            let told = failure(arguments);
            assert!(told.contains("use the network file (.pt)"), "{told}");
        }
    }
}

#[test]
fn onnx_of_lc0s_converter_is_described_and_imported() {
    let folder = Folder::new();
    let (file, back) = (
        format!("{ROOT}/tests/fuzz/corpus/onnx/tower.onnx"),
        folder.path("back.pt"),
    );
    let described = printed(&["describe", &file]);
    assert!(described.contains("model.tower.blocks: 1"), "{described}");
    printed(&["import", &file, "-o", &back]);
    let described = printed(&["describe", &back]);
    assert!(
        described.contains("architecture.family: lc0"),
        "{described}"
    );
}

#[test]
fn maia_plays_from_its_own_file() {
    let nets = Path::new(ROOT).join("../shared/data/nets");
    let file = nets.join("maia-1500.pb.gz");
    if !file.exists() {
        crate::skip::skip(&file.display().to_string());
        return;
    }
    let folder = Folder::new();
    let (file, network) = (file.to_str().unwrap(), folder.path("maia.pt"));
    let said = printed(&["import", file, "-o", &network, "--precision", "f32"]);
    assert!(said.contains("maia-1500, 865571 parameters"), "{said}");
    // Lc0 0.33 reports the same.
    let value = evaluation(&network)["value"].as_f64().unwrap();
    assert!((value - 0.0402).abs() < 1e-4, "{value}");
    let described = printed(&["describe", file]);
    assert!(described.contains("model.tower.blocks: 6"), "{described}");
    let again = folder.path("again.pb.gz");
    printed(&[
        "export-lc0",
        &network,
        "-o",
        &again,
        "--encoding",
        "float32",
    ]);
    let back = folder.path("back.pt");
    printed(&["import", &again, "-o", &back, "--precision", "f32"]);
    assert_alike(&network, &back, 1e-5);
}

#[test]
fn mistakes_get_one_line_each() {
    let folder = Folder::new();
    let out = folder.path("out.pt");
    let network = shipped();
    let text = folder.path("games.pgn");
    std::fs::write(&text, "1. e4 e5").unwrap();
    let cut = folder.path("cut.pb.gz");
    let weights = folder.path("xs.pb.gz");
    let plain = folder.path("plain.pt");
    plain::write(Path::new(&plain), ExportPrecision::Fp16);
    printed(&["export-lc0", &plain, "-o", &weights]);
    let bytes = std::fs::read(&weights).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["import", &text, "-o", &out], "neither"),
        (&["import", &cut, "-o", &out], "damaged"),
        (&["import", &network, "-o", &out], "already"),
        (&["import", "nowhere.pb.gz", "-o", &out], "nowhere.pb.gz"),
        (&["describe", &cut], "damaged"),
        (&["export-lc0", &weights, "-o", &out], "tessera import"),
        (&["export-onnx", &text, "-o", &out], "neither"),
        (
            &["import", &weights, "-o", &out, "--policy-head", "soft"],
            "no policy head `soft`",
        ),
    ];
    for (arguments, reason) in cases {
        let told = failure(arguments);
        assert!(told.contains(reason), "{arguments:?}: {told}");
    }
    assert!(!PathBuf::from(&out).exists());
}
