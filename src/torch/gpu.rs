//! The encoder kernel, which runs a Chessformer's encoder on a GPU in a single launch.
//!
//! Its CUDA source is in `encoder.cuh`. NVRTC compiles it at run time for the network's sizes and
//! the GPU's architecture. For tests, the same source is compiled as C++ and runs on the CPU.

use super::fused;
use super::module::{TorchError, check};
pub(crate) use super::shim::Sizes;
use super::shim::{self, Kernel, take_text};
use crate::atomic_file;
use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};
use std::ffi::{CString, c_int};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::{Path, PathBuf};
use std::{fs, ptr};
use tch::{Device, Kind, Tensor};

/// The kernel's source files, in the order in which they are compiled. The sizes are defined after
/// the first file.
const SOURCES: [&str; 3] = [
    include_str!("gpu/sizes.h"),
    include_str!("gpu/warp.cuh"),
    include_str!("gpu/encoder.cuh"),
];

/// Lowest compute capability, times ten, whose matrix units the kernel can use.
const LEAST_CAPABILITY: c_int = 80;
/// Bytes of shared memory that the system reserves for each block.
const RESERVED: c_int = 1024;

impl Sizes {
    /// Returns whether the kernel's tiles fit these sizes.
    pub fn are_supported(&self) -> bool {
        let multiples = [
            (self.width, 32),
            (self.feed_forward, 32),
            (self.width / self.heads, 16),
            (self.compress, 8),
            (self.hidden, 32),
            (self.generator, 16),
        ];
        multiples
            .iter()
            .all(|(size, multiple)| size % multiple == 0)
            && self.width % self.heads == 0
            && self.width / self.heads <= 128
            && self.generator <= 256
    }

    /// Returns the sizes with as many heads per pass as the shared memory of a block has room for,
    /// or `None` if it has no room for a single head.
    fn fitted(self, shared_memory: c_int) -> Option<Sizes> {
        let passes = (1..=self.heads).filter(|passes| self.heads % passes == 0);
        let mut fitted = passes.map(|passes| Sizes {
            heads_per_pass: self.heads / passes,
            ..self
        });
        fitted.find(|sizes| shim::tessera_gpu_shared_memory(sizes) <= shared_memory)
    }

    /// Returns the numbers of parameters that the kernel reads: in matrices and in vectors.
    fn parameters(&self) -> [usize; 2] {
        let size = |size: c_int| size as usize;
        let [width, wide] = [self.width, self.feed_forward].map(size);
        let [compress, hidden, generator] = [self.compress, self.hidden, self.generator].map(size);
        let vectors = size(self.heads) * generator;
        let gab = compress * width + hidden * 64 * compress + vectors * hidden;
        let layer = gab + 4 * width * width + 2 * wide * width;
        let embedding = width * size(self.features).next_multiple_of(16);
        let biases = compress + 3 * (hidden + vectors) + 9 * width + wide;
        let layers = size(self.layers);
        [
            embedding + generator * 64 * 64 + layers * layer,
            2 * 64 * width + 2 * size(self.heads) + layers * biases,
        ]
    }

    /// Returns the values in the order of their declaration, in C's syntax.
    fn listed(&self) -> String {
        let Sizes {
            words,
            features,
            layers,
            width,
            heads,
            feed_forward,
            compress,
            hidden,
            generator,
            heads_per_pass,
            has_attacks,
            is_centred,
            epsilon,
            gab_epsilon,
        } = self;
        format!(
            "{words}, {features}, {layers}, {width}, {heads}, {feed_forward}, {compress}, {hidden}, \
             {generator}, {heads_per_pass}, {has_attacks}, {is_centred}, {epsilon:e}f, \
             {gab_epsilon:e}f"
        )
    }
}

/// An encoder that runs in one kernel. On the CPU, it runs far more slowly than other encoders.
pub(crate) struct Encoder {
    sizes: Sizes,
    kernel: Option<Loaded>,
    /// f16, concatenated in the order in which the kernel reads them.
    matrices: Tensor,
    /// f32, also concatenated.
    vectors: Tensor,
    /// Whether the CPU runs the warps and lanes of a block in the opposite order.
    is_reversed: bool,
}

