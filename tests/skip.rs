//! Tests that need what a machine may lack say so, and are counted.
//!
//! `tools/test` names a file in `TESSERA_SKIPS`, counts its lines and prints them.
//! Where `TESSERA_REQUIRE_ALL` is set, as in continuous integration, whatever is
//! missing fails its test, but for what [`ALLOWED`] lists.

use std::io::Write;

/// What no machine needs to have, and why.
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

/// Says that the test which calls this cannot run for the lack of `missing`.
///
/// # Panics
/// Where everything is required.
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
    // A line by one call, since tests run side by side.
    let line = format!("{test}: no {missing}{why}\n");
    let file = std::fs::File::options().append(true).open(list);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}
