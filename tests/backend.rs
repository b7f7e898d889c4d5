//! Symbols that the built programs must export for networks to be fast.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::Command;

/// MKL, inside libtorch, calls our override only if the program exports it; the tests of the
/// override itself are next to its code.
#[test]
fn every_libtorch_program_exports_the_mkl_override() {
    for program in [
        env!("CARGO_BIN_EXE_tessera"),
        env!("CARGO_BIN_EXE_tessera-train"),
    ] {
        let Ok(nm) = Command::new("nm").arg("--dynamic").arg(program).output() else {
            crate::skip::skip("`nm`, which lists symbols");
            return;
        };
        assert!(nm.status.success());
        let symbols = String::from_utf8_lossy(&nm.stdout);
        // Mangled symbols of libtorch's namespaces.
        let uses_libtorch = symbols.contains(" U _ZN2at") || symbols.contains(" U _ZN5torch");
        let exports = symbols.contains(" T mkl_serv_intel_cpu_true");
        assert_eq!(exports, uses_libtorch, "{program}");
    }
}
