//! Compiles our C++ code. It is a separate package whose build script depends only on the crate
//! `cc`, so it compiles in parallel with other crates. The library's own build script would have to
//! wait for torch-sys.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

/// Our C++ code, which uses parts of libtorch that tch does not expose. It is compiled as one file
/// (a unity build), because libtorch's headers and the templates that they instantiate take far
/// longer to compile than our own code: one file takes 87 CPU-seconds, two took 104. Names that
/// occur in several files must be in namespaces.
const CPP: &[&str] = &[
    // Operators with gradients, written as custom autograd functions of libtorch.
    "src/torch/fused/autograd.cpp",
    "src/torch/fused/embedding_functions.cpp",
    "src/torch/fused/encoder_functions.cpp",
    "src/torch/fused/head_functions.cpp",
    "src/torch/rms_norm.cpp",
    "src/torch/rotary.cpp",
    "src/torch/time_attention.cpp",
    // Everything else.
    "src/interop/onnx/graph.cpp",
    "src/torch/cached_attention.cpp",
    "src/torch/fuse.cpp",
    "src/torch/mish.cpp",
    "src/torch/module.cpp",
    "src/torch/module/tests/building.cpp",
    "src/torch/placement.cpp",
    "src/torch/process.cpp",
    "src/torch/profile.cpp",
    "src/torch/script.cpp",
    "src/torch/winograd.cpp",
    "src/train/distributed/buckets.cpp",
    "src/train/distributed/c10d.cpp",
    "src/torch/gpu/streams.cpp",
    // This file comes last, because it defines macros.
    "src/torch/gpu/emulation.cpp",
];

/// Kernels, each compiled for one instruction set and selected at run time. An entry consists of a
/// name, the file, and the compiler's names of the required CPU features.
const KERNELS: [(&str, &[&str], &[&str]); 4] = [
    ("isa_amx", &["src/torch/fused/isa_amx.cpp"], AMX),
    (
        "isa_avx512_bf16",
        &["src/torch/fused/isa_avx512_bf16.cpp"],
        AVX512_BF16,
    ),
    (
        "isa_avx512_vnni",
        &["src/torch/fused/isa_avx512_vnni.cpp"],
        AVX512_VNNI,
    ),
    ("isa_avx2", &["src/torch/fused/isa_avx2.cpp"], AVX2),
];
/// The CPU features for AMX. The feature list of every other instruction set is a prefix of this
/// one.
const AMX: &[&str] = &[
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vnni",
    "avx512bf16",
    "amx-tile",
    "amx-bf16",
];
const AVX512_BF16: &[&str] = AMX.split_at(8).0;
const AVX512_VNNI: &[&str] = AMX.split_at(7).0;
const AVX2: &[&str] = AMX.split_at(2).0;

/// Folders with the headers that the files above include.
const HEADERS: [&str; 4] = [
    "src/torch",
    "src/torch/fused",
    "src/torch/gpu",
    "src/train/distributed",
];

/// Environment variable that lists the sanitizers with which our C++ is compiled, in the form of
/// `-fsanitize`. `tools/sanitize` sets it.
const SANITIZE: &str = "TESSERA_SANITIZE";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={SANITIZE}");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let root = Path::new(&package).ancestors().nth(2).expect("src/native");
    // Paths in the lists above are relative to the root of the repository.
    env::set_current_dir(root).expect("the root of the repository");
    let kernels = KERNELS.iter().flat_map(|(_, files, _)| *files);
    let headers = headers();
    let headers = headers.iter().map(String::as_str);
    for file in CPP.iter().chain(kernels).copied().chain(headers) {
        println!("cargo:rerun-if-changed={}", root.join(file).display());
    }
    let libtorch = env::var_os("LIBTORCH").map(|libtorch| root.join(libtorch));
    compile(libtorch.as_deref());
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn compile(libtorch: Option<&Path>) {
    // Without LIBTORCH, torch-sys uses the system's libtorch, which is in /usr.
    let include = libtorch.unwrap_or(Path::new("/usr")).join("include");
    let mut inputs = DefaultHasher::new();
    for header in headers() {
        read(&header).hash(&mut inputs);
    }
    // The version stands for all of libtorch's headers, whose folder is part of the compiler's
    // command.
    fs::read(include.join("torch/headeronly/version.h"))
        .ok()
        .hash(&mut inputs);

    // Kernels exist only for x86-64.
    let fused = target("ARCH") == "x86_64" && target("ENV") != "msvc";
    let mut with_libtorch = cpp();
    if fused {
        with_libtorch.define("TESSERA_FUSED", None);
    }
    with_libtorch
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .include(include.join("torch/csrc/api/include"))
        .include(&include);
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        // Most of this code calls libtorch: 55 CPU-seconds instead of 87.
        with_libtorch.opt_level(1);
    }
    // The unit that takes the longest to compile comes first.
    let mut units = vec![(with_libtorch, "libtorch", CPP)];
    for (name, files, features) in KERNELS.iter().filter(|_| fused) {
        let mut build = cpp();
        // GCC emits warnings about its own intrinsics.
        build.flag("-Wno-psabi");
        for feature in *features {
            build.flag(format!("-m{feature}"));
        }
        units.push((build, *name, *files));
    }
    cc::Build::new()
        .cpp(true)
        .objects(compile_all(&units, &inputs))
        .compile("tessera_shim");
}

