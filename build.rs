//! Embeds networks and the page's board, and lets the binaries find libtorch wherever they
//! are started from. `src/native` compiles our C++.

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
    embed_board(&root.join(".board"));
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"))
}

fn link(libtorch: Option<&Path>) {
    if target("OS") == "windows" {
        // Windows has no rpath: DLLs are found beside the binary or on PATH.
        return;
    }
    if env::var_os("TESSERA_SANITIZE").is_some() {
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
        // Lets the MKL in libtorch find our answer, see src/torch/process.cpp.
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

/// Writes what src/network/backends/files.rs includes: the bytes of the network that
/// nets/default names, if there is one, and its name.
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
