//! Builds our own C++ beside torch-sys's, embeds networks and the board of the page, and
//! lets the built binaries find libtorch wherever they are started from.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Our C++: what tch does not reach of libtorch. Each list is compiled as one file, for
/// libtorch's headers, and what they instantiate, take far longer than ours: 47 seconds of
/// a processor instead of 187. Names of one file that another of its list has too lie in a
/// namespace.
const CPP: [(&str, &[&str]); 2] = [
    // With gradients, by libtorch's custom functions.
    (
        "functions",
        &[
            "src/nn/torch/fused/autograd.cpp",
            "src/nn/torch/fused/embedding_functions.cpp",
            "src/nn/torch/fused/encoder_functions.cpp",
            "src/nn/torch/fused/head_functions.cpp",
            "src/nn/torch/rms_norm.cpp",
            "src/nn/torch/rotary.cpp",
            "src/nn/torch/time_attention.cpp",
        ],
    ),
    (
        "bridge",
        &[
            "src/interop/onnx/graph.cpp",
            "src/nn/torch/cached_attention.cpp",
            "src/nn/torch/fuse.cpp",
            "src/nn/torch/mish.cpp",
            "src/nn/torch/module.cpp",
            "src/nn/torch/placement.cpp",
            "src/nn/torch/process.cpp",
            "src/nn/torch/script.cpp",
            "src/nn/torch/winograd.cpp",
            "src/train/distributed/buckets.cpp",
            "src/train/distributed/c10d.cpp",
        ],
    ),
];

/// Kernels that are compiled for one instruction set each, chosen when the program
/// runs: the file, and the compiler's name of each feature.
const KERNELS: [(&str, &[&str]); 5] = [
    ("src/nn/torch/fused/isa_avx2.cpp", AVX2),
    (
        "src/nn/torch/fused/isa_avx2_vnni.cpp",
        &["avx2", "fma", "avxvnni"],
    ),
    ("src/nn/torch/fused/isa_avx512_vnni.cpp", AVX512_VNNI),
    ("src/nn/torch/fused/isa_avx512_bf16.cpp", AVX512_BF16),
    ("src/nn/torch/fused/isa_amx.cpp", AMX),
];
/// The features of AMX. The other sets have the first of them.
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

/// Headers those files include.
const HEADERS: [&str; 22] = [
    "src/nn/torch/fuse.h",
    "src/nn/torch/fused/attention.h",
    "src/nn/torch/fused/autograd.h",
    "src/nn/torch/fused/bias.h",
    "src/nn/torch/fused/blocks.h",
    "src/nn/torch/fused/dense.h",
    "src/nn/torch/fused/embedding.h",
    "src/nn/torch/fused/expected.h",
    "src/nn/torch/fused/feed_forward.h",
    "src/nn/torch/fused/format.h",
    "src/nn/torch/fused/isa.h",
    "src/nn/torch/fused/nadam.h",
    "src/nn/torch/fused/norm.h",
    "src/nn/torch/fused/packed.h",
    "src/nn/torch/fused/policy.h",
    "src/nn/torch/fused/product.h",
    "src/nn/torch/fused/simd.h",
    "src/nn/torch/kernels.h",
    "src/nn/torch/placement.h",
    "src/nn/torch/rms_norm.h",
    "src/nn/torch/shim.h",
    "src/nn/torch/winograd.h",
];