// SAFETY: threads only read the tensors, whose reference counts are atomic.
unsafe impl Sync for Encoder {}

impl Debug for Encoder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Encoder({:?})", self.sizes)
    }
}

/// A kernel that is loaded on a device.
struct Loaded(ptr::NonNull<Kernel>);

// SAFETY: the driver's functions may be called from any thread, and launches do not change the
// kernel.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Loads machine code on a device.
    fn new(code: &[u8], sizes: &Sizes, device: c_int) -> Result<Loaded, TorchError> {
        let code = Tensor::f_from_slice(code)?;
        let mut kernel = ptr::null_mut();
        // SAFETY: the tensor holds the code, and the shim writes a kernel to `kernel` unless it
        // fails.
        unsafe {
            let code = code.as_ptr().cast();
            check(shim::tessera_gpu_load(code, sizes, device, &raw mut kernel))?;
        }
        Ok(Loaded(ptr::NonNull::new(kernel).expect("a new kernel")))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `tessera_gpu_load`, and is freed only once.
        unsafe { shim::tessera_gpu_free(self.0.as_ptr()) }
    }
}

impl Encoder {
    /// Prepares an encoder with these parameters on a device. Returns `None` if the device cannot
    /// run the kernel.
    ///
    /// # Errors
    /// [`TorchError`] if the kernel cannot be compiled or loaded.
    ///
    /// # Panics
    /// Panics if the numbers of parameters do not match the sizes.
    pub fn new(
        sizes: Sizes,
        matrices: &Tensor,
        vectors: &Tensor,
        device: Device,
    ) -> Result<Option<Encoder>, TorchError> {
        let given = [matrices, vectors].map(Tensor::numel);
        assert_eq!(given, sizes.parameters(), "{sizes:?}");
        let (sizes, kernel) = match device {
            Device::Cuda(number) => match load(sizes, number as c_int)? {
                Some((sizes, kernel)) => (sizes, Some(kernel)),
                None => return Ok(None),
            },
            _ => (sizes, None),
        };
        Ok(Some(Encoder {
            sizes,
            kernel,
            matrices: matrices.f_to_kind(Kind::Half)?.f_to_device(device)?,
            vectors: vectors.f_to_kind(Kind::Float)?.f_to_device(device)?,
            is_reversed: false,
        }))
    }

    /// Selects the order of warps and lanes on the CPU, and the number of heads per pass.
    #[cfg(test)]
    pub fn run_on_cpu(&mut self, is_reversed: bool, heads_per_pass: c_int) {
        self.is_reversed = is_reversed;
        self.sizes.heads_per_pass = heads_per_pass;
    }

    /// Encodes boards, given by their words i64 [B, words], to tokens f16 [B · 64, width].
    ///
    /// # Panics
    /// Panics if the words have the wrong shape or the device fails.
    pub fn forward(&self, words: &Tensor) -> Tensor {
        let words = words.contiguous();
        let [_, width] = words.size()[..] else {
            panic!("words are a matrix, not {:?}", words.size())
        };
        assert!(width == i64::from(self.sizes.words) && words.kind() == Kind::Int64);
        let kernel = self.kernel.as_ref();
        let kernel = kernel.map_or(ptr::null(), |loaded| loaded.0.as_ptr().cast_const());
        let [words, matrices, vectors] =
            fused::raw([Some(&words), Some(&self.matrices), Some(&self.vectors)]);
        // SAFETY: the tensors are valid for the call, and their numbers of elements match the
        // sizes, as `new` and the assertion above have checked.
        let [tokens] = fused::outputs(|out| unsafe {
            let (sizes, is_reversed) = (&self.sizes, self.is_reversed);
            shim::tessera_gpu_encode(kernel, sizes, is_reversed, words, matrices, vectors, out)
        });
        tokens
    }
}

/// Assigns one of a few streams of a device to the calling thread, so that one thread's copies
/// overlap with another thread's kernels.
pub(crate) fn assign_stream(device: Device) -> Result<(), TorchError> {
    match device {
        Device::Cuda(number) => check(shim::tessera_gpu_assign_stream(number as c_int)),
        _ => Ok(()),
    }
}

