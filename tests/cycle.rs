//! The self-play loop, tested through the real binary: generation by generation, and with kills at
//! random instants.

#[cfg(feature = "cloud")]
mod bucket;
mod lineage;
#[cfg(feature = "cloud")]
mod refusals;

use crate::support::wait_until;
use crate::waiting::at_some_pace;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tessera::chess::Ratings;
use tessera::data::shard::Shard;
use tessera::store::{Generation, Name, ShardName, Store};

/// Time limit for a loop in these tests, allowing for a busy machine.
const LONGEST: Duration = Duration::from_secs(1200);

fn train(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = crate::support::train(folder, arguments);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns the configuration of a loop with a tiny network and a few short games per generation.
fn config(generations: u64, more: &str) -> String {
    format!(
        r#"
store = "store"
folder = "loop"
generations = {generations}
poll = 0.1
shard_rows = 24
[search]
gumbel = 4
concurrency = 4
cache = 0
precision = "f32"
device = "cpu"
[learner]
samples_per_row = 2.0
[learner.window]
start = 20.0
[training]
name = "tiny"
steps = 4
batch = 16
log_every = 1
validate_every = 100
validation_samples = 16
checkpoint_every = 2
[training.model]
layers = 1
width = 16
heads = 2
feed_forward = 16
position = {{ kind = "absolute" }}
[training.data]
group = 1000
spread = 1
validation = 0.0
[training.schedule]
warmup = 1
shape = {{ kind = "stable", decay = 0.0 }}
{more}
"#
    )
}

/// Returns the configuration of the same loop with a network of another family, with that body.
fn of_family(network: &str, body: &str, generations: u64, more: &str) -> String {
    let chessformer = "[training.model]\n";
    let other = format!("[training.network]\n{network}\n[training.network.model.{body}]\n");
    let text = config(generations, more);
    assert!(text.contains(chessformer));
    text.replace(chessformer, &other)
}

const ACTORS: &str = "[actors]\nvisits = 6\nmax_plies = 14\nrandom_plies = 4\n";

fn workplace(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("loop.toml"), text).unwrap();
    folder
}

/// Runs a loop to completion; returns its JSON output.
fn finish(folder: &Path) -> Value {
    let mut command = train(folder, &["loop", "loop.toml", "--threads", "2", "--json"]);
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{}", logs(folder));
    let said = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

fn logs(folder: &Path) -> String {
    let mut text = String::new();
    let Ok(entries) = std::fs::read_dir(folder.join("loop/logs")) else {
        return text;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let log = std::fs::read_to_string(&path).unwrap_or_default();
        text.push_str(&format!("{}:\n{log}", path.display()));
    }
    text
}

/// Asserts that the store is complete and consistent: all shards can be read to their last game,
/// manifests name existing networks, and sums add up.
fn check(folder: &Path, generations: u64, samples_per_row: f64) -> (Vec<Generation>, u64) {
    let store = Store::open(&folder.join("store")).unwrap();
    let manifests = store.generations().unwrap();
    assert_eq!(manifests.len() as u64, generations + 1);
    let mut rows = 0;
    let (mut serials, mut games) = (BTreeSet::new(), BTreeSet::new());
    for name in store.shards().unwrap() {
        let shard = Shard::open(&store.path(&name.name())).unwrap();
        for block in 0..shard.blocks().len() {
            let records = shard.read(block).unwrap();
            let samples = records.iter().map(|it| shard.header.rules.samples(it));
            assert_eq!(samples.sum::<u64>(), shard.blocks()[block].samples);
            rows += shard.blocks()[block].samples;
            if name.worker.as_str().starts_with("actor") {
                // Two games may have the same few moves, but hardly the same searches.
                let mut whole = records.iter().map(|it| format!("{it:?}"));
                assert!(whole.all(|it| games.insert(it)), "a game twice");
                let mut ratings = records.iter().map(|it| it.ratings);
                assert!(ratings.all(|it| it == Ratings::default()));
            }
        }
        let ShardName { worker, serial, .. } = name;
        assert!(serials.insert((worker, serial)), "a serial number twice");
    }
    for (number, manifest) in (0..).zip(&manifests) {
        let network = store.get(&manifest.network()).unwrap().unwrap();
        let digest = <sha2::Sha256 as sha2::Digest>::digest(&network);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, manifest.sha256);
        assert_eq!(manifest.parent, u64::checked_sub(number, 1));
        assert_eq!(
            (manifest.steps, manifest.samples),
            (4 * number, 64 * number)
        );
        assert!(manifest.rows <= rows);
        assert!(manifest.drawn as f64 <= samples_per_row * manifest.rows as f64 + 1.0);
        let checkpoint = store.get(&Name::checkpoint(number)).unwrap();
        assert!(checkpoint.is_some());
    }
    (manifests, rows)
}

