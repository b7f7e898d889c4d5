//! All integration tests in one program, because linking with libtorch takes longer than compiling
//! a test file. Run the tests of one file with `cargo nextest run --test integration uci::`.

mod cli;
mod data_loader;
mod data_v6;
mod eval;
mod examples;
mod install;
mod map;
mod perft;
mod python;
#[cfg(feature = "torch")]
mod python_package;
mod readme;
mod search;
#[cfg(feature = "serve")]
mod serve;
mod skip;
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
mod support;
mod tablebase;
mod uci;
mod uci_python;
mod waiting;

// These modules need a network or the trainer.
#[cfg(feature = "torch")]
mod backend;
#[cfg(feature = "torch")]
#[path = "../src/torch/module/tests/building.rs"]
mod building;
#[cfg(feature = "torch")]
mod cycle;
#[cfg(feature = "torch")]
mod data_chunks;
#[cfg(feature = "torch")]
mod data_pack;
#[cfg(all(feature = "torch", feature = "cloud"))]
mod data_store;
#[cfg(feature = "torch")]
mod distributed;
#[cfg(feature = "torch")]
mod doctor;
#[cfg(feature = "torch")]
mod exchange;
#[cfg(feature = "torch")]
mod explain;
#[cfg(feature = "serve")]
mod fuzz;
#[cfg(feature = "torch")]
mod golden;
#[cfg(feature = "torch")]
mod gpt;
#[cfg(feature = "torch")]
mod interop_lc0;
#[cfg(feature = "torch")]
mod interop_maia3;
#[cfg(feature = "torch")]
mod interop_onnx;
#[cfg(feature = "torch")]
mod label;
#[cfg(feature = "torch")]
mod nets;
#[cfg(feature = "torch")]
mod network_code;
#[cfg(feature = "serve")]
mod pages;
#[cfg(feature = "torch")]
mod precision;
#[cfg(feature = "torch")]
mod reading;
#[cfg(feature = "serve")]
mod review;
#[cfg(feature = "torch")]
mod selfplay;
#[cfg(feature = "torch")]
mod torchscript;
#[cfg(feature = "torch")]
mod train;

#[test]
fn every_test_file_is_listed_here() {
    // This is a separate program; see Cargo.toml.
    const APART: &str = "models";
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_test = path.extension().is_some_and(|end| end == "rs");
        if is_test && !["main", APART].contains(&name) {
            let line = format!("\nmod {name};\n");
            assert!(include_str!("main.rs").contains(&line), "{path:?}");
        }
    }
}