/// Names the sanitizers that our C++ is compiled with, as in `-fsanitize`. See
/// `tools/sanitize`.
const SANITIZE: &str = "TESSERA_SANITIZE";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={SANITIZE}");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    name_commit(&root);
    if env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    let libtorch = env::var_os("LIBTORCH").map(|libtorch| root.join(libtorch));
    compile(libtorch.as_deref());
    link(libtorch.as_deref());
    embed(&root);
    embed_board(&root.join(".board"));
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn compile(libtorch: Option<&Path>) {
    let sources = CPP.iter().flat_map(|(_, files)| *files);
    for file in sources.chain(&HEADERS) {
        println!("cargo:rerun-if-changed={file}");
    }
    // torch-sys takes a libtorch of the system from here where LIBTORCH is not set.
    let include = libtorch.unwrap_or(Path::new("/usr")).join("include");
    let mut inputs = DefaultHasher::new();
    for header in HEADERS {
        read(header).hash(&mut inputs);
    }
    // Stands for the headers of libtorch, whose folder is in the command.
    fs::read(include.join("torch/headeronly/version.h"))
        .ok()
        .hash(&mut inputs);

    let mut objects = compile_kernels(&inputs);
    let mut build = cpp();
    if !objects.is_empty() {
        build.define("TESSERA_FUSED", None);
    }
    build
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .include(include.join("torch/csrc/api/include"))
        .include(&include);
    objects.extend(compile_new(&build, &CPP, &inputs));
    cc::Build::new()
        .cpp(true)
        .objects(objects)
        .compile("tessera_shim");
}

/// Compiles [`KERNELS`] where they can run; no objects elsewhere.
fn compile_kernels(inputs: &DefaultHasher) -> Vec<PathBuf> {
    for (file, _) in KERNELS {
        println!("cargo:rerun-if-changed={file}");
    }
    if target("ARCH") != "x86_64" || target("ENV") == "msvc" {
        return Vec::new();
    }
    let compile = |(file, features): (&str, &[&str])| {
        let mut build = cpp();
        // GCC warns of its own intrinsics.
        build.flag("-Wno-psabi");
        for feature in features {
            build.flag(format!("-m{feature}"));
        }
        let name = Path::new(file).file_stem().and_then(|name| name.to_str());
        let name = name.expect("a file of ours has a plain name");
        compile_new(&build, &[(name, &[file])], inputs)
    };
    KERNELS.into_iter().flat_map(compile).collect()
}

/// How every file is compiled.
fn cpp() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        // libtorch's headers warn.
        .warnings(false)
        // Ours holds the loops of inference, in every profile of cargo's.
        .opt_level(3)
        .debug(false);
    if let Ok(sanitizers) = env::var(SANITIZE) {
        build
            .flag(format!("-fsanitize={sanitizers}"))
            .flag("-fno-sanitize-recover=all")
            // Needs the type information of libtorch's hidden classes.
            .flag("-fno-sanitize=vptr")
            .flag("-fno-omit-frame-pointer")
            // Optimised in full the kernels would compile for many minutes.
            .opt_level(1)
            .debug(true);
    }
    build
}

/// The objects of `lists`, each by its name and its files, compiled where they are not
/// there yet.
///
/// Cargo runs this script again when the built-in network or the script itself
/// changes, and once for every profile and every set of features. `cc` alone would
/// then compile everything: a minute spent in libtorch's headers. So an object's
/// name holds a hash of what it was made from (the sources, `inputs`, the compiler
/// and its command), and all of these builds share one folder of objects.
fn compile_new(
    build: &cc::Build,
    lists: &[(&str, &[&str])],
    inputs: &DefaultHasher,
) -> Vec<PathBuf> {
    let mut build = build.clone();
    build.include(".");
    let mut inputs = inputs.clone();
    let compiler = build.get_compiler();
    // Not as a command, which has the environment of this build besides.
    let own_environment: Vec<_> = compiler.get_envs().collect();
    (compiler.path(), compiler.args(), own_environment).hash(&mut inputs);
    if let Ok(version) = Command::new(compiler.path()).arg("--version").output() {
        version.stdout.hash(&mut inputs);
    }
    // OUT_DIR is target/PROFILE/build/tessera-HASH/out.
    let out_dir = out_dir();
    let folder = out_dir.ancestors().nth(4).expect("cargo's folders");
    let folder = folder.join("tessera-cpp");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let (mut objects, mut missing, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    for (name, files) in lists {
        let mut hash = inputs.clone();
        files.iter().for_each(|file| read(file).hash(&mut hash));
        let object = folder.join(format!("{name}-{:016x}.o", hash.finish()));
        if !object.exists() {
            let include = |file: &&str| format!("#include \"{file}\"\n");
            let source = out_dir.join(format!("{name}.cpp"));
            fs::write(&source, files.iter().map(include).collect::<String>())
                .expect("OUT_DIR can be written");
            joined.push(source);
            missing.push(object.clone());
        }
        objects.push(object);
    }
    let compiled = build.files(&joined).compile_intermediates();
    for (compiled, object) in compiled.into_iter().zip(missing) {
        fs::rename(compiled, object).expect("the target folder can be written");
    }
    objects
}

fn read(file: &str) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"))
}

