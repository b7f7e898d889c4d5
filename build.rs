//! Embeds networks, the web board and Stockfish for the browser, and sets the paths at which the binaries find libtorch
//! regardless of the working directory. `src/native` compiles our C++ code.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=TESSERA_SANITIZE");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    name_commit(&root);
    if env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    let libtorch = env::var_os("LIBTORCH").map(|libtorch| root.join(libtorch));
    link(libtorch.as_deref());
    embed(&root);
    let board = root.join(".board");
    embed_packages("board.rs", &board, &[&board, &board.join("chessops")]);
    let stockfish = root.join(".stockfish");
    embed_packages("stockfish.rs", &stockfish, &[&stockfish]);
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"))
}

fn link(libtorch: Option<&Path>) {
    if target("OS") == "windows" {
        // Windows has no rpath. It searches the binary's folder and PATH for DLLs.
        return;
    }
    if env::var_os("TESSERA_SANITIZE").is_some() {
        // rustc prevents the C++ compiler from linking its own sanitizer libraries.
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
    // For target/release/tessera in a checkout that was moved after the build.
    let beside = Path::new(origin).join("../../.libtorch/torch/lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", beside.display());
    if target("OS") == "linux" && target("ARCH") == "x86_64" {
        // Makes our definition of this function visible to the MKL in libtorch; see
        // src/torch/process.cpp.
        println!("cargo:rustc-link-arg=-Wl,--export-dynamic-symbol=mkl_serv_intel_cpu_true");
    }
}

/// Adds the commit to the output of `--version` in release builds of a checkout. In other builds,
/// each commit would recompile the library to no one's benefit.
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
    // Each commit and each checkout adds a line to HEAD's log.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).map(|log| root.join(log));
    if let Some(log) = log.filter(|log| log.exists()) {
        println!("cargo:rerun-if-changed={}", log.display());
    }
}

/// Writes the files that src/inference/files.rs and src/explain/lens.rs include, which embed the
/// human-like network, and the network that nets/default names with its lens, if they exist. Also
/// sets the default network's name.
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
    if let Some(stem) = main.as_ref().and_then(|file| file.file_stem()?.to_str()) {
        println!("cargo:rustc-env=TESSERA_DEFAULT_NETWORK={stem}");
    }
    let human = Some(nets.join("tessera-human.pt")).filter(|file| file.is_file());
    let lens = main.as_ref().map(|file| file.with_extension("lens.json"));
    let lens = lens.filter(|file| file.is_file());
    if human.is_none() || lens.is_none() {
        // Rerun if the file appears later.
        println!("cargo:rerun-if-changed={}", nets.display());
    }
    let embedded = [
        ("embedded.rs", main),
        ("embedded_human.rs", human),
        ("embedded_lens.rs", lens),
    ];
    for (name, file) in embedded {
        let embedded = file.map_or("None".to_owned(), |file| {
            println!("cargo:rerun-if-changed={}", file.display());
            format!("Some(include_bytes!({file:?}) as &[u8])")
        });
        fs::write(out_dir().join(name), embedded).expect("OUT_DIR can be written");
    }
}

/// Writes a file that src/serve/page.rs includes: the names and contents of the files that
/// tools/setup has fetched by npm into these folders of `home`, if it has.
fn embed_packages(output: &str, home: &Path, folders: &[&Path]) {
    let stamp = home.join("installed.json");
    // This also reruns the script if the packages are fetched later. tools/setup makes the folder in
    // any case, because cargo would compile everything again at each start while the path is missing.
    let watched = if stamp.is_file() { &stamp } else { home };
    println!("cargo:rerun-if-changed={}", watched.display());
    let mut files = Vec::new();
    if stamp.is_file() {
        for folder in folders {
            let entries = fs::read_dir(folder).expect("the packages' folder can be read");
            files.extend(entries.map(|entry| entry.expect("it can be read").path()));
        }
    }
    files.retain(|file| {
        file.extension()
            .is_some_and(|end| end == "js" || end == "css" || end == "wasm")
    });
    files.sort();
    let files = files.iter().map(|file| {
        let name = file.strip_prefix(home).expect("it lies there");
        let name = name.to_str().expect("plain names").replace('\\', "/");
        format!("({name:?}, include_bytes!({file:?})),\n")
    });
    let embedded = format!("&[{}]", files.collect::<String>());
    fs::write(out_dir().join(output), embedded).expect("OUT_DIR can be written");
}
