//! What a fuzzer began with is read without a panic: `tools/fuzz` goes on from it.

mod targets;

use std::fs;
use std::path::PathBuf;

#[test]
fn every_corpus_is_read() {
    for &(name, read) in targets::TARGETS {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
        let files: Vec<_> = fs::read_dir(folder.join(name)).unwrap().collect();
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let path = file.unwrap().path();
            println!("{name}: {}", path.display());
            read(&fs::read(path).unwrap());
        }
    }
}
