//! Passes libFuzzer's inputs to a fuzz target.

#![no_main]

#[allow(dead_code)]
#[path = "../network_code/records.rs"]
mod records;
mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use targets::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let target = targets::TARGETS.iter().find(|target| target.0 == name);
    let Some(&(_, target)) = target else {
        eprintln!("fuzz: error: this build has no target FUZZ_TARGET=`{name}`");
        std::process::exit(1);
    };
    target
});

fuzz_target!(|data: &[u8]| TARGET(data));
