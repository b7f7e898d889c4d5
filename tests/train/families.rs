//! Tests that networks of other families can be measured and trained further.

use super::workplace::{metrics, succeed, train, workplace};
use crate::interop_lc0::generate::{BODY, Shape, TOWER, generate};
use std::fs;
use std::path::Path;
use tch::Device;
use tessera::interop::lc0;
use tessera::network::lc0::HeadChoice;
use tessera::network::maia3::Maia3Config;
use tessera::network::{About, Architecture, Maia3, Network};
use tessera::torch::ExportPrecision;

/// Writes an Lc0 network with random weights as a network file.
fn import(shape: &Shape, path: &Path) {
    let network = lc0::read(&generate(shape, 1), HeadChoice::default()).unwrap();
    network.write(ExportPrecision::F32, path).unwrap();
}

/// Configures training to use `net.pt` instead of the workplace's own architecture.
fn configure(folder: &Path) {
    let config = fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let (before, rest) = config.split_once("[model]").unwrap();
    let after = rest.find("\n[").map_or("", |at| &rest[at..]);
    let config = format!("init = \"net.pt\"\n{before}{after}");
    fs::write(folder.join("net.toml"), config).unwrap();
}

/// Writes a small Maia-3 network with random weights as a network file.
fn import_maia3(path: &Path) {
    let mut config = Maia3Config::preset("maia3-3m").unwrap();
    (config.layers, config.width, config.heads) = (2, 32, 2);
    (config.feed_forward, config.hidden) = (32, 32);
    let model = Maia3::new(&config, Device::Cpu).unwrap();
    tch::manual_seed(1);
    let flat = model.initial_weights();
    let about = About {
        correction: None,
        name: "maia3".to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let network = Network::new(Box::new(model), &flat, about);
    network.write(ExportPrecision::F32, path).unwrap();
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn imported_networks_are_measured_and_trained_further() {
    // Canonical boards are transformed, and their moves with them.
    let canonical = Shape {
        input_format: 4,
        ..TOWER
    };
    let with_repetitions = Shape {
        input_format: 133,
        ..BODY
    };
    type Import<'a> = (&'a str, &'a dyn Fn(&Path));
    let imports: [Import; 5] = [
        ("lc0", &|path| import(&TOWER, path)),
        ("lc0", &|path| import(&BODY, path)),
        ("lc0", &|path| import(&canonical, path)),
        ("lc0", &|path| import(&with_repetitions, path)),
        ("maia3", &import_maia3),
    ];
    for (family, import) in imports {
        let workplace = workplace(30);
        let folder = workplace.path();
        import(&folder.join("net.pt"));
        configure(folder);
        let eval = ["validate", "net.pt", "--json", "--device", "cpu"];
        let measured = succeed(train(folder).args(eval).args(["net.toml"]));
        let measured: serde_json::Value =
            serde_json::from_str(measured.lines().next_back().unwrap()).unwrap();
        let before = measured["policy"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&measured["policy_accuracy"].as_f64().unwrap()));

        let run = ["run", "net.toml", "-o", "on", "--device", "cpu"];
        succeed(train(folder).args(run));
        let lines = metrics(folder, "on");
        let validated = lines
            .iter()
            .rev()
            .find(|line| line["split"] == "validation");
        let after = validated.unwrap()["policy"].as_f64().unwrap();
        assert!(after < before - 0.1, "{after} after {before}");
        // The run stores its architecture itself, so it can resume without the file.
        fs::remove_file(folder.join("net.pt")).unwrap();
        let more = ["--set", "steps=35"];
        let config = ["run", "on/config.toml", "-o", "on", "--device", "cpu"];
        succeed(train(folder).args(config).args(more));
        succeed(train(folder).args(["export", "on", "-o", "on.pt"]));
        let metadata = tessera::inference::describe(
            Some(&folder.join("on.pt")),
            tessera::backend::CodePolicy::Checked,
        )
        .unwrap();
        assert_eq!(metadata.architecture["family"], family);
    }
}

#[test]
fn unsuitable_initial_networks_are_refused() {
    let workplace = workplace(10);
    let folder = workplace.path();
    // A Chessformer cannot be grown from a convolutional tower.
    import(&TOWER, &folder.join("net.pt"));
    let words = ["run", "tiny.toml", "-o", "on", "--device", "cpu"];
    let refused = train(folder)
        .args(words)
        .args(["--set", "init=net.pt"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("family lc0"), "{message}");
    // A teacher reads the same rows as the network being trained.
    let canonical = Shape {
        input_format: 4,
        ..TOWER
    };
    import(&canonical, &folder.join("net.pt"));
    let refused = train(folder)
        .args(words)
        .args(["--set", "distillation.net=net.pt"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    let told = "input format 4, and the network that is trained in format 1";
    assert!(message.contains(told), "{message}");
}
