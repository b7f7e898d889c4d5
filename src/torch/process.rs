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
}
