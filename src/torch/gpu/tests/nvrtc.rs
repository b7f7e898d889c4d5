use super::*;

/// Creates empty files below a folder.
#[cfg(unix)]
fn write(folder: &Path, files: &[&str]) {
    for file in files {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
}

/// Returns the NVRTC that a process with this CUDA runtime finds, and NVRTC's own library.
#[cfg(unix)]
fn found(files: &[&str], runtime: &str) -> [Option<String>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    write(&root, files);
    let runtime = root.join(runtime);
    let maps = format!(
        "7f00-7f10 r-xp 00000000 fe:00 1234                       /usr/lib/libc.so.6\n\
         7f10-7f20 rw-p 00000000 00:00 0 \n\
         7f20-7f30 r--p 00000000 fe:00 5678                       {}\n",
        runtime.display()
    );
    let nvrtc = of_maps(&maps).unwrap();
    let builtins = nvrtc.parent().and_then(|folder| find(folder, BUILTINS, ""));
    [Some(nvrtc), builtins].map(|path| {
        let path = path?.canonicalize().ok()?;
        Some(path.strip_prefix(&root).unwrap().display().to_string())
    })
}

#[cfg(unix)]
#[test]
fn the_compiler_of_the_loaded_runtime_is_found() {
    let some = |path: &str| Some(path.to_owned());
    // NVIDIA's wheels for CUDA 13.
    let folder = "site-packages/nvidia/cu13/lib";
    let names = [
        "libcudart.so.13",
        "libnvrtc.so.13",
        "libnvrtc.alt.so.13",
        "libnvrtc-builtins.so.13.0",
        "libnvrtc-builtins.alt.so.13.0",
    ];
    let files = names.map(|name| format!("{folder}/{name}"));
    let files = files.each_ref().map(String::as_str);
    assert_eq!(found(&files, files[0]), [some(files[1]), some(files[3])]);
    // NVIDIA's wheels for CUDA 12.
    let files = [
        "nvidia/cuda_runtime/lib/libcudart.so.12",
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8",
    ];
    assert_eq!(found(&files, files[0]), [some(files[1]), some(files[2])]);
    // libtorch's archive.
    let files = [
        "lib/libcudart-a1b2c3d4.so.12",
        "lib/libnvrtc-b1c2d3e4.so.12",
        "lib/libnvrtc-builtins.so.12.6",
        "lib/libnvToolsExt-0011.so.1",
    ];
    assert_eq!(found(&files, files[0]), [some(files[1]), some(files[2])]);
    // A folder with several versions.
    let files = [
        "lib/libcudart.so.13.0.96",
        "lib/libnvrtc.so.12",
        "lib/libnvrtc.so.13",
        "lib/libnvrtc.so.13.0.88",
    ];
    assert_eq!(found(&files, files[0]), [some(files[2]), None]);
}

#[test]
fn the_system_searches_for_a_compiler_that_is_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = |name: &str| of_runtime(&folder.path().join(name));
    assert_eq!(
        elsewhere("libcudart.so.12.8.90"),
        Some("libnvrtc.so.12".into())
    );
    for other in ["libcudart_static.a", "libcublas.so.13", "libcudart.so"] {
        assert_eq!(elsewhere(other), None, "{other}");
    }
    assert_eq!(of_maps("7f10-7f20 rw-p 00000000 00:00 0 [heap]\n"), None);
    let error = compile(&folder.path().join("libnvrtc.so.13"), "", "sm_90");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("libnvrtc.so.13"), "{error}");
}