fn link(libtorch: Option<&Path>) {
    if target("OS") == "windows" {
        // Windows has no rpath: DLLs are found beside the binary or on PATH.
        return;
    }
    if env::var_os(SANITIZE).is_some() {
        // rustc keeps the compiler from naming its own libraries.
        println!("cargo:rustc-link-arg=-lasan");
        println!("cargo:rustc-link-arg=-lubsan");
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

/// Has `--version` name the commit in a release build of a checkout. Elsewhere every
/// commit would compile the library again, for nobody.
fn name_commit(root: &Path) {
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") || !root.join(".git").exists()
    {
        return;
    }
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.arg("-C").arg(root).args(arguments).output().ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| said.trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=9", "HEAD"]) else {
        return;
    };
    println!("cargo:rustc-env=TESSERA_COMMIT={commit}");
    // Every commit and every checkout adds a line to the log of HEAD.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).map(|log| root.join(log));
    if let Some(log) = log.filter(|log| log.exists()) {
        println!("cargo:rerun-if-changed={}", log.display());
    }
}

/// Writes what src/backend/networks.rs includes: the bytes of the network that
/// nets/default names, if there is one.
fn embed(root: &Path) {
    let nets = root.join("nets");
    let named = nets.join("default");
    let watched = if named.exists() { &named } else { &nets };
    println!("cargo:rerun-if-changed={}", watched.display());
    let main = fs::read_to_string(&named).ok().map(|name| {
        let file = nets.join(name.trim());
        assert!(
            file.is_file(),
            "{} names {}, which is no file",
            named.display(),
            file.display()
        );
        file
    });
    let human = Some(nets.join("tessera-human.pt")).filter(|file| file.is_file());
    if human.is_none() {
        // It may come.
        println!("cargo:rerun-if-changed={}", nets.display());
    }
    for (name, file) in [("embedded.rs", main), ("embedded_human.rs", human)] {
        let embedded = file.map_or("None".to_owned(), |file| {
            println!("cargo:rerun-if-changed={}", file.display());
            format!("Some(include_bytes!({file:?}) as &[u8])")
        });
        fs::write(out_dir().join(name), embedded).expect("OUT_DIR can be written");
    }
}

/// Writes what src/serve/page.rs includes: the names and the bytes of the board's files,
/// if tools/setup could fetch them.
fn embed_board(folder: &Path) {
    let stamp = folder.join("installed.json");
    // Where there is none it may come.
    println!("cargo:rerun-if-changed={}", stamp.display());
    let mut files = Vec::new();
    if stamp.is_file() {
        for inside in [folder.to_owned(), folder.join("chessops")] {
            let entries = fs::read_dir(&inside).expect("the board's folder can be read");
            files.extend(entries.map(|entry| entry.expect("it can be read").path()));
        }
    }
    files.retain(|file| {
        file.extension()
            .is_some_and(|end| end == "js" || end == "css")
    });
    files.sort();
    let files = files.iter().map(|file| {
        let name = file.strip_prefix(folder).expect("it lies there");
        let name = name.to_str().expect("plain names").replace('\\', "/");
        format!("({name:?}, include_bytes!({file:?})),\n")
    });
    let embedded = format!("&[{}]", files.collect::<String>());
    fs::write(out_dir().join("board.rs"), embedded).expect("OUT_DIR can be written");
}
