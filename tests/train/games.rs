//! Tests of networks that read whole games.

use super::workplace::{fail, games, metrics, succeed, train, workplace};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Configures a GPT instead of the workplace's network.
pub fn configure(folder: &Path) {
    let config = fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let (before, rest) = config.split_once("[model]").unwrap();
    let after = &rest[rest.find("\n[").unwrap()..];
    let model = "layers = 2\nwidth = 32\nheads = 2\nfeed_forward = 32\ncontext = 48";
    let network = format!("[network]\nfamily = \"gpt\"\n[network.model]\n{model}\n");
    let augment = "\n[augment]\nhide_result = 0.5\n";
    // With this schedule, a shorter run has the same learning rates.
    let shape = "warmup = 5\nshape = { kind = \"stable\", decay = 0.0 }";
    let config = format!("{before}{network}{after}{augment}")
        .replace("batch = 64", "batch = 16")
        .replace("warmup = 5", shape);
    fs::write(folder.join("gpt.toml"), config).unwrap();
}

pub fn run(folder: &Path, output: &str, settings: &[&str]) -> std::process::Command {
    let mut command = train(folder);
    command.args(["run", "gpt.toml", "-o", output]);
    command.args(["--device", "cpu", "--threads", "1"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    command
}

#[test]
fn a_gpt_learns_games_and_resumes_exactly() {
    let workplace = workplace(30);
    let folder = workplace.path();
    configure(folder);
    succeed(&mut run(folder, "whole", &[]));
    let whole = metrics(folder, "whole");
    let steps = |lines: &[Value]| -> Vec<Value> {
        let lines = lines.iter().filter(|line| line["split"] == "train");
        lines.cloned().collect()
    };
    let trained = steps(&whole).into_iter();
    let trained: Vec<f64> = trained
        .map(|line| line["policy"].as_f64().unwrap())
        .collect();
    assert_eq!(trained.len(), 30);
    // Initially, all 1,975 tokens are equally likely.
    assert!((trained[0] - 1975f64.ln()).abs() < 0.3, "{trained:?}");
    assert!(trained[29] < trained[0] - 1.0, "{trained:?}");
    let mut validations = whole.iter().filter(|line| line["split"] == "validation");
    let last = validations.next_back().unwrap();
    assert!(last["result"].as_f64().unwrap() > 0.0);
    let legality = &last["legality"];
    let shares = legality["by_ply"].as_array().unwrap();
    for share in shares[..2].iter().chain([&legality["all"]]) {
        assert!((0.0..=1.0).contains(&share.as_f64().unwrap()), "{legality}");
    }
    // The context has 48 tokens, so the last one is in the third row.
    assert!(shares[3..].iter().all(Value::is_null), "{legality}");

    succeed(&mut run(folder, "parts", &["steps=15"]));
    succeed(&mut run(folder, "parts", &[]));
    assert_eq!(steps(&metrics(folder, "parts")), steps(&whole));
    assert_eq!(metrics(folder, "parts").last(), whole.last());
    succeed(train(folder).args(["report", "whole", "-o", "report.html"]));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("policy") && page.contains("result"));
    succeed(train(folder).args(["export", "whole", "-o", "gpt.pt"]));
    // The exported file has the metrics of its run, including legality.
    let told = |source: &str| -> Value {
        let mut command = train(folder);
        command.args(["validate", source, "whole/config.toml", "--json"]);
        command.args(["--limit", "24"]);
        serde_json::from_str(&succeed(&mut command)).unwrap()
    };
    let (run, file) = (told("whole"), told("gpt.pt"));
    let [run_loss, file_loss] = [&run, &file].map(|it| it["policy"].as_f64().unwrap());
    assert!(
        (run_loss - file_loss).abs() < 0.01,
        "{run_loss} {file_loss}"
    );
    let legality = &file["legality"];
    assert!(
        legality["situations"]["castling"]["positions"]
            .as_f64()
            .unwrap()
            >= 0.0
    );
    assert!(
        (0.0..=1.0).contains(&legality["mass"].as_f64().unwrap()),
        "{legality}"
    );
}

/// A GPT only reads games that start at the initial position.
#[test]
fn an_empty_source_is_reported_once() {
    let workplace = workplace(8);
    let folder = workplace.path();
    configure(folder);
    let set_up = "[SetUp \"1\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\"]\n";
    let others = games(300).replace("[Result", &format!("{set_up}[Result"));
    fs::write(folder.join("others.pgn"), others).unwrap();
    succeed(train(folder).args(["pack", "others.pgn", "-o", "others.shard", "--played"]));
    let shards = "shards=[{path=\"games.shard\"},{path=\"others.shard\"}]";
    let output = run(folder, "run", &[&format!("data.{shards}")])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let told = errors
        .lines()
        .filter(|line| line.contains("has given nothing"));
    let told: Vec<&str> = told.collect();
    assert!(
        told.len() == 1 && told[0].contains("others.shard"),
        "{errors}"
    );
}

#[test]
fn a_grown_gpt_learns_legality_and_the_board() {
    let workplace = workplace(6);
    let folder = workplace.path();
    configure(folder);
    succeed(&mut run(folder, "plain", &[]));
    succeed(train(folder).args(["export", "plain", "-o", "plain.pt"]));
    let told = [
        "init=\"plain.pt\"",
        "network.model.board=true",
        "loss.legality=0.5",
        "loss.board=1.0",
        "augment.random_moves=0.5",
    ];
    let needs_head = fail(&mut run(folder, "told", &told[2..]));
    assert!(needs_head.contains("network.model.board"), "{needs_head}");
    succeed(&mut run(folder, "told", &told));
    let trained = |run: &str| -> Vec<Value> {
        let lines = metrics(folder, run).into_iter();
        lines.filter(|line| line["split"] == "train").collect()
    };
    let (before, after) = (trained("plain"), trained("told"));
    let [plain, first, last] = [before.last(), after.first(), after.last()].map(Option::unwrap);
    let of = |line: &Value, term: &str| line[term].as_f64().unwrap();
    // This run starts from the other network, and knows nothing about the board yet.
    assert!(of(first, "policy") < of(plain, "policy") + 0.5, "{first}");
    assert!(of(first, "board") > 2.0, "{first}");
    assert!(of(last, "board") < of(first, "board"), "{last}");
    assert!(of(last, "legality") < of(first, "legality"), "{last}");
    assert!((0.0..=1.0).contains(&of(last, "board_accuracy")), "{last}");
    // The exported network is measured with its board head; training without the head removes it
    // again.
    succeed(train(folder).args(["export", "told", "-o", "told.pt"]));
    let eval = ["validate", "told.pt", "told/config.toml", "--json"];
    let told: Value = serde_json::from_str(&succeed(train(folder).args(eval))).unwrap();
    assert!(of(&told, "board") > 0.0, "{told}");
    succeed(&mut run(folder, "back", &["init=\"told.pt\"", "steps=1"]));
}

#[test]
fn games_of_the_data_are_known() {
    let workplace = workplace(1);
    let folder = workplace.path();
    let copies = |games: &str| -> Value {
        let arguments = ["copies", games, "--data", "games.shard", "--json"];
        serde_json::from_str(&succeed(train(folder).args(arguments))).unwrap()
    };
    let own = copies("games.pgn");
    assert!(own["whole"]["games"].as_u64().unwrap() > 10, "{own}");
    assert_eq!(own["whole"]["games"], own["whole"]["known"]);
    fs::write(folder.join("new.pgn"), "1. a4 a5 2. b4 b5 *\n").unwrap();
    assert_eq!(
        copies("new.pgn")["whole"],
        serde_json::json!({"games": 1, "known": 0})
    );
    let none = fail(train(folder).args(["copies", "games.shard", "--data", "games.shard"]));
    assert!(none.contains("games.shard holds no games in PGN"), "{none}");
}

#[test]
fn a_vocabulary_is_collected_from_games() {
    let workplace = workplace(3);
    let folder = workplace.path();
    configure(folder);
    let line = succeed(train(folder).args(["vocabulary", "games.shard"]));
    assert!(
        line.starts_with("vocabulary = { san = [") && line.contains("\"e4\""),
        "{line}"
    );
    let config = fs::read_to_string(folder.join("gpt.toml")).unwrap();
    let config = config.replace("context = 48\n", &format!("context = 48\n{line}"));
    fs::write(folder.join("gpt.toml"), config).unwrap();
    succeed(&mut run(folder, "san", &[]));
    assert_eq!(
        metrics(folder, "san")
            .iter()
            .filter(|it| it["split"] == "train")
            .count(),
        3
    );
    let few = succeed(train(folder).args(["vocabulary", "games.shard", "--least", "50"]));
    assert!(few.len() < line.len(), "{few}");
    let none = fail(train(folder).args(["vocabulary", "games.shard", "--least", "1000000"]));
    assert!(none.contains("a vocabulary has 1 to"), "{none}");
}

#[test]
fn settings_of_other_families_are_refused_by_key() {
    let workplace = workplace(1);
    let folder = workplace.path();
    configure(folder);
    let told = fail(&mut run(folder, "run", &["augment.mirror=0.5"]));
    assert!(
        told.contains("augment.mirror: is for networks that read positions"),
        "{told}"
    );
    let told = fail(&mut run(folder, "run", &["distillation.net=\"net.pt\""]));
    assert!(
        told.contains("distillation: is for networks that read positions"),
        "{told}"
    );
    for key in ["augment.hide_ratings", "loss.legality", "loss.board"] {
        let setting = format!("{key}=0.5");
        let run = ["run", "tiny.toml", "--set", &setting];
        let told = fail(
            train(folder)
                .args(run)
                .args(["-o", "run", "--device", "cpu"]),
        );
        assert!(
            told.contains(&format!("{key}: is for networks that read whole games")),
            "{told}"
        );
    }
}