/// Compiles `units`, as many concurrently as cargo allows, and returns the object files.
fn compile_all(units: &[(cc::Build, &str, &[&str])], inputs: &DefaultHasher) -> Vec<PathBuf> {
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut objects = Vec::new();
        while let Some((build, name, files)) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            objects.push(compile_unit(build, name, files, inputs));
        }
        objects
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.unwrap_or(1)).map(|_| scope.spawn(work)).collect();
        let objects = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("a compiler that works"));
        let mut objects: Vec<_> = objects.collect();
        // The contents of the library must not depend on the order in which threads finish.
        objects.sort();
        objects
    })
}

/// Returns the compiler flags that all files share.
fn cpp() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        // libtorch's headers cause warnings.
        .warnings(false)
        // Kernels are the inner loops of inference, so every cargo profile optimises them.
        .opt_level(3)
        .debug(false);
    if let Ok(sanitizers) = env::var(SANITIZE) {
        build
            .flag(format!("-fsanitize={sanitizers}"))
            .flag("-fno-sanitize-recover=all")
            // The vptr check needs type information for classes that libtorch hides.
            .flag("-fno-sanitize=vptr")
            .flag("-fno-omit-frame-pointer")
            // With full optimisation, the sanitized kernels would take many minutes to compile.
            .opt_level(1)
            .debug(true);
    }
    build
}

/// Compiles `files` as one unit, unless its object already exists.
///
/// Cargo reruns this script once per profile and whenever the script changes. Each time, `cc` would
/// compile everything again and spend a minute in libtorch's headers. To avoid that, all builds
/// share one folder of object files. The name of an object file contains a hash of its sources,
/// `inputs`, the compiler and the compiler's command.
fn compile_unit(build: &cc::Build, name: &str, files: &[&str], inputs: &DefaultHasher) -> PathBuf {
    let mut build = build.clone();
    build.include(".");
    let mut hash = inputs.clone();
    let compiler = build.get_compiler();
    // The environment of the compiler's command would also include that of this build.
    let own_environment: Vec<_> = compiler.get_envs().collect();
    (compiler.path(), compiler.args(), own_environment).hash(&mut hash);
    if let Ok(version) = Command::new(compiler.path()).arg("--version").output() {
        version.stdout.hash(&mut hash);
    }
    files.iter().for_each(|file| read(file).hash(&mut hash));
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    // OUT_DIR is target/PROFILE/build/tessera-native-HASH/out.
    let folder = out_dir.ancestors().nth(4).expect("cargo's folders");
    let folder = folder.join("tessera-cpp");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let object = folder.join(format!("{name}-{:016x}.o", hash.finish()));
    if !object.exists() {
        let include = |file: &&str| format!("#include \"{file}\"\n");
        let source = out_dir.join(format!("{name}.cpp"));
        fs::write(&source, files.iter().map(include).collect::<String>())
            .expect("OUT_DIR can be written");
        let compiled = build.file(source).compile_intermediates();
        fs::rename(&compiled[0], &object).expect("the target folder can be written");
    }
    object
}

/// Returns the paths of all headers, in alphabetical order.
fn headers() -> Vec<String> {
    let entries = |folder| fs::read_dir(folder).expect("a folder of the repository");
    let paths = HEADERS.into_iter().flat_map(entries);
    let paths = paths.map(|entry| entry.expect("a readable folder").path());
    let paths = paths.filter(|path| {
        path.extension()
            .is_some_and(|end| end == "h" || end == "cuh")
    });
    let mut paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    paths.sort();
    paths
}

fn read(file: &str) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"))
}
