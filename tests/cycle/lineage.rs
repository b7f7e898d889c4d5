//! Tests learners whose folders do not match their stores, and workers that are terminated by other
//! programs.

use super::*;
use crate::support::exit;
use tessera::torch::ExportPrecision;
use tessera::train::Checkpoint;

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(status.unwrap().success());
}

/// Asserts that every published network matches its checkpoint.
fn check_states(folder: &Path, generations: u64) {
    let (manifests, _) = check(folder, generations, 2.0);
    let store = Store::open(&folder.join("store")).unwrap();
    let written = folder.join("network.pt");
    for manifest in manifests {
        let checkpoint = store.path(&Name::checkpoint(manifest.number));
        let checkpoint = Checkpoint::read(&checkpoint).unwrap();
        assert_eq!(checkpoint.state.step, manifest.steps);
        let network = checkpoint.into_network(false).unwrap();
        network.write(ExportPrecision::default(), &written).unwrap();
        let there = store.get(&manifest.network()).unwrap().unwrap();
        let is_same = std::fs::read(&written).unwrap() == there;
        assert!(is_same, "network and checkpoint of {}", manifest.number);
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_missing_store_gets_no_networks_from_an_old_run() {
    let folder = workplace(&config(2, ACTORS));
    finish(folder.path());
    std::fs::remove_dir_all(folder.path().join("store")).unwrap();
    finish(folder.path());
    check_states(folder.path(), 2);
    assert_eq!(steps(folder.path()), (1..=8).collect::<Vec<_>>());
    let aside = folder.path().join("loop/learner-1");
    assert_eq!(Checkpoint::read(&aside).unwrap().state.step, 8);
    assert!(!folder.path().join("loop/learner-2").exists());
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_restored_store_resumes_from_its_own_checkpoint() {
    let folder = workplace(&config(1, ACTORS));
    finish(folder.path());
    let backup = folder.path().join("backup");
    copy(&folder.path().join("store"), &backup);
    std::fs::write(folder.path().join("loop.toml"), config(3, ACTORS)).unwrap();
    finish(folder.path());
    let store = folder.path().join("store");
    std::fs::remove_dir_all(&store).unwrap();
    copy(&backup, &store);
    finish(folder.path());
    check_states(folder.path(), 3);
    assert_eq!(steps(folder.path()), (5..=12).collect::<Vec<_>>());
    assert!(folder.path().join("loop/learner-1").exists());
}

/// Two learners have resumed from generation 1, and one of them has published generation 2. The
/// other learner adopts it, although it has trained the same generation itself.
#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_learner_that_lost_a_generation_adopts_the_published_one() {
    let folder = workplace(&config(1, ACTORS));
    let path = |name: &str| folder.path().join(name);
    finish(folder.path());
    copy(&path("store"), &path("store2"));
    copy(&path("loop"), &path("loop2"));
    std::fs::write(path("loop.toml"), config(2, ACTORS)).unwrap();
    finish(folder.path());
    let at = |generations, store: &str, loop_folder: &str, seed: u64| {
        let data = "[training.data]\n";
        let text = config(generations, ACTORS)
            .replace(data, &format!("{data}seed = {seed}\n"))
            .replace("store = \"store\"", &format!("store = \"{store}\""))
            .replace("folder = \"loop\"", &format!("folder = \"{loop_folder}\""));
        std::fs::write(path("loop.toml"), text).unwrap();
        finish(folder.path());
    };
    // Different samples lead to a different network.
    at(2, "store2", "loop2", 7);
    at(3, "store", "loop2", 0);
    check_states(folder.path(), 3);
    let log = std::fs::read_to_string(path("loop2/logs/learner0.log")).unwrap();
    let line = "resuming from the store's checkpoint of generation 2";
    assert!(log.contains(line), "{log}");
    assert!(!path("loop2/learner-1").exists());
}

#[test]
fn two_learners_of_one_store_adopt_each_others_generations() {
    let folder = workplace(&config(3, ACTORS));
    let text = config(3, ACTORS).replace("folder = \"loop\"", "folder = \"loop2\"");
    std::fs::write(folder.path().join("other.toml"), text).unwrap();
    let worker = |kind: &str, config: &str| {
        let arguments = [kind, config, "--threads", "1"];
        train(folder.path(), &arguments).spawn().unwrap()
    };
    let mut workers = [
        worker("learner", "loop.toml"),
        worker("learner", "other.toml"),
        worker("actor", "loop.toml"),
    ];
    for child in &mut workers {
        wait(child);
        assert!(child.wait().unwrap().success());
    }
    check_states(folder.path(), 3);
}

/// Returns the process ID of the learner that a loop has started.
#[cfg(target_os = "linux")]
fn learner_of(running: &Child) -> Option<String> {
    let parent = format!("PPid:\t{}", running.id());
    for entry in std::fs::read_dir("/proc").unwrap() {
        let place = entry.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap_or_default();
        let is_child = read("status").lines().any(|line| line == parent);
        if is_child && read("cmdline").contains("\0learner\0") {
            return Some(place.file_name()?.to_string_lossy().into_owned());
        }
    }
    None
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_terminated_learner_is_restarted() {
    let folder = workplace(&config(3, ACTORS));
    let mut command = train(folder.path(), &["loop", "loop.toml", "--threads", "2"]);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    wait_until("the loop has a second generation", || {
        store.generations().unwrap().len() >= 2
    });
    let learner = learner_of(&running).unwrap();
    let status = Command::new("kill").args(["-TERM", &learner]).status();
    assert!(status.unwrap().success());
    wait(&mut running);
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("finished: generation 3"), "{said}");
    check(folder.path(), 3, 2.0);
}

#[test]
fn a_learner_whose_store_is_moved_does_not_start_over() {
    let folder = workplace(&config(2, ACTORS));
    let arguments = ["learner", "loop.toml", "--threads", "1"];
    let mut command = train(folder.path(), &arguments);
    let mut learner = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(learner.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(said.any(|line| line.contains("waiting for rows")));
    let store = folder.path().join("store");
    std::fs::rename(&store, folder.path().join("moved")).unwrap();
    let rest: Vec<String> = said.collect();
    assert_eq!(exit(&mut learner).code(), Some(78), "{rest:?}");
    let expected = "error: store no longer contains generation 0: the store was moved";
    assert!(rest.len() == 1 && rest[0].starts_with(expected), "{rest:?}");
    assert!(!store.exists());
}

/// While a worker is halted, the loop waits for its end, and gets the second signal.
#[cfg(target_os = "linux")]
#[test]
fn a_second_signal_ends_the_program_with_its_status() {
    for (signals, status) in [(["-TERM", "-TERM"], 143), (["-TERM", "-INT"], 130)] {
        let folder = workplace(&config(3, ACTORS));
        let mut command = train(folder.path(), &["loop", "loop.toml", "--threads", "2"]);
        let mut running = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the loop has a learner", || learner_of(&running).is_some());
        let learner = learner_of(&running).unwrap();
        let send = |signal: &str, process: &str| {
            let status = Command::new("kill").args([signal, process]).status();
            assert!(status.unwrap().success());
        };
        send("-STOP", &learner);
        let id = running.id().to_string();
        send(signals[0], &id);
        let mut said = BufReader::new(running.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("stopping the workers")));
        send(signals[1], &id);
        let ended = exit(&mut running);
        send("-KILL", &learner);
        assert_eq!(ended.code(), Some(status));
    }
}
