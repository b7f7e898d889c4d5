//! Refusals by the operating system, which are reported and do not hang.

use crate::cli::tessera;
use crate::waiting::PATIENCE;

#[test]
fn threads_that_cannot_start_are_reported() {
    let arguments = ["backendbench", "--backend", "uniform", "--threads"];
    let bench = |threads: &str| {
        let mut command = tessera(&arguments);
        command.args([threads, "--batch", "1", "--time", "0s"]);
        command.timeout(PATIENCE);
        command
    };
    bench("5000").assert().code(2);
    // Request stacks that no machine can allocate.
    let mut command = bench("4");
    let output = command
        .env("RUST_MIN_STACK", (1u64 << 46).to_string())
        .output();
    let output = output.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.starts_with("error: the system cannot start 4 threads"),
        "{errors}"
    );
    bench("4").assert().success();
}
