//! Lets the built binaries find libtorch wherever they are started from.

use std::path::{Path, PathBuf};

/// Our own C++: what libtorch can do and tch cannot reach.
const SOURCES: [&str; 1] = ["src/model/trace.cpp"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    compile();
    link();
}

fn compile() {
    let Some(libtorch) = std::env::var_os("LIBTORCH").map(PathBuf::from) else {
        // torch-sys says what to do when there is no libtorch.
        return;
    };
    let include = libtorch.join("include");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .files(SOURCES)
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .warnings(false)
        .compile("tessera_torch");
}

fn link() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "windows") {
        // Windows has no rpath: DLLs are found beside the binary or on PATH.
        return;
    }
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    if let Some(libtorch) = std::env::var_os("LIBTORCH") {
        let libraries = root.join(libtorch).join("lib");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    }
    let origin = if cfg!(target_os = "macos") {
        "@loader_path"
    } else {
        "$ORIGIN"
    };
    // target/release/tessera in a checkout that was moved after the build.
    let beside = Path::new(origin).join("../../.libtorch/torch/lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", beside.display());
}