/// Returns the step numbers in the learner's metrics, in order.
fn steps(folder: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.join("loop/learner/metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines = lines.filter(|line: &Value| line["split"] == "train");
    lines.map(|line| line["step"].as_u64().unwrap()).collect()
}

#[test]
fn two_generations_of_self_play() {
    let strength = "[strength]\ngames = 6\nvisits = 4\nmax_plies = 20\n";
    let folder = workplace(&config(2, &format!("{ACTORS}{strength}")));
    let said = finish(folder.path());
    let strengths = said["strengths"].as_array().unwrap();
    let last = strengths.last().unwrap();
    assert_eq!(
        (&last["number"], &last["first"]["opponent"]),
        (&2.into(), &0.into())
    );
    assert_eq!(last["previous"]["opponent"], 1);
    for opponent in ["first", "previous"] {
        let count = |name: &str| last[opponent][name].as_u64().unwrap();
        assert_eq!(count("wins") + count("draws") + count("losses"), 6);
    }
    let report = std::fs::read_to_string(folder.path().join("loop/report.html")).unwrap();
    assert!(
        report.contains("\"strengths\":[{"),
        "the report has the strengths"
    );
    assert_eq!(
        (&said["finished"], &said["generation"]),
        (&true.into(), &2.into())
    );
    let (manifests, rows) = check(folder.path(), 2, 2.0);
    assert_eq!(said["rows"], rows);
    assert!(manifests[2].window < manifests[2].rows, "{manifests:?}");
    assert_eq!(steps(folder.path()), (1..=8).collect::<Vec<_>>());
    let report = std::fs::read_to_string(folder.path().join("loop/report.html")).unwrap();
    assert!(report.contains("tiny"));
    // Actors adopted the first trained network.
    let store = Store::open(&folder.path().join("store")).unwrap();
    let shards = store.shards().unwrap();
    assert!(shards.iter().any(|name| name.generation == 0));
    // A finished loop has nothing left to do.
    let again = finish(folder.path());
    assert_eq!(again["rows"], said["rows"]);
    // The loop resumes with one more generation.
    std::fs::write(folder.path().join("loop.toml"), config(3, ACTORS)).unwrap();
    finish(folder.path());
    check(folder.path(), 3, 2.0);
    assert_eq!(steps(folder.path()), (1..=12).collect::<Vec<_>>());
}

/// Packs a shard of human games.
fn people(folder: &Path) {
    let games: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/games");
    let games = games.join("tcec-standard.pgn");
    let games = games.to_str().unwrap();
    let arguments = ["pack", games, "-o", "people.shard", "--played"];
    assert!(train(folder, &arguments).status().unwrap().success());
}

#[test]
fn human_games_are_reanalysed_and_a_gate_decides() {
    let more = r#"
[reanalysers]
visits = 6
positions = 0.2
games = [{ path = "people.shard" }]
[gate]
games = 4
visits = 4
max_plies = 20
[strength]
games = 4
visits = 4
max_plies = 20
"#;
    let folder = workplace(&config(1, more));
    people(folder.path());
    let said = finish(folder.path());
    // The gate may have rejected the only trained network.
    let manifests = Store::open(&folder.path().join("store")).unwrap();
    let manifests = manifests.generations().unwrap();
    let measured = usize::from(manifests[1].is_accepted());
    assert_eq!(said["strengths"].as_array().unwrap().len(), measured);
    let (manifests, _) = check(folder.path(), 1, 2.0);
    let outcome = manifests[1].gate.unwrap();
    assert_eq!(outcome.wins + outcome.draws + outcome.losses, 4);
    assert!(manifests[0].gate.is_none());
    let store = Store::open(&folder.path().join("store")).unwrap();
    let shards = store.shards().unwrap();
    assert!(!shards.is_empty());
    for name in shards {
        assert!(name.worker.as_str().starts_with("reanalyser0-"), "{name:?}");
        let shard = Shard::open(&store.path(&name.name())).unwrap();
        for record in shard.read(0).unwrap() {
            assert_eq!(record.result, None);
            let searched = record.searches.iter().filter(|it| it.is_searched());
            let searched = searched.count();
            assert!(searched > 0 && searched < record.nodes.len());
        }
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_world_model_trains_on_imagined_play() {
    let world = "family = \"world\"\n[training.network.model]\nblocks = 1\ncontext = 2";
    let more = format!("{ACTORS}[reanalysers]\nvisits = 4\nown = 1.0\n");
    let text = of_family(world, "encoder", 2, &more);
    let imagines = text.replace("gumbel = 4\n", "gumbel = 4\nimagination = true\n");
    assert_ne!(text, imagines);
    let folder = workplace(&imagines);
    finish(folder.path());
    check(folder.path(), 2, 2.0);
    let metrics = std::fs::read_to_string(folder.path().join("loop/learner/metrics.jsonl"));
    assert!(
        metrics.unwrap().contains("\"board\""),
        "the world model is trained"
    );
}

#[test]
fn a_denoiser_trained_by_self_play_chooses_moves_by_futures() {
    let denoiser = "family = \"diffusion\"\n[training.network.model]\nhorizon = 2\n\
        changed = 4";
    let foresight = r"[actors.foresight]
share = 1.0
grows = 1
steps = 2
";
    let text = of_family(denoiser, "trunk", 2, &format!("{ACTORS}{foresight}"));
    let folder = workplace(&text);
    finish(folder.path());
    check(folder.path(), 2, 2.0);
}

/// Failures that a restart cannot fix end the loop immediately with a one-line message; workers
/// exit with a status reserved for them.
#[test]
fn permanent_failures_end_the_loop() {
    let again = "[reanalysers]\nvisits = 6\ngames = [{ path = \"nobody-has.shard\" }]\n";
    let missing = config(1, again);
    let folder = workplace(&missing);
    let mut command = train(folder.path(), &["loop", "loop.toml", "--threads", "2"]);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(!errors.contains("started again"), "{errors}");
    let told = errors.lines().filter(|line| line.starts_with("error: "));
    let told: Vec<&str> = told.collect();
    let expected = "error: reanalyser0: cannot use the shard nobody-has.shard: ";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{errors}");

    let unusable = missing.replace("nobody-has.shard", "loop.toml");
    let foreign = missing.replace("name = \"tiny\"", "init = \"nobody-has.pt\"");
    let for_nobody = missing.replace("generations = 1\n", "generations = 1\nnobody = 2\n");
    for (kind, text, named) in [
        ("reanalyser", &missing, "nobody-has.shard"),
        ("reanalyser", &unusable, "is not a shard"),
        ("learner", &foreign, "nobody-has.pt"),
        ("actor", &for_nobody, "unknown field `nobody`"),
        ("gate", &missing, "no table [gate]"),
    ] {
        let folder = workplace(text);
        let mut command = train(folder.path(), &[kind, "loop.toml", "store"]);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{kind}: {errors}");
        assert_eq!(errors.matches(named).count(), 1, "{kind}: {errors}");
    }
}

/// Returns random numbers for the instants of kills, which the machine's speed varies enough.
fn instants() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(60)
}

fn wait(child: &mut Child) {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < LONGEST, "timed out");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the number of kills, the number of generations, and the upper bound in milliseconds of
/// the time before a kill. The environment variable `TESSERA_KILLS` requests more kills, which come
/// sooner so that the loop does not finish first.
fn kills() -> (u64, u64, u64) {
    let wanted = std::env::var("TESSERA_KILLS");
    wanted.map_or((6, 3, 8000), |wanted| {
        let kills = wanted.parse().unwrap();
        (kills, 3 * kills, 2500)
    })
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_loop_killed_repeatedly_loses_nothing() {
    let (kills, generations, longest) = kills();
    let folder = workplace(&config(generations, ACTORS));
    let (mut killed, mut random) = (0, instants());
    for _ in 0..kills {
        let mut running = train(folder.path(), &["loop", "loop.toml", "--threads", "2"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300 + random.random_range(0..longest)));
        killed += u64::from(running.try_wait().unwrap().is_none());
        // The loop's workers notice that their standard input is closed.
        running.kill().unwrap();
        running.wait().unwrap();
    }
    finish(folder.path());
    println!("{killed} kills of {generations} generations");
    check(folder.path(), generations, 2.0);
    let told = steps(folder.path());
    assert_eq!(
        told,
        (1..=4 * generations).collect::<Vec<_>>(),
        "each step once"
    );
}

#[test]
fn killed_workers_leave_the_store_intact() {
    let folder = workplace(&config(2, ACTORS));
    let worker = |kind: &str| {
        let arguments = [kind, "loop.toml", "--threads", "1"];
        train(folder.path(), &arguments).spawn().unwrap()
    };
    let store = Store::open(&folder.path().join("store")).unwrap();
    let (begun, mut random) = (Instant::now(), instants());
    let (mut actor, mut learner) = (worker("actor"), worker("learner"));
    // The workers run longer each time, so that slow machines finish too.
    let mut longest = 1000;
    while store.generations().unwrap().len() < 3 {
        assert!(begun.elapsed() < LONGEST, "timed out");
        std::thread::sleep(Duration::from_millis(200 + random.random_range(0..longest)));
        longest += 1000;
        let (kind, victim) = match random.random() {
            true => ("actor", &mut actor),
            false => ("learner", &mut learner),
        };
        victim.kill().unwrap();
        victim.wait().unwrap();
        *victim = worker(kind);
    }
    for child in [&mut actor, &mut learner] {
        wait(child);
        assert!(child.wait().unwrap().success());
    }
    check(folder.path(), 2, 2.0);
    assert_eq!(steps(folder.path()), (1..=8).collect::<Vec<_>>());
}

#[test]
fn several_processes_train_together() {
    let folder = workplace(&config(2, ACTORS));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let worker = |kind: &str, number: &str| {
        let arguments = [kind, "loop.toml", "--threads", "1"];
        let mut command = train(folder.path(), &arguments);
        if kind == "learner" {
            command.args(["--device", "cpu", "--timeout", "600s"]);
            for (name, value) in [
                ("RANK", number),
                ("WORLD_SIZE", "2"),
                ("LOCAL_RANK", number),
            ] {
                command.env(name, value);
            }
            command.env("MASTER_ADDR", "127.0.0.1");
            command.env("MASTER_PORT", &port);
        }
        command.spawn().unwrap()
    };
    let workers = [("learner", "0"), ("learner", "1"), ("actor", "0")];
    for mut child in workers.map(|(kind, number)| worker(kind, number)) {
        wait(&mut child);
        assert!(child.wait().unwrap().success());
    }
    check(folder.path(), 2, 2.0);
    assert_eq!(steps(folder.path()), (1..=8).collect::<Vec<_>>());
}

#[cfg(feature = "cloud")]
#[test]
#[ignore = "long: runs in tools/test --all"]
fn the_loop_tolerates_a_faulty_and_lagging_bucket() {
    use bucket::{Bucket, Faults, NAME};
    let faults = Faults {
        refuses: 7,
        loses: 5,
        lag: Duration::from_millis(700),
        ..Faults::default()
    };
    let bucket = Bucket::start(faults);
    let folder = workplace(&config(2, ACTORS).replace(
        "store = \"store\"",
        &format!("store = \"s3://{NAME}/some/loop\""),
    ));
    let mut command = train(folder.path(), &["loop", "loop.toml", "--threads", "2"]);
    let output = bucket.show(&mut command).stderr(Stdio::piped()).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{}", logs(folder.path()));
    bucket.copy_to("some/loop/", &folder.path().join("store"));
    check(folder.path(), 2, 2.0);
    let (requests, overwritten) = bucket.counts();
    assert!(requests > 50, "{requests}");
    assert_eq!(overwritten, 0, "every put is conditional");
}

#[cfg(unix)]
#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_signalled_actor_stores_its_finished_games() {
    at_some_pace("games are finished and stored", stores_finished_games);
}

/// Signals an actor after this many times eight seconds; returns whether it has stored games.
#[cfg(unix)]
fn stores_finished_games(factor: u32) -> bool {
    let folder = workplace(&config(1, &ACTORS.replace("visits = 6", "visits = 4")));
    // This shard never fills up.
    let text = config(1, ACTORS).replace("shard_rows = 24", "shard_rows = 1000000");
    std::fs::write(folder.path().join("loop.toml"), text).unwrap();
    let arguments = ["learner", "loop.toml", "--threads", "1"];
    let mut learner = train(folder.path(), &arguments).spawn().unwrap();
    let arguments = ["actor", "loop.toml", "--threads", "1"];
    let mut actor = train(folder.path(), &arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    wait_until("there is a network", || {
        !store.generations().unwrap().is_empty()
    });
    let mut said = BufReader::new(actor.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("games at once")));
    // Drain the rest of the output.
    std::thread::spawn(move || said.for_each(drop));
    std::thread::sleep(Duration::from_secs(8) * factor);
    let interrupt = |child: &Child| {
        let id = child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status();
        assert!(status.unwrap().success());
    };
    interrupt(&actor);
    wait(&mut actor);
    assert_eq!(actor.wait().unwrap().code(), Some(75));
    let shards = store.shards().unwrap().len();
    assert!(shards <= 1, "{shards} shards");
    // The learner now has enough rows.
    interrupt(&learner);
    wait(&mut learner);
    assert_eq!(learner.wait().unwrap().code(), Some(75));
    shards == 1
}

#[cfg(unix)]
#[test]
fn a_loop_that_is_told_to_stop_asks_to_be_restarted() {
    let folder = workplace(&config(50, ACTORS));
    let mut running = train(folder.path(), &["loop", "loop.toml", "--threads", "2"])
        .spawn()
        .unwrap();
    wait_until("the workers have been started", || {
        std::fs::read_dir(folder.path().join("loop/logs")).is_ok_and(|logs| logs.count() > 1)
    });
    let id = running.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(running.wait().unwrap().code(), Some(75));
}

#[test]
fn mistakes_get_one_line() {
    let folder = workplace(&config(1, ACTORS));
    let told = |arguments: &[&str], named: &str| {
        let mut command = train(folder.path(), arguments);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        let lines = errors.lines().filter(|line| line.starts_with("error: "));
        assert!(lines.count() == 1 && errors.contains(named), "{errors}");
    };
    told(&["loop", "none.toml"], "none.toml");
    told(&["gate", "loop.toml"], "[gate]");
    told(&["reanalyser", "loop.toml"], "[reanalysers]");
    told(&["actor", "loop.toml", "ftp://host/x"], "ftp");
    told(&["actor", "loop.toml", "--name", "../x"], "../x");
    let mut text = std::fs::File::create(folder.path().join("bad.toml")).unwrap();
    write!(text, "{}", config(1, "[actors]\nvisits = 0\n")).unwrap();
    told(&["loop", "bad.toml"], "actors.visits");
    let other = config(1, ACTORS).replace("batch = 16", "batch = 0");
    std::fs::write(folder.path().join("bad.toml"), other).unwrap();
    told(&["loop", "bad.toml"], "batch");
    // An actor refuses a network that does not match its manifest.
    let wrong = Generation {
        sha256: "0".repeat(64),
        ..Generation::unfinished(0)
    };
    let store = Store::open(&folder.path().join("store")).unwrap();
    store.put(&Name::generation(0), &wrong.to_json()).unwrap();
    told(&["actor", "loop.toml"], "000000.pt is missing");
    store.put(&Name::network(0), b"x").unwrap();
    told(&["actor", "loop.toml"], "not the file");
}
