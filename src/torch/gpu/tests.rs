use super::mock::{MockDriver, Step};
use super::*;
use std::process::Command;

const SIZES: Sizes = Sizes {
    words: 320,
    features: 192,
    layers: 4,
    width: 128,
    heads: 4,
    feed_forward: 128,
    compress: 8,
    hidden: 64,
    generator: 32,
    heads_per_pass: 4,
    has_attacks: 1,
    is_centred: 1,
    epsilon: 1e-6,
    gab_epsilon: 1e-3,
};

#[test]
fn as_many_heads_share_a_pass_as_fit_into_shared_memory() {
    let bytes = |heads_per_pass| {
        shim::tessera_gpu_shared_memory(&Sizes {
            heads_per_pass,
            ..SIZES
        })
    };
    let fitted = |room| SIZES.fitted(room).map(|sizes| sizes.heads_per_pass);
    assert_eq!(fitted(bytes(4)), Some(4));
    assert_eq!(fitted(bytes(4) - 1), Some(2));
    assert_eq!(fitted(bytes(1)), Some(1));
    assert_eq!(fitted(bytes(1) - 1), None);
    // An H100 has room for two blocks at once, and a GPU for games for one block.
    assert!(2 * (bytes(4) + RESERVED) <= 228 << 10);
    assert!(bytes(2) <= 99 << 10);
}

#[test]
fn sizes_that_do_not_fill_the_tiles_are_refused() {
    assert!(SIZES.are_supported());
    let edits: [fn(&mut Sizes); 7] = [
        |sizes| sizes.width = 144,
        |sizes| sizes.feed_forward = 72,
        |sizes| sizes.heads = 16,
        |sizes| sizes.compress = 4,
        |sizes| sizes.heads = 3,
        |sizes| sizes.hidden = 48,
        |sizes| sizes.generator = 24,
    ];
    for edit in edits {
        let mut sizes = SIZES;
        edit(&mut sizes);
        assert!(!sizes.are_supported(), "{sizes:?}");
    }
}

/// Returns the path of NVRTC in the Python environment. If it is missing, the test is skipped,
/// unless no test may be skipped.
fn nvrtc() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    let find = "import nvidia.cu13; print(next(iter(nvidia.cu13.__path__)))";
    let found = Command::new(python).args(["-c", find]).output().ok();
    let folder = found.and_then(|found| String::from_utf8(found.stdout).ok());
    let library = folder.map(|folder| Path::new(folder.trim()).join("lib/libnvrtc.so.13"));
    let library = library.filter(|library| library.is_file());
    if library.is_none() {
        eprintln!("skipped: NVRTC is missing (tools/venv --tests installs it)");
        let is_required = std::env::var_os("TESSERA_REQUIRE_ALL").is_some();
        assert!(
            !is_required || cfg!(not(target_os = "linux")),
            "NVRTC is missing"
        );
    }
    library
}

/// Without a GPU, this is all that can be tested of the code that runs only on a GPU. The kernel's
/// arithmetic is tested on the CPU.
#[test]
#[ignore = "needs NVRTC: runs in tools/test --all"]
fn the_kernel_compiles_for_every_architecture() {
    let Some(library) = nvrtc() else {
        return;
    };
    let cases = [
        ("sm_80", 2, 1),
        ("sm_89", 2, 1),
        ("sm_90", 4, 2),
        ("sm_120", 2, 1),
    ];
    for (architecture, heads_per_pass, blocks) in cases {
        let source = Source {
            sizes: Sizes {
                heads_per_pass,
                ..SIZES
            },
            architecture: architecture.to_owned(),
            blocks,
        };
        let code = nvrtc::compile(&library, &source.text(), architecture).unwrap();
        assert!(code.starts_with(b"\x7fELF"), "{architecture}");
    }
    let error = nvrtc::compile(&library, "", "sm_1")
        .unwrap_err()
        .to_string();
    assert!(error.contains("gpu-architecture"), "{error}");
    let error = nvrtc::compile(&library, "\nint 0;", "sm_90")
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("encoder.cu(2): error: "), "{error}");
}

#[test]
fn compiled_kernels_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("kernels");
    let source = Source {
        sizes: SIZES,
        architecture: "sm_90".to_owned(),
        blocks: 2,
    };
    let code = b"machine code";
    keep(&source.file(&folder), code).unwrap();
    assert_eq!(fs::read(source.file(&folder)).unwrap(), code);
    let other = Source {
        blocks: 1,
        ..source
    };
    assert!(!other.file(&folder).exists());
}

const FIRST: [Step; 3] = [Step::Limits, Step::Compile, Step::Load];
const LATER: [Step; 2] = [Step::Limits, Step::Load];

/// Loads the kernel and returns the calls of the driver that it took.
fn steps(driver: &MockDriver, folder: Option<&Path>) -> Vec<Step> {
    assert!(load(driver, SIZES, folder).unwrap().is_some());
    driver.take_steps()
}

#[test]
fn a_kernel_is_compiled_once_for_each_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("kernels");
    let driver = MockDriver::new(None);
    assert_eq!(steps(&driver, Some(&folder)), FIRST);
    assert_eq!(steps(&driver, Some(&folder)), LATER);
    assert_eq!(steps(&driver, None), FIRST);
    // A damaged file is replaced.
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    fs::write(file.path(), "damaged").unwrap();
    let again = [&LATER[..], &FIRST[1..]].concat();
    assert_eq!(steps(&driver, Some(&folder)), again);
    assert_eq!(steps(&driver, Some(&folder)), LATER);
    let mut other = MockDriver::new(None);
    other.limits.capability = 80;
    assert_eq!(steps(&other, Some(&folder)), FIRST);
    // Nothing can be written below a file.
    assert_eq!(steps(&driver, Some(&file.path())), FIRST);
}

#[test]
fn the_kernel_is_fitted_to_the_gpu() {
    let mut driver = MockDriver::new(None);
    let heads = |driver: &MockDriver| {
        let loaded = load(driver, SIZES, None).unwrap();
        loaded.map(|(sizes, _)| sizes.heads_per_pass)
    };
    assert_eq!(heads(&driver), Some(4));
    driver.limits.of_block = 99 << 10;
    assert_eq!(heads(&driver), Some(2));
    driver.take_steps();
    driver.limits.of_block = 48 << 10;
    assert_eq!(heads(&driver), None);
    driver = MockDriver::new(None);
    driver.limits.capability = 75;
    assert_eq!(heads(&driver), None);
    assert_eq!(driver.take_steps(), [Step::Limits]);
}

#[test]
fn the_first_step_that_fails_is_the_last() {
    for (count, step) in FIRST.into_iter().enumerate() {
        let driver = MockDriver::new(Some((step, 0)));
        let error = load(&driver, SIZES, None).err().unwrap().to_string();
        assert_eq!(error, format!("CUDA: {step:?} fails"));
        assert_eq!(driver.take_steps(), FIRST[..=count]);
    }
}
