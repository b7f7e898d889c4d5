//! Sets up libtorch once per process and detects the hardware.

use super::shim::{self, take_text};
use super::{fused, gpu};
use sha2::{Digest, Sha256};
use std::ptr;
use std::sync::LazyLock;
use tch::{Cuda, Device, Kind, Tensor};

/// The only libtorch release that this program supports.
pub const LIBTORCH_VERSION: &str = "2.11.0";

/// The hardware and the libraries that evaluate networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Release of the libtorch in use, such as `2.11.0`. The required release is
    /// [`LIBTORCH_VERSION`]. Empty if libtorch does not report its release.
    pub libtorch: String,
    /// The processor's features in alphabetical order, by libtorch's names, such as `avx512_bf16`.
    pub cpu_features: Vec<String>,
    /// Whether the processor is fast in bf16. If so, networks on the CPU may use bf16.
    pub cpu_bf16: bool,
    /// Whether the dense layers of Chessformers multiply in int8. Another format is used if it is
    /// requested or turns out to be faster.
    pub cpu_int8: bool,
    /// Whether the MKL inside libtorch has called the function with which we enable its fast
    /// kernels on non-Intel processors. This happens only on x86-64 Linux.
    pub mkl_fast_kernels: bool,
    /// Whether freed memory is kept for the next evaluation. This works only with glibc.
    pub memory_kept: bool,
    /// The state of CUDA.
    pub cuda: CudaStatus,
    /// Number of threads that this process may run concurrently.
    pub threads: usize,
}

/// The state of CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CudaStatus {
    /// libtorch's CUDA library is missing or cannot be loaded. The field states the reason.
    NotLoaded(String),
    /// The library is loaded, but no device is available, because the driver is missing or too old.
    NoDevice,
    /// This many devices are available. The first is `cuda:0`.
    Devices(usize),
}

/// Inspects the machine, after setting up the process for evaluating networks.
pub fn environment() -> Environment {
    let process = prepare();
    // MKL calls the function `mkl_serv_intel_cpu_true` on first use.
    let square = Tensor::ones([8, 8], (Kind::Float, Device::Cpu));
    let _ = square.matmul(&square);
    Environment {
        libtorch: version(&text(shim::tessera_torch_configuration)),
        cpu_bf16: process.cpu_bf16,
        cpu_int8: fused::int8().is_some_and(|int8| int8.is_preferred),
        cpu_features: process.cpu_features.clone(),
        mkl_fast_kernels: shim::tessera_mkl_asked(),
        memory_kept: process.memory_kept,
        cuda: cuda_status(),
        threads: threads(),
    }
}

/// Returns the number of threads that affinity and control groups allow this process to run.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Environment variables that disable instruction sets in libtorch's libraries.
const MASKS: [&str; 3] = [
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
];

/// Returns a key for everything that affects the speed and the results of networks on a device: the
/// name of the processor, or of the GPU with its driver, and a hash of the program, of the
/// processor's features, and of the settings that disable features.
pub(crate) fn machine(device: Device) -> String {
    let name = match device {
        Device::Cuda(number) => gpu::name(number),
        _ => text(shim::tessera_cpu_name),
    };
    let commit = option_env!("TESSERA_COMMIT").unwrap_or_default();
    let mut words: Vec<String> = [env!("CARGO_PKG_VERSION"), commit, LIBTORCH_VERSION]
        .map(str::to_owned)
        .into();
    words.extend_from_slice(&prepare().cpu_features);
    words.extend(MASKS.map(|mask| format!("{mask}={:?}", std::env::var_os(mask))));
    let hash = format!("{:x}", Sha256::digest(words.join("\n")));
    format!("{name}, {}", &hash[..16])
}

/// The result of [`prepare`].
pub(crate) struct Process {
    pub(super) cpu_features: Vec<String>,
    pub(crate) cpu_bf16: bool,
    memory_kept: bool,
    cuda: Result<(), String>,
}

