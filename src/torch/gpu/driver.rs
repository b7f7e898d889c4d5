//! The driver of a GPU: NVIDIA's, or a mock in tests. The declarations follow the documentation of
//! the CUDA driver.

use super::library::functions;
use super::{Sizes, nvrtc};
use crate::torch::TorchError;
use crate::torch::module::check;
use crate::torch::shim;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::LazyLock;
use tch::Tensor;

/// A driver, as far as the encoder kernel needs one.
///
/// # Errors
/// All functions return a [`TorchError`] if a library is missing or the GPU fails.
pub(super) trait Driver {
    fn limits(&self) -> Result<Limits, TorchError>;

    /// Compiles CUDA source to machine code for an architecture, such as `sm_90`.
    fn compile(&self, source: &str, architecture: &str) -> Result<Vec<u8>, TorchError>;

    /// Loads machine code that was compiled for these sizes. It stays loaded as long as the
    /// returned function exists.
    fn load(&self, code: &[u8], sizes: &Sizes) -> Result<Launch, TorchError>;
}

/// A GPU's limits for kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The compute capability, times ten.
    pub capability: c_int,
    /// Bytes of shared memory of a block.
    pub of_block: c_int,
    /// Bytes of shared memory of a multiprocessor.
    pub of_processor: c_int,
}

/// Launches a kernel on words i64 [B, words], matrices, vectors, and space for tokens f16
/// [B · 64, width].
pub(super) type Launch = Box<dyn Fn([&Tensor; 4]) -> Result<(), TorchError> + Send + Sync>;

/// A pointer that only the driver follows.
type Handle = usize;

functions!(Functions {
    init = "cuInit"(c_uint);
    error_name = "cuGetErrorName"(c_int, *mut *const c_char);
    device = "cuDeviceGet"(*mut c_int, c_int);
    attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
    name = "cuDeviceGetName"(*mut c_char, c_int, c_int);
    version = "cuDriverGetVersion"(*mut c_int);
    context = "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
    bind = "cuCtxSetCurrent"(Handle);
    load = "cuModuleLoadData"(*mut Handle, *const c_void);
    unload = "cuModuleUnload"(Handle);
    function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    configure = "cuFuncSetAttribute"(Handle, c_int, c_int);
    launch = "cuLaunchKernel"(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void,
        *mut *mut c_void
    );
});

// Values of the driver's enumerations.
const MAJOR_CAPABILITY: c_int = 75;
const MINOR_CAPABILITY: c_int = 76;
const SHARED_MEMORY_OF_PROCESSOR: c_int = 81;
const SHARED_MEMORY_OF_BLOCK: c_int = 97;
const DYNAMIC_SHARED_MEMORY: c_int = 8;
const SHARED_MEMORY_CARVEOUT: c_int = 9;

/// Number of threads of a block.
const THREADS: c_uint = 256;

impl Functions {
    fn get() -> Result<&'static Functions, TorchError> {
        static FUNCTIONS: LazyLock<Result<Functions, TorchError>> = LazyLock::new(|| {
            let functions = Functions::load(Path::new("libcuda.so.1"))?;
            // SAFETY: the call has no preconditions.
            functions.check(unsafe { (functions.init)(0) })?;
            Ok(functions)
        });
        FUNCTIONS.as_ref().map_err(Clone::clone)
    }

    fn check(&self, code: c_int) -> Result<(), TorchError> {
        if code == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: the driver's names are constants.
        let name = unsafe {
            match (self.error_name)(code, &raw mut name) {
                0 => CStr::from_ptr(name).to_string_lossy(),
                _ => "unknown error".into(),
            }
        };
        Err(TorchError::new(&format!("CUDA: {name}")))
    }

    /// Returns what a function writes to its argument.
    fn written<T: Default>(&self, call: impl FnOnce(*mut T) -> c_int) -> Result<T, TorchError> {
        let mut value = T::default();
        self.check(call(&raw mut value))?;
        Ok(value)
    }
}

/// An NVIDIA GPU.
#[derive(Clone, Copy)]
pub(super) struct Cuda {
    driver: &'static Functions,
    /// The number in libtorch.
    number: c_int,
    device: c_int,
}

