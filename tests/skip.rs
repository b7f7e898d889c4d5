//! Skipped tests, which need something that the machine lacks: counts and explains them.

use std::io::Write;

/// Requirements that a machine may lack, with reasons.
const ALLOWED: [(&str, &str); 2] = [
    (
        "tables of Syzygy's generator",
        "they are gigabytes; tests of the same code read tables that they make themselves",
    ),
    (
        "torchrun",
        "its packages are gigabytes, which `tools/test --torch` installs; what it sets is tested without it",
    ),
];

/// Reports that the calling test cannot run without `missing`.
pub fn skip(missing: &str) {
    let reason = ALLOWED.iter().find(|(what, _)| missing.starts_with(what));
    let required = std::env::var_os("TESSERA_REQUIRE_ALL").is_some();
    assert!(
        !required || reason.is_some(),
        "this test cannot run without {missing}"
    );
    println!("skipped for the lack of {missing}");
    let Some(list) = std::env::var_os("TESSERA_SKIPS") else {
        return;
    };
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let why = reason.map_or(String::new(), |(_, why)| format!(" ({why})"));
    // Each line is written in a single call, because tests run concurrently.
    let line = format!("{test}: no {missing}{why}\n");
    let file = std::fs::File::options().append(true).open(list);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}
