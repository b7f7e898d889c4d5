//! Tests of world models.

use super::exact::assert_alike;
use super::workplace::{fail, metrics, succeed, train, workplace};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Configures a world model whose encoder is the workplace's network.
pub fn configure(folder: &Path) {
    let config = fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let encoder = "[network]\nfamily = \"world\"\n[network.model.encoder]";
    // With this schedule, a shorter run has the same learning rates.
    let shape = "warmup = 5\nshape = { kind = \"stable\", decay = 0.0 }";
    let config = config
        .replace("[model]", encoder)
        .replace("batch = 64", "batch = 16")
        .replace("warmup = 5", shape);
    let config = format!("{config}\n[unroll]\nplies = 2\nevery = 8\n");
    fs::write(folder.join("world.toml"), config).unwrap();
}

pub fn run(folder: &Path, output: &str, settings: &[&str]) -> Command {
    let mut command = train(folder);
    command.args(["run", "world.toml", "-o", output]);
    command.args(["--device", "cpu", "--threads", "2"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    command
}

/// A world model learns the effects of moves. It resumes bit for bit, including the averaged
/// weights that define its target latents. Its exported file can play.
#[test]
fn a_world_model_learns_and_resumes_exactly() {
    let workplace = workplace(20);
    let folder = workplace.path();
    configure(folder);
    succeed(&mut run(folder, "whole", &[]));
    let whole = metrics(folder, "whole");
    let trained = whole.iter().filter(|line| line["split"] == "train");
    let trained: Vec<&Value> = trained.collect();
    for name in ["board", "end"] {
        let loss = |line: &Value| line[name].as_f64().unwrap();
        let [first, last] = [loss(trained[0]), loss(trained[19])];
        assert!(last < 0.9 * first, "{name}: {first} {last}");
    }
    let mut validations = whole.iter().filter(|line| line["split"] == "validation");
    let depths = validations.next_back().unwrap()["depths"].as_array();
    assert_eq!(depths.unwrap().len(), 3);

    succeed(&mut run(folder, "parts", &["steps=10"]));
    succeed(&mut run(folder, "parts", &[]));
    assert_alike(folder, ["whole", "parts"], 20);

    succeed(train(folder).args(["export", "whole", "-o", "world.pt"]));
    let told = |source: &str| -> Value {
        let mut command = train(folder);
        command.args(["validate", source, "whole/config.toml", "--json"]);
        command.args(["--limit", "24"]);
        serde_json::from_str(&succeed(&mut command)).unwrap()
    };
    let (run, file) = (told("whole"), told("world.pt"));
    for name in ["policy", "board", "latent"] {
        let [run, file] = [&run, &file].map(|it| it[name].as_f64().unwrap());
        assert!(
            (run - file).abs() < 0.02 * run.abs(),
            "{name}: {run} {file}"
        );
    }
}

/// The same holds for world models with every other kind of state, and with balanced losses.
#[test]
fn every_state_learns_in_balance_and_resumes_exactly() {
    let workplace = workplace(8);
    let folder = workplace.path();
    configure(folder);
    for state in ["token", "dit"] {
        let names = ["whole", "parts"].map(|name| format!("{state}-{name}"));
        let [whole, parts] = names.each_ref().map(String::as_str);
        let state = format!("network.model.state=\"{state}\"");
        let settings = [&*state, "unroll.harmony=true", "validate_every=4"];
        succeed(&mut run(folder, whole, &settings));
        let lines = metrics(folder, whole);
        let scales = |line: &Value| -> Vec<f64> {
            let names = ["heads", "rules", "latents"];
            names
                .map(|name| line["scales"][name].as_f64().unwrap())
                .to_vec()
        };
        let trained: Vec<&Value> = lines
            .iter()
            .filter(|line| line["split"] == "train")
            .collect();
        let [first, last] = [scales(trained[0]), scales(trained[7])];
        assert!(first.iter().zip(&last).all(|(first, last)| first != last));

        succeed(&mut run(
            folder,
            parts,
            &[&settings[..], &["steps=4"]].concat(),
        ));
        succeed(&mut run(folder, parts, &settings));
        assert_alike(folder, [whole, parts], 8);
    }
}

/// A world model can be grown from a Chessformer, and initially plays like it.
#[test]
fn a_world_model_grows_out_of_a_chessformer() {
    let workplace = workplace(2);
    let folder = workplace.path();
    configure(folder);
    let mut tiny = train(folder);
    succeed(tiny.args(["run", "tiny.toml", "-o", "tiny"]));
    succeed(train(folder).args(["export", "tiny", "-o", "tiny.pt"]));
    let still = ["init=\"tiny.pt\"", "steps=1", "schedule.peak=0.0"];
    succeed(&mut run(folder, "world", &still));
    succeed(train(folder).args(["export", "world", "-o", "world.pt"]));
    let token = [&still[..], &["network.model.state=\"token\""]].concat();
    succeed(&mut run(folder, "token", &token));
    succeed(train(folder).args(["export", "token", "-o", "token.pt"]));
    let [tiny, world, token] = ["tiny.pt", "world.pt", "token.pt"].map(|net| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        let command = command.current_dir(folder).args(["eval", "--net", net]);
        succeed(command.args(["--precision", "f32"]))
    });
    assert!(tiny.contains("e2e4"), "{tiny}");
    assert_eq!(tiny, world);
    assert_eq!(tiny, token);
    let told = fail(&mut run(folder, "other", &["unroll.plies=17"]));
    assert!(told.contains("unroll.plies"), "{told}");
    let told = fail(&mut run(folder, "other", &["augment.mirror=0.5"]));
    assert!(
        told.contains("augment.mirror: is for networks that read positions"),
        "{told}"
    );
}
