//! What the built programs must have for networks to be fast.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::Command;

/// MKL, inside libtorch, finds our answer only among the symbols that the
/// program exports; that it then asks is tested beside the code.
#[test]
fn every_program_on_libtorch_exports_the_answer_for_mkl() {
    for program in [env!("CARGO_BIN_EXE_tessera"), env!("CARGO_BIN_EXE_train")] {
        let Ok(nm) = Command::new("nm").arg("--dynamic").arg(program).output() else {
            crate::skip::skip("`nm`, which lists symbols");
            return;
        };
        assert!(nm.status.success());
        let symbols = String::from_utf8_lossy(&nm.stdout);
        // Symbols of libtorch's own namespaces, as the compiler spells them.
        let uses_libtorch = symbols.contains(" U _ZN2at") || symbols.contains(" U _ZN5torch");
        let exports = symbols.contains(" T mkl_serv_intel_cpu_true");
        assert_eq!(exports, uses_libtorch, "{program}");
    }
}
