//! Builds our own C++ beside torch-sys's, embeds the default network, and lets
//! the built binaries find libtorch wherever they are started from.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Our C++: what tch does not reach of libtorch. One line a file.
const CPP: [&str; 15] = [
    "src/interop/onnx/graph.cpp",
    "src/nn/torch/fuse.cpp",
    "src/nn/torch/fused/autograd.cpp",
    "src/nn/torch/fused/embedding_functions.cpp",
    "src/nn/torch/fused/encoder_functions.cpp",
    "src/nn/torch/fused/head_functions.cpp",
    "src/nn/torch/fused/inference.cpp",
    "src/nn/torch/mish.cpp",
    "src/nn/torch/module.cpp",
    "src/nn/torch/process.cpp",
    "src/nn/torch/rms_norm.cpp",
    "src/nn/torch/script.cpp",
    "src/nn/torch/winograd.cpp",
    "src/train/distributed/buckets.cpp",
    "src/train/distributed/c10d.cpp",
];

/// Kernels that are compiled for one instruction set each, chosen when the program
/// runs: the file, and the compiler's name of each feature.
const KERNELS: [(&str, &[&str]); 3] = [
    ("src/nn/torch/fused/isa_avx2.cpp", &["avx2", "fma"]),
    ("src/nn/torch/fused/isa_avx512.cpp", &AVX512),
    ("src/nn/torch/fused/isa_amx.cpp", &AMX),
];
const AVX512: [&str; 7] = [
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512bf16",
];
const AMX: [&str; 9] = [
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512bf16",
    "amx-tile",
    "amx-bf16",
];

/// Headers those files include.
const HEADERS: [&str; 19] = [
    "src/nn/torch/fuse.h",
    "src/nn/torch/fused/attention.h",
    "src/nn/torch/fused/autograd.h",
    "src/nn/torch/fused/bias.h",
    "src/nn/torch/fused/blocks.h",
    "src/nn/torch/fused/dense.h",
    "src/nn/torch/fused/embedding.h",
    "src/nn/torch/fused/feed_forward.h",
    "src/nn/torch/fused/inference.h",
    "src/nn/torch/fused/isa.h",
    "src/nn/torch/fused/nadam.h",
    "src/nn/torch/fused/norm.h",
    "src/nn/torch/fused/policy.h",
    "src/nn/torch/fused/product.h",
    "src/nn/torch/fused/simd.h",
    "src/nn/torch/kernels.h",
    "src/nn/torch/rms_norm.h",
    "src/nn/torch/shim.h",
    "src/nn/torch/winograd.h",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let libtorch = env::var_os("LIBTORCH").map(|libtorch| root.join(libtorch));
    compile(libtorch.as_deref());
    link(libtorch.as_deref());
    embed(&root);
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn compile(libtorch: Option<&Path>) {
    for file in CPP.iter().chain(&HEADERS) {
        println!("cargo:rerun-if-changed={file}");
    }
    let has_kernels = compile_kernels();
    let mut build = cc::Build::new();
    if has_kernels {
        build.define("TESSERA_FUSED", None);
    }
    // torch-sys takes a libtorch of the system from here where LIBTORCH is not set.
    let libtorch = libtorch.unwrap_or(Path::new("/usr"));
    build
        .cpp(true)
        .std("c++17")
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .include(libtorch.join("include"))
        .include(libtorch.join("include/torch/csrc/api/include"))
        // libtorch's headers warn.
        .warnings(false)
        // Ours holds the loops of inference, in every profile of cargo's.
        .opt_level(3)
        .debug(false)
        .files(CPP)
        .compile("tessera_shim");
}

/// Compiles [`KERNELS`] where they can run; says whether they can.
fn compile_kernels() -> bool {
    for (file, _) in KERNELS {
        println!("cargo:rerun-if-changed={file}");
    }
    let can_run = target("ARCH") == "x86_64" && target("ENV") != "msvc";
    if can_run {
        for (file, features) in KERNELS {
            let name = Path::new(file).file_stem().expect("a file's name");
            let mut build = cc::Build::new();
            build
                .cpp(true)
                .std("c++17")
                .opt_level(3)
                .debug(false)
                .file(file);
            // GCC warns of its own intrinsics.
            build.warnings(false).flag("-Wno-psabi");
            for feature in features {
                build.flag(format!("-m{feature}"));
            }
            build.compile(&format!("tessera_{}", name.to_string_lossy()));
        }
    }
    can_run
}

fn link(libtorch: Option<&Path>) {
    if target("OS") == "windows" {
        // Windows has no rpath: DLLs are found beside the binary or on PATH.
        return;
    }
    if let Some(libtorch) = libtorch {
        let libraries = libtorch.join("lib");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    }
    let origin = match target("OS").as_str() {
        "macos" => "@loader_path",
        _ => "$ORIGIN",
    };
    // target/release/tessera in a checkout that was moved after the build.
    let beside = Path::new(origin).join("../../.libtorch/torch/lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", beside.display());
    if target("OS") == "linux" && target("ARCH") == "x86_64" {
        // Lets the MKL in libtorch find our answer, see src/nn/torch/process.cpp.
        println!("cargo:rustc-link-arg=-Wl,--export-dynamic-symbol=mkl_serv_intel_cpu_true");
    }
}

/// Writes what src/nn/load.rs includes: the bytes of the network that
/// nets/default names, if there is one.
fn embed(root: &Path) {
    let nets = root.join("nets");
    let named = nets.join("default");
    let watched = if named.exists() { &named } else { &nets };
    println!("cargo:rerun-if-changed={}", watched.display());
    let embedded = match fs::read_to_string(&named) {
        Ok(name) => {
            let file = nets.join(name.trim());
            assert!(
                file.is_file(),
                "{} names {}, which is no file",
                named.display(),
                file.display()
            );
            println!("cargo:rerun-if-changed={}", file.display());
            format!("Some(include_bytes!({file:?}) as &[u8])")
        }
        Err(_) => "None".to_owned(),
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("embedded.rs"), embedded).expect("OUT_DIR can be written");
}