impl Cuda {
    pub fn new(number: usize) -> Result<Cuda, TorchError> {
        let (driver, number) = (Functions::get()?, number as c_int);
        Ok(Cuda {
            driver,
            number,
            // SAFETY: the pointer is valid for the call.
            device: driver.written(|out| unsafe { (driver.device)(out, number) })?,
        })
    }

    /// Returns the GPU's name and the latest CUDA version that the driver supports.
    pub fn name(&self) -> Result<String, TorchError> {
        let driver = self.driver;
        let mut name = [0u8; 256];
        let (start, length) = (name.as_mut_ptr().cast(), name.len() as c_int);
        // SAFETY: the buffer has this length, and the pointers are valid for the calls.
        let version = unsafe {
            driver.check((driver.name)(start, length, self.device))?;
            driver.written(|out| (driver.version)(out))?
        };
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(format!("{}, CUDA {version}", name.to_string_lossy()))
    }
}

impl Driver for Cuda {
    fn limits(&self) -> Result<Limits, TorchError> {
        let driver = self.driver;
        let read = |attribute| {
            // SAFETY: the pointer is valid for the call.
            driver.written(|out| unsafe { (driver.attribute)(out, attribute, self.device) })
        };
        Ok(Limits {
            capability: 10 * read(MAJOR_CAPABILITY)? + read(MINOR_CAPABILITY)?,
            of_block: read(SHARED_MEMORY_OF_BLOCK)?,
            of_processor: read(SHARED_MEMORY_OF_PROCESSOR)?,
        })
    }

    fn compile(&self, source: &str, architecture: &str) -> Result<Vec<u8>, TorchError> {
        nvrtc::compile(&nvrtc::of_process()?, source, architecture)
    }

    fn load(&self, code: &[u8], sizes: &Sizes) -> Result<Launch, TorchError> {
        let driver = self.driver;
        // SAFETY: the code and the pointers are valid for the calls.
        let kernel = unsafe {
            // A thread that has not used the GPU yet has no context. libtorch has the same one.
            let context = driver.written(|out| (driver.context)(out, self.device))?;
            driver.check((driver.bind)(context))?;
            let mut kernel = Loaded {
                cuda: *self,
                context,
                module: driver.written(|out| (driver.load)(out, code.as_ptr().cast()))?,
                function: 0,
                shared: shim::tessera_gpu_shared_memory(sizes),
            };
            let find = |out| (driver.function)(out, kernel.module, c"encode".as_ptr());
            kernel.function = driver.written(find)?;
            let configure = |key, value| (driver.configure)(kernel.function, key, value);
            driver.check(configure(DYNAMIC_SHARED_MEMORY, kernel.shared))?;
            // All that the L1 cache shares with it becomes shared memory, so that two blocks fit.
            driver.check(configure(SHARED_MEMORY_CARVEOUT, 100))?;
            kernel
        };
        Ok(Box::new(move |tensors| kernel.launch(tensors)))
    }
}

/// A kernel on a GPU.
struct Loaded {
    cuda: Cuda,
    context: Handle,
    module: Handle,
    function: Handle,
    /// Bytes of shared memory of a block.
    shared: c_int,
}

impl Loaded {
    fn launch(&self, tensors: [&Tensor; 4]) -> Result<(), TorchError> {
        let driver = self.cuda.driver;
        let boards = tensors[0].size()[0] as c_uint;
        if boards == 0 {
            return Ok(());
        }
        let mut stream = 0;
        check(shim::tessera_gpu_stream(self.cuda.number, &mut stream))?;
        let mut pointers = tensors.map(Tensor::data_ptr);
        let mut arguments = pointers.each_mut().map(|it| ptr::from_mut(it).cast());
        let (arguments, none) = (arguments.as_mut_ptr(), ptr::null_mut());
        let (function, shared) = (self.function, self.shared as c_uint);
        // SAFETY: the kernel has four pointers as arguments, to tensors of the sizes for which it
        // was compiled. libtorch reuses their memory only for later work of the same stream.
        unsafe {
            driver.check((driver.bind)(self.context))?;
            driver.check((driver.launch)(
                function, boards, 1, 1, THREADS, 1, 1, shared, stream, arguments, none,
            ))
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let driver = self.cuda.driver;
        // After an error of the device, nothing can be unloaded.
        // SAFETY: nothing uses the module any more.
        unsafe {
            (driver.bind)(self.context);
            (driver.unload)(self.module);
        }
    }
}