/// Returns the name of a GPU and the version of its driver, or its number if CUDA does not tell.
pub(super) fn name(number: usize) -> String {
    let mut name = ptr::null_mut();
    // SAFETY: `name` is valid for the call, and the caller owns both strings afterwards.
    unsafe {
        drop(take_text(shim::tessera_gpu_name(
            number as c_int,
            &raw mut name,
        )));
        take_text(name).unwrap_or_else(|| format!("cuda:{number}"))
    }
}

/// Compiles the kernel, or reads it from the user's cache, and loads it on a device. Also returns
/// the sizes for which it was compiled.
fn load(sizes: Sizes, device: c_int) -> Result<Option<(Sizes, Loaded)>, TorchError> {
    let (mut capability, mut of_block, mut of_processor) = (0, 0, 0);
    check(shim::tessera_gpu_limits(
        device,
        &mut capability,
        &mut of_block,
        &mut of_processor,
    ))?;
    if capability < LEAST_CAPABILITY {
        return Ok(None);
    }
    let Some(sizes) = sizes.fitted(of_block) else {
        return Ok(None);
    };
    let shared = shim::tessera_gpu_shared_memory(&sizes) + RESERVED;
    let source = Source {
        sizes,
        architecture: format!("sm_{capability}"),
        blocks: if 2 * shared <= of_processor { 2 } else { 1 },
    };
    let folder = folder_of_user();
    let kept = folder.as_deref().map(|folder| source.file(folder));
    let load = |code: &[u8]| Loaded::new(code, &sizes, device);
    if let Some(code) = kept.as_deref().and_then(|file| fs::read(file).ok())
        && let Ok(kernel) = load(&code)
    {
        return Ok(Some((sizes, kernel)));
    }
    let code = source.compile(None)?;
    if let Some(file) = &kept
        && let Err(error) = keep(file, &code)
    {
        tracing::debug!("{} cannot be written: {error}", file.display());
    }
    Ok(Some((sizes, load(&code)?)))
}

/// The kernel's source for one architecture.
struct Source {
    sizes: Sizes,
    /// The GPU's architecture, such as `sm_90`.
    architecture: String,
    /// Number of blocks that a multiprocessor should run at the same time.
    blocks: usize,
}

impl Source {
    fn text(&self) -> String {
        let [sizes, warp, encoder] = SOURCES;
        let values = self.sizes.listed();
        let blocks = self.blocks;
        format!(
            "{sizes}\n#define TESSERA_BLOCKS {blocks}\nstatic constexpr Sizes sizes = {{{values}}};\n\
             {warp}\n{encoder}"
        )
    }

    /// Compiles the source with NVRTC. `library` is the path of NVRTC, or `None` to load it from
    /// the folder of libtorch's CUDA runtime.
    fn compile(&self, library: Option<&Path>) -> Result<Vec<u8>, TorchError> {
        let text = |text: &str| CString::new(text).expect("no zero bytes");
        let architecture = format!("--gpu-architecture={}", self.architecture);
        let options = [&architecture, "-std=c++17", "-default-device"].map(text);
        let options = options.each_ref().map(|option| option.as_ptr());
        let source = text(&self.text());
        let library = library.map(|path| text(&path.to_string_lossy()));
        let library = library.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        let mut out = ptr::null_mut();
        // SAFETY: all strings outlive the call. The shim writes a new tensor to `out` unless it
        // fails.
        let code = unsafe {
            let (options, count) = (options.as_ptr(), options.len() as c_int);
            let source = source.as_ptr();
            check(shim::tessera_gpu_compile(
                library,
                source,
                options,
                count,
                &raw mut out,
            ))?;
            Tensor::from_ptr(out.cast())
        };
        Ok(Vec::try_from(code)?)
    }

    /// Returns the file of a cache folder for the compiled kernel.
    fn file(&self, folder: &Path) -> PathBuf {
        let key = format!("{}\n{}", self.architecture, self.text());
        folder.join(format!("{:x}.cubin", Sha256::digest(key)))
    }
}

/// Writes a file of the cache.
fn keep(file: &Path, code: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    atomic_file::write(file, code)
}

/// Returns the folder of the user's cache for kernels.
fn folder_of_user() -> Option<PathBuf> {
    let strategy = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(strategy.cache_dir().join("tessera/kernels"))
}

#[cfg(test)]
mod tests;
