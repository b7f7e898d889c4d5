//! `tessera-train selfplay` through its binary: its chunks match the games that it played.

use crate::support::{train, wait_until};
use serde_json::Value;
use shakmaty::{Color, Position};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tessera::chess::Game;
use tessera::data::pgn::{open, parse_game, tag};
use tessera::data::replay::main_line;
use tessera::data::v6::{ADJUDICATED, CUT_OFF, Chunk, V6Record};
use tessera::data::{Legal, Policy, Wdl};
use tessera::encode::{Input, policy_index};

/// Runs `tessera-train selfplay` on the random backend.
fn selfplay(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = train(folder, &[]);
    command
        .args([
            "selfplay",
            "--backend",
            "random",
            "--json",
            "--visits",
            "20",
        ])
        .args(arguments);
    command
}

/// Returns the JSON object that a command prints last.
fn succeed(command: Command) -> Value {
    let said = crate::support::succeed(command);
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

fn chunks(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut chunks: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "gz"))
        .collect();
    chunks.sort();
    chunks
}

fn records(chunk: &Path) -> Vec<V6Record> {
    let chunk = Chunk::open(chunk).unwrap();
    chunk.records().map(|record| *record.unwrap()).collect()
}

fn games(folder: &Path) -> Vec<String> {
    open(&folder.join("games.pgn"), |file| file)
        .unwrap()
        .map(|game| String::from_utf8(game.unwrap().text).unwrap())
        .collect()
}

/// Asserts that the records match the game's searched positions.
fn check(records: &[V6Record], text: &str, visits: u32) {
    let game = main_line(&parse_game(text.as_bytes()).unwrap()).unwrap();
    let result = parse_game(text.as_bytes()).unwrap().result.unwrap();
    let searched = records.len();
    assert_eq!(tag(text, "Searched").unwrap(), searched.to_string());
    let opening = game.plies().len() - 1 - searched;
    let mut so_far = Game::new(game.plies()[0].position.clone(), game.mode());
    for (ply, after) in game.plies()[1..].iter().enumerate() {
        let mv = after.played.unwrap();
        if let Some(index) = ply.checked_sub(opening) {
            let record = &records[index];
            let turn = so_far.position().turn();
            let legal = Legal::of(&so_far.position().legal_moves(), turn);
            let sample = record.sample().unwrap();
            assert_eq!(sample.input, Input::encode(&so_far));
            assert_eq!(sample.legal, legal);
            let Policy::Distribution(policy) = &sample.policy else {
                panic!("no distribution");
            };
            let sum: f32 = policy.iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            let played = record.played_idx;
            assert_eq!(played, policy_index(mv, turn));
            let (best, visited) = (record.best_idx, record.visits);
            assert!(legal.contains(best) && visited <= visits);
            let mover = turn.fold_wb(result, result.reversed());
            assert_eq!(sample.result, Some(mover));
            assert_eq!(f32::from(u8::from(mover == Wdl::Draw)), { record.result_d });
            let later = (searched - 1 - index) as f32;
            assert_eq!(
                { record.plies_left },
                { records[searched - 1].plies_left } + later
            );
            for q in [record.root_q, record.best_q, record.played_q, record.orig_q] {
                assert!((-1.0..=1.0).contains(&q), "{q}");
            }
            for d in [record.root_d, record.best_d, record.played_d, record.orig_d] {
                assert!((0.0..=1.0).contains(&d), "{d}");
            }
            assert!({ record.policy_kld } >= -1e-5 && { record.policy_kld }.is_finite());
        }
        so_far.play(mv);
    }
}

