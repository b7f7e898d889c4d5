//! Tests of future denoisers.

use super::workplace::{fail, metrics, succeed, train, workplace};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Configures a denoiser that extends the workplace's network.
pub fn configure(folder: &Path) {
    let config = fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let network = "[network]\nfamily = \"diffusion\"\n[network.model]\nhorizon = 3\n\
                   [network.model.trunk]\n";
    // With this schedule, a shorter run has the same learning rates.
    let shape = "warmup = 5\nshape = { kind = \"stable\", decay = 0.0 }";
    let config = config
        .replace("[model]\n", network)
        .replace("batch = 64", "batch = 32")
        // Futures take long to decode.
        .replace("validation_samples = 128", "validation_samples = 12")
        .replace("warmup = 5", shape);
    fs::write(folder.join("diffusion.toml"), config).unwrap();
}

pub fn run(folder: &Path, output: &str, settings: &[&str]) -> std::process::Command {
    let mut command = train(folder);
    command.args(["run", "diffusion.toml", "-o", output]);
    command.args(["--device", "cpu", "--threads", "1"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    command
}

/// Returns a network's metrics.
fn told(folder: &Path, source: &str, config: &str) -> Value {
    let mut command = train(folder);
    command.args(["validate", source, config, "--json"]);
    command.args(["--limit", "16", "--device", "cpu"]);
    serde_json::from_str(&succeed(&mut command)).unwrap()
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_denoiser_learns_futures_and_resumes_exactly() {
    let workplace = workplace(30);
    let folder = workplace.path();
    configure(folder);
    succeed(&mut run(folder, "whole", &["precision=\"bf16\""]));
    let whole = metrics(folder, "whole");
    let steps = |lines: &[Value]| -> Vec<Value> {
        let lines = lines.iter().filter(|line| line["split"] == "train");
        lines.cloned().collect()
    };
    let trained = steps(&whole);
    assert_eq!(trained.len(), 30);
    for (term, by) in [("board", 0.3), ("future_move", 0.3), ("policy", 0.1)] {
        // A few samples dominate the loss, so single steps are noisy.
        let mean = |steps: &[Value]| -> f64 {
            let sum: f64 = steps.iter().map(|line| line[term].as_f64().unwrap()).sum();
            sum / steps.len() as f64
        };
        let (first, last) = (mean(&trained[..10]), mean(&trained[20..]));
        assert!(last < first - by, "{term}: {first} to {last}");
    }
    let last = whole
        .iter()
        .rfind(|line| line["split"] == "validation")
        .unwrap();
    let plies = last["imagination"].as_array().unwrap();
    assert_eq!(plies.len(), 3);
    for ply in plies {
        assert!(ply["boards"].as_f64().unwrap() > 0.0, "{ply}");
        assert!((0.8..1.0).contains(&ply["copy"].as_f64().unwrap()), "{ply}");
    }
    assert!(plies[0]["moves"].is_null() && plies[2]["moves"].is_number());

    succeed(&mut run(
        folder,
        "parts",
        &["precision=\"bf16\"", "steps=15"],
    ));
    succeed(&mut run(folder, "parts", &["precision=\"bf16\""]));
    assert_eq!(steps(&metrics(folder, "parts")), steps(&whole));
    assert_eq!(metrics(folder, "parts").last(), whole.last());
    succeed(train(folder).args(["report", "whole", "-o", "report.html"]));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("board_accuracy"));
    succeed(train(folder).args(["export", "whole", "-o", "diffusion.pt"]));
    let config = "whole/config.toml";
    let [of_run, of_file] = ["whole", "diffusion.pt"].map(|it| told(folder, it, config));
    for term in ["policy", "board", "q"] {
        let [of_run, of_file] = [&of_run, &of_file].map(|it| it[term].as_f64().unwrap());
        assert!(
            (of_run - of_file).abs() < 0.02,
            "{term}: {of_run} {of_file}"
        );
    }
}

/// Writes a tiny network's file.
fn network(folder: &Path) -> &'static str {
    configure(folder);
    succeed(&mut run(folder, "run", &["steps=2"]));
    succeed(train(folder).args(["export", "run", "-o", "diffusion.pt"]));
    "diffusion.pt"
}

#[test]
fn futures_are_decoded_measured_and_shown() {
    let workplace = workplace(2);
    let folder = workplace.path();
    let network = network(folder);
    let mut imagine = train(folder);
    imagine.args(["imagine", network, "run/config.toml", "--json"]);
    imagine.args([
        "--steps",
        "1,3",
        "--limit",
        "40",
        "--device",
        "cpu",
        "--threads",
        "1",
    ]);
    let told = succeed(&mut imagine);
    let rows: Vec<Value> = told
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let steps: Vec<u64> = rows
        .iter()
        .map(|row| row["steps"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, [1, 3]);
    for row in &rows {
        assert!(row["positions"].as_u64().unwrap() >= 40);
        assert_eq!(row["plies"].as_array().unwrap().len(), 3);
        assert_eq!(
            row["plies"][0]["imagined"],
            row["plies"][0]["imagined_legal"]
        );
    }
    assert_eq!(rows[0]["plies"][0]["boards"], rows[1]["plies"][0]["boards"]);

    let tessera = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command.current_dir(folder);
        command
    };
    let mut explain = tessera();
    explain.args(["explain", "--net", network, "--steps", "3"]);
    let shown = succeed(explain.args(["-o", "page.html", "--json"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["denoising"]["steps"].as_array().unwrap().len(), 3);
    assert!(
        fs::read_to_string(folder.join("page.html"))
            .unwrap()
            .contains("imagines")
    );
    let mut explain = tessera();
    explain.args(["explain", "--steps", "3", "-o", "none.html"]);
    let refused = fail(explain.args([
        "--net",
        concat!(env!("CARGO_MANIFEST_DIR"), "/nets/tessera-xs.pt"),
    ]));
    assert!(refused.contains("imagines no future"), "{refused}");

    let mut player = tessera()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let commands = "setoption name Net value diffusion.pt\nsetoption name Precision value f32\n\
                    setoption name Agent value diffusion\nsetoption name DiffusionSteps value 4\n\
                    setoption name DiffusionHorizon value 0\nposition startpos moves e2e4\ngo nodes 1\n";
    player
        .stdin
        .take()
        .unwrap()
        .write_all(commands.as_bytes())
        .unwrap();
    let said = String::from_utf8(player.wait_with_output().unwrap().stdout).unwrap();
    // Four steps over the present board and three future boards.
    let info = said.lines().find(|line| line.starts_with("info depth 3"));
    assert!(
        info.is_some_and(|line| line.contains(" nodes 16 ")),
        "{said}"
    );
    assert!(
        said.lines().any(|line| line.starts_with("bestmove ")),
        "{said}"
    );
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_denoiser_initially_plays_like_its_source() {
    let workplace = workplace(1);
    let folder = workplace.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let xs = root.join("nets/tessera-xs.pt");
    let init = format!("init={:?}", xs.to_str().unwrap());
    let shipped = root.join("nets/configs/tessera-diffusion.toml");
    let shards = "data.shards=[{ path = \"games.shard\" }]";
    let settings = [
        &init,
        shards,
        "steps=1",
        "batch=8",
        "schedule.peak=0.0",
        "schedule.warmup=0",
        "data.validation=0.2",
        "validation_samples=32",
        "data.group=1000",
    ];
    let mut command = train(folder);
    command.args(["run", shipped.to_str().unwrap(), "-o", "run"]);
    command.args(["--device", "cpu", "--threads", "1"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    succeed(&mut command);
    succeed(train(folder).args(["export", "run", "-o", "grown.pt", "--precision", "f32"]));
    let config = fs::read_to_string(folder.join("run/config.toml")).unwrap();
    let config = config.replace("precision = \"bf16\"", "precision = \"f32\"");
    fs::write(folder.join("f32.toml"), config).unwrap();
    let [grown, plain] =
        ["grown.pt", xs.to_str().unwrap()].map(|source| told(folder, source, "f32.toml"));
    for term in ["policy", "q", "result", "moves_left"] {
        let [grown, plain] = [&grown, &plain].map(|it| it[term].as_f64().unwrap());
        assert!((grown - plain).abs() < 1e-4, "{term}: {grown} {plain}");
    }
    assert!(plain["imagination"].is_null() && grown["imagination"].is_array());
}

#[test]
fn invalid_denoiser_settings_are_refused_by_key() {
    let workplace = workplace(1);
    let folder = workplace.path();
    configure(folder);
    for (setting, refused) in [
        (
            "network.model.horizon=8",
            "horizon is 8, but must be in 0…7",
        ),
        ("diffusion.board=-1.0", "`diffusion.board` is -1"),
        ("diffusion.schedule=\"sine\"", "diffusion.schedule"),
        (
            "augment.mirror=0.5",
            "augment.mirror: is for networks that read positions alone",
        ),
    ] {
        let told = fail(&mut run(folder, "run", &[setting]));
        assert!(told.contains(refused), "{told}");
    }
}
