//! The encoder kernel, which runs a Chessformer's encoder on a GPU in a single launch.
//!
//! Its CUDA source is in `encoder.cuh`. NVRTC compiles it at run time for the network's sizes and
//! the GPU's architecture, and `driver` loads and launches it. For tests, the same source is compiled
//! as C++ and runs on the CPU, and `mock` takes the driver's place.

mod driver;
mod library;
#[cfg(test)]
#[path = "gpu/tests/mock.rs"]
pub(crate) mod mock;
mod nvrtc;

use super::fused;
use super::module::{TorchError, check};
use super::shim;
pub(crate) use super::shim::Sizes;
use crate::atomic_file;
use driver::{Cuda, Driver, Launch};
use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};
use std::ffi::c_int;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::{fs, io};
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
        // All but the last two are integers.
        let values: [c_int; 14] = bytemuck::cast(*self);
        let integers: Vec<String> = values[..12].iter().map(c_int::to_string).collect();
        let [epsilon, gab_epsilon] = [self.epsilon, self.gab_epsilon];
        format!("{}, {epsilon:e}f, {gab_epsilon:e}f", integers.join(", "))
    }
}

/// An encoder that runs in one kernel. On the CPU, it runs far more slowly than other encoders.
pub(crate) struct Encoder {
    sizes: Sizes,
    /// `None` on the CPU, which emulates the kernel.
    kernel: Option<Launch>,
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
        let (sizes, kernel) = match driver(device)? {
            Some(driver) => match load(&*driver, sizes, folder_of_user().as_deref())? {
                Some((sizes, kernel)) => (sizes, Some(kernel)),
                None => return Ok(None),
            },
            None => (sizes, None),
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
    /// # Errors
    /// [`TorchError`] if the device fails.
    ///
    /// # Panics
    /// Panics if the words have the wrong shape.
    pub fn forward(&self, words: &Tensor) -> Result<Tensor, TorchError> {
        let words = words.contiguous();
        let [boards, width] = words.size()[..] else {
            panic!("words are a matrix, not {:?}", words.size())
        };
        assert!(width == i64::from(self.sizes.words) && words.kind() == Kind::Int64);
        let shape = [boards * 64, i64::from(self.sizes.width)];
        let tokens = Tensor::f_empty(shape, (Kind::Half, words.device()))?;
        let tensors = [&words, &self.matrices, &self.vectors, &tokens];
        match &self.kernel {
            Some(launch) => launch(tensors)?,
            None => emulate(&self.sizes, self.is_reversed, tensors)?,
        }
        Ok(tokens)
    }
}

/// Runs the kernel on the CPU, with the warps and lanes of a block in either order.
fn emulate(sizes: &Sizes, is_reversed: bool, tensors: [&Tensor; 4]) -> Result<(), TorchError> {
    let [words, matrices, vectors, out] = fused::raw(tensors.map(Some));
    // SAFETY: the tensors are valid for the call, and their numbers of elements match the sizes, as
    // `Encoder` has checked.
    check(unsafe { shim::tessera_gpu_emulate(sizes, is_reversed, words, matrices, vectors, out) })
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
    let name = Cuda::new(number).and_then(|gpu| gpu.name());
    name.unwrap_or_else(|_| format!("cuda:{number}"))
}

/// Returns the driver of a device, or `None` for the CPU.
fn driver(device: Device) -> Result<Option<Box<dyn Driver>>, TorchError> {
    #[cfg(test)]
    if let Some(mock) = mock::in_use() {
        return Ok(Some(Box::new(mock)));
    }
    match device {
        Device::Cuda(number) => Ok(Some(Box::new(Cuda::new(number)?))),
        _ => Ok(None),
    }
}

/// Compiles the kernel, or reads it from a cache folder, and loads it on a device. Also returns the
/// sizes for which it was compiled. Returns `None` if the device cannot run it.
fn load(
    driver: &dyn Driver,
    sizes: Sizes,
    folder: Option<&Path>,
) -> Result<Option<(Sizes, Launch)>, TorchError> {
    let limits = driver.limits()?;
    let is_capable = limits.capability >= LEAST_CAPABILITY;
    let fitted = is_capable.then(|| sizes.fitted(limits.of_block)).flatten();
    let Some(sizes) = fitted else {
        return Ok(None);
    };
    let shared = shim::tessera_gpu_shared_memory(&sizes) + RESERVED;
    let source = Source {
        sizes,
        architecture: format!("sm_{}", limits.capability),
        blocks: if 2 * shared <= limits.of_processor {
            2
        } else {
            1
        },
    };
    let kept = folder.map(|folder| source.file(folder));
    if let Some(code) = kept.as_deref().and_then(|file| fs::read(file).ok())
        && let Ok(kernel) = driver.load(&code, &sizes)
    {
        return Ok(Some((sizes, kernel)));
    }
    let code = driver.compile(&source.text(), &source.architecture)?;
    if let Some(file) = &kept
        && let Err(error) = keep(file, &code)
    {
        tracing::debug!("{} cannot be written: {error}", file.display());
    }
    Ok(Some((sizes, driver.load(&code, &sizes)?)))
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

/// Returns the folder of the user's cache for kernels, or `None` in unit tests.
fn folder_of_user() -> Option<PathBuf> {
    let strategy = etcetera::base_strategy::choose_native_strategy().ok()?;
    (!cfg!(test)).then(|| strategy.cache_dir().join("tessera/kernels"))
}

#[cfg(test)]
mod tests;
