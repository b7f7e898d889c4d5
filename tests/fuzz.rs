//! Reads the seed corpora of `tools/fuzz` without a panic.

use crate::network_code::records;

mod targets;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the seed files of a fuzz target.
fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let files = fs::read_dir(folder.join(target)).unwrap();
    let files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty(), "{target}");
    files
}

#[test]
fn every_corpus_is_read() {
    // A UCI session may exit its process, which would end the tests; the next test runs these.
    for &(name, read) in targets::TARGETS.iter().filter(|target| target.0 != "uci") {
        for path in corpus(name) {
            println!("{name}: {}", path.display());
            read(&fs::read(path).unwrap());
        }
    }
}

#[test]
fn the_sessions_of_the_corpus_are_played() {
    for path in corpus("uci") {
        let mut engine = Command::new(env!("CARGO_BIN_EXE_tessera"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = engine.stdin.take().unwrap();
        let backend = b"setoption name Backend value uniform\n";
        input.write_all(backend).unwrap();
        input.write_all(&fs::read(&path).unwrap()).unwrap();
        drop(input);
        let output = engine.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{path:?}"
        );
        assert!(
            said.contains("bestmove ") && !said.contains("internal error"),
            "{said}"
        );
    }
}