/// Sets up the process. This must precede any other use of libtorch, which would otherwise disable
/// CUDA permanently. Only the first call has a cost.
pub(crate) fn prepare() -> &'static Process {
    static PROCESS: LazyLock<Process> = LazyLock::new(|| {
        let cuda = load_cuda();
        // SAFETY: the call has no preconditions, and the returned string is owned here.
        let failure = unsafe { take_text(shim::tessera_replace_kernels()) };
        if let Some(failure) = failure {
            tracing::warn!("libtorch keeps its slower kernels: {failure}");
        }
        let mut cpu_features: Vec<String> = text(shim::tessera_cpu_features)
            .lines()
            .map(str::to_owned)
            .collect();
        cpu_features.sort_unstable();
        Process {
            cpu_bf16: cpu_features
                .iter()
                .any(|feature| BF16_FEATURES.contains(&feature.as_str())),
            cpu_features,
            memory_kept: shim::tessera_keep_memory(),
            cuda,
        }
    });
    &PROCESS
}

/// Features that make bf16 faster than f32.
const BF16_FEATURES: [&str; 2] = ["avx512_bf16", "amx_bf16"];

/// Returns the state of CUDA. The process must have been set up.
pub(crate) fn cuda_status() -> CudaStatus {
    if let Err(reason) = &prepare().cuda {
        return CudaStatus::NotLoaded(reason.clone());
    }
    match usize::try_from(Cuda::device_count()) {
        Ok(devices) if devices > 0 && Cuda::is_available() => CudaStatus::Devices(devices),
        _ => CudaStatus::NoDevice,
    }
}

/// Loads libtorch's CUDA library. The program is not linked to the library, so the same binary also
/// runs without CUDA.
fn load_cuda() -> Result<(), String> {
    let name = libloading::library_filename("torch_cuda");
    // SAFETY: this runs the initialisers of libtorch's own library, which would run at start-up if
    // the program were linked to it.
    #[cfg(unix)]
    let library = unsafe {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL)
    };
    // SAFETY: this runs the same initialisers as on Unix.
    #[cfg(windows)]
    let library = unsafe { libloading::os::windows::Library::new(name) };
    // Keep the library loaded for the lifetime of the process.
    library
        .map(std::mem::forget)
        .map_err(|error| match std::error::Error::source(&error) {
            Some(reason) => reason.to_string(),
            None => error.to_string(),
        })
}