#[test]
fn chunks_hold_the_games_and_repeat_exactly() {
    let folder = tempfile::tempdir().unwrap();
    for (name, concurrency) in [("one", "1"), ("three", "3")] {
        let mut command = selfplay(folder.path(), &["--limit", "6", "--max-plies", "70"]);
        command.args(["--jobs", concurrency, "-o", name]);
        let said = succeed(command);
        assert_eq!(said["games"], 6);
        assert!(said["evaluations"].as_u64().unwrap() > 100);
    }
    let [one, three] = ["one", "three"].map(|name| folder.path().join(name));
    assert_eq!(games(&one), games(&three));
    let texts = games(&one);
    assert_eq!((chunks(&one).len(), texts.len()), (6, 6));
    let mut drawn = 0;
    for ((chunk, other), text) in chunks(&one).iter().zip(chunks(&three)).zip(&texts) {
        assert_eq!(std::fs::read(chunk).unwrap(), std::fs::read(other).unwrap());
        let records = records(chunk);
        check(&records, text, 20);
        drawn += records
            .iter()
            .filter(|record| { record.played_idx } != { record.best_idx })
            .count();
        let is_cut_off = tag(text, "Termination").unwrap() == "length";
        let flags = records[0].invariance_info & (ADJUDICATED | CUT_OFF);
        assert_eq!(flags == ADJUDICATED | CUT_OFF, is_cut_off);
    }
    assert!(drawn > 6, "the temperature draws moves");
    let mut stats = train(folder.path(), &[]);
    stats
        .arg("stats")
        .args(chunks(&one))
        .args(["--json", "--strict"]);
    let findings = succeed(stats);
    assert_eq!(findings["games"], 6);
    assert_eq!(
        findings["samples"],
        findings["targets"]["policy_distribution"]
    );
    let mut pack = train(folder.path(), &[]);
    pack.args(["pack", "one/games.pgn", "-o", "games.shard", "--strict"]);
    pack.args(["--evals", "chooser", "--curve", "lc0"]);
    assert!(pack.status().unwrap().success());
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn killed_self_play_resumes_to_the_same_games() {
    let folder = tempfile::tempdir().unwrap();
    let command = |name: &str| {
        let mut command = selfplay(folder.path(), &["--limit", "40", "--max-plies", "60"]);
        command.args(["--jobs", "2", "-o", name]);
        command
    };
    let mut running = command("killed")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let part = folder.path().join("killed/games.pgn.part");
    let size = || std::fs::metadata(&part).map_or(0, |file| file.len());
    wait_until("enough games are written", || size() >= 3000);
    running.kill().unwrap();
    assert!(!running.wait().unwrap().success());
    let said = succeed(command("killed"));
    let found = said["found"].as_u64().unwrap();
    assert!((1..40).contains(&found), "{found}");
    let whole = succeed(command("whole"));
    for count in ["games", "positions", "white", "draw", "black", "cut_off"] {
        assert_eq!(said[count], whole[count], "{count}");
    }
    let [killed, whole] = ["killed", "whole"].map(|name| folder.path().join(name));
    assert_eq!(games(&killed), games(&whole));
    for (chunk, other) in chunks(&killed).iter().zip(chunks(&whole)) {
        assert_eq!(std::fs::read(chunk).unwrap(), std::fs::read(other).unwrap());
    }
    let mut other = command("killed");
    other.args(["--seed", "1"]);
    assert!(!other.output().unwrap().status.success());
}

#[test]
fn resignations_are_checked_on_games_played_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = selfplay(folder.path(), &["--limit", "48", "--max-plies", "60"]);
    command.args(["--resign-below", "-0.3", "--played-on", "0.5", "-o", "out"]);
    let said = succeed(command);
    let count = |name: &str| said[name].as_u64().unwrap();
    assert!(count("resigned") > 0 && count("would_resign") > 0, "{said}");
    assert!(count("wrongly") <= count("would_resign"));
    let out = folder.path().join("out");
    let mut wrongly = 0;
    for (chunk, text) in chunks(&out).iter().zip(games(&out)) {
        let records = records(chunk);
        check(&records, &text, 20);
        let loser = match tag(&text, "Result").unwrap().as_str() {
            "1-0" => Some(Color::Black),
            "0-1" => Some(Color::White),
            _ => None,
        };
        let hopeless = |record: &&V6Record| { record.best_q } <= -0.3;
        let first = records.iter().find(hopeless);
        let first = first.map(|record| record.input().unwrap().turn());
        match tag(&text, "Termination").unwrap().as_str() {
            "resignation" => assert_eq!(first, loser),
            _ => {
                let named = tag(&text, "WouldResign");
                assert_eq!(named, first.map(|side| side.to_string()));
                wrongly += u64::from(first.is_some() && first != loser);
            }
        }
    }
    assert_eq!(count("wrongly"), wrongly);
}

#[test]
fn gumbel_selection_yields_the_improved_policy_as_target() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = selfplay(folder.path(), &["--limit", "2", "--max-plies", "40"]);
    command.args(["--gumbel", "4", "-o", "out"]);
    succeed(command);
    let out = folder.path().join("out");
    for (chunk, text) in chunks(&out).iter().zip(games(&out)) {
        let records = records(chunk);
        check(&records, &text, 20);
        // Visits go to four moves, but the improved policy covers all of them.
        let everywhere = records.iter().filter(|record| {
            let sample = record.sample().unwrap();
            let Policy::Distribution(policy) = &sample.policy else {
                return false;
            };
            policy.len() == sample.legal.count()
        });
        assert!(everywhere.count() > records.len() / 2);
    }
}

#[test]
fn a_network_plays_many_concurrent_games() {
    let folder = tempfile::tempdir().unwrap();
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    let mut command = train(folder.path(), &[]);
    command
        .args([
            "selfplay", "--device", "cpu", "--limit", "4", "--visits", "8",
        ])
        .args(["--max-plies", "14", "--jobs", "4", "--json", "-o", "out"])
        .arg("--net")
        .arg(net);
    let said = succeed(command);
    assert_eq!(said["games"], 4);
    let out = folder.path().join("out");
    for (chunk, text) in chunks(&out).iter().zip(games(&out)) {
        check(&records(chunk), &text, 8);
    }
}

#[test]
fn options_of_another_kind_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, told) in [
        (&["--set", "Temperature=1"][..], "options of their own"),
        (&["--set", "Nonsense=1"], "Nonsense"),
        (&["--openings", "no-such.epd"], "no-such.epd"),
        (&["--syzygy", "no-such-folder"], "no-such-folder"),
    ] {
        let mut command = selfplay(folder.path(), &["--limit", "1", "-o", "out"]);
        let output = command.args(arguments).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && errors.contains(told),
            "{errors}"
        );
    }
}