/// Returns the release that libtorch's build description states.
fn version(configuration: &str) -> String {
    configuration
        .split_once("TORCH_VERSION=")
        .map_or("", |(_, rest)| rest)
        .split(',')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Calls a function of the shim that should not fail, and returns its string. The string is empty
/// if the function fails.
fn text(
    function: unsafe extern "C" fn(*mut *mut std::ffi::c_char) -> *mut std::ffi::c_char,
) -> String {
    let mut out = ptr::null_mut();
    // SAFETY: `out` is valid for the call, and the caller owns both strings afterwards.
    unsafe {
        let error = function(&raw mut out);
        drop(take_text(error));
        take_text(out).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_the_one_the_program_was_built_for() {
        let environment = environment();
        println!("{environment:#?}");
        assert_eq!(environment.libtorch, LIBTORCH_VERSION);
        assert!(environment.threads > 0);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        assert!(environment.mkl_fast_kernels);
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        assert!(environment.memory_kept);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            environment.cpu_bf16,
            std::arch::is_x86_feature_detected!("avx512bf16")
        );
    }
    /// Returns mish and its derivative, in f64.
    fn mish(x: f64) -> (f64, f64) {
        let tanh = x.exp().ln_1p().tanh();
        let sigmoid = 1.0 / (1.0 + (-x).exp());
        (x * tanh, tanh + x * sigmoid * (1.0 - tanh * tanh))
    }

    #[test]
    fn mish_and_its_slope_are_right() {
        prepare();
        let count = 20_000;
        let points = Tensor::linspace(-100, 100, count, (Kind::Double, Device::Cpu));
        let gradient = Tensor::linspace(-2, 2, count, (Kind::Double, Device::Cpu));
        for (kind, tolerance) in [(Kind::Float, 1e-6), (Kind::BFloat16, 0.01)] {
            for turned in [false, true] {
                let shaped = |x: &Tensor| {
                    let x = x.to_kind(kind).view([100, -1]);
                    if turned { x.transpose(0, 1) } else { x }
                };
                let (x, gradient) = (shaped(&points), shaped(&gradient));
                let leaf = x.copy().set_requires_grad(true);
                // The transposed tensor is a view, not a copy.
                let y = if turned {
                    leaf.transpose(0, 1).mish().transpose(0, 1)
                } else {
                    leaf.mish()
                };
                (&y * &gradient).sum(Kind::Float).backward();
                let numbers = |x: &Tensor| -> Vec<f64> {
                    let x = x.detach().to_kind(Kind::Double).contiguous();
                    x.view([-1]).try_into().unwrap()
                };
                let grad = numbers(&leaf.grad());
                for (((x, gradient), y), slope) in numbers(&x)
                    .into_iter()
                    .zip(numbers(&gradient))
                    .zip(numbers(&y))
                    .zip(grad)
                {
                    let expected = mish(x);
                    let close = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs().max(1.0);
                    assert!(close(y, expected.0), "mish({x}): {y}");
                    assert!(close(slope, gradient * expected.1), "slope at {x}: {slope}");
                }
            }
        }
    }

    #[test]
    fn mish_keeps_what_is_no_number() {
        prepare();
        let odd = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -1e30,
            1e30,
            -0.0,
            -95.0,
        ];
        for kind in [Kind::Float, Kind::BFloat16] {
            let out = Tensor::from_slice(&odd).to_kind(kind).mish();
            let out: Vec<f32> = out.to_kind(Kind::Float).try_into().unwrap();
            assert!(out[0].is_nan() && out[1] == f32::INFINITY && out[4] > 0.99e30);
            assert!(
                !out[2].is_finite() && [out[3], out[5], out[6]].iter().all(|x| x.abs() < 1e-6),
                "{out:?}"
            );
        }
    }

    /// Compares our kernel for the norm, and its gradients, in `kind` with libtorch's own
    /// operations in f64.
    #[test]
    fn the_root_mean_square_norm_and_its_gradients_are_right() {
        prepare();
        tch::manual_seed(4);
        let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
        for (rows, width) in [(1, 5), (3, 32), (1300, 100)] {
            let (x, weight) = (random(&[rows, width]), random(&[width]));
            let gradient = random(&[rows, width]);
            let pass = |kind: Kind| -> [Tensor; 3] {
                let cast = |tensor: &Tensor| tensor.to_kind(Kind::BFloat16).to_kind(kind);
                let x = cast(&x).set_requires_grad(true);
                let weight = cast(&weight).set_requires_grad(true);
                let y = x.rms_norm([width], Some(&weight), 1e-6);
                (&y * cast(&gradient)).sum(kind).backward();
                [y.detach(), x.grad(), weight.grad()].map(|found| found.to_kind(Kind::Double))
            };
            let expected = pass(Kind::Double);
            for (kind, tolerance) in [(Kind::Float, 1e-5), (Kind::BFloat16, 0.02)] {
                for (found, expected) in pass(kind).iter().zip(&expected) {
                    let off = (found - expected).abs().max().double_value(&[]);
                    let size = expected.abs().max().double_value(&[]);
                    assert!(off <= tolerance * size, "{rows} × {width}: {off} of {size}");
                }
            }
        }
    }

    #[test]
    fn a_norm_over_what_is_laid_out_otherwise_is_right_too() {
        prepare();
        let x = Tensor::randn([6, 8], (Kind::Float, Device::Cpu)).transpose(0, 1);
        let turned = x.rms_norm([6], None::<&Tensor>, 1e-6);
        let straight = x.contiguous().rms_norm([6], None::<&Tensor>, 1e-6);
        assert_eq!(turned.size(), [8, 6]);
        assert!((turned - straight).abs().max().double_value(&[]) < 1e-6);
    }
}
