//! NVRTC, the compiler of CUDA kernels. The declarations follow its documentation.

use super::library::{functions, open};
use crate::torch::TorchError;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::{fs, ptr};

/// A pointer that only NVRTC follows.
type Program = usize;

functions!(Nvrtc {
    create = "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char
    );
    compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char);
    log_size = "nvrtcGetProgramLogSize"(Program, *mut usize);
    log = "nvrtcGetProgramLog"(Program, *mut c_char);
    code_size = "nvrtcGetCUBINSize"(Program, *mut usize);
    code = "nvrtcGetCUBIN"(Program, *mut c_char);
    destroy = "nvrtcDestroyProgram"(*mut Program);
});

/// Compiles CUDA source to machine code for an architecture, such as `sm_90`.
///
/// # Errors
/// [`TorchError`] if the library cannot be loaded, or with the compiler's first message.
pub(super) fn compile(
    library: &Path,
    source: &str,
    architecture: &str,
) -> Result<Vec<u8>, TorchError> {
    // NVRTC would search for this library only in the system's folders.
    if let Some(builtins) = library.parent().and_then(|it| find(it, BUILTINS, "")) {
        open(&builtins)?;
    }
    let nvrtc = Nvrtc::load(library)?;
    let architecture = format!("--gpu-architecture={architecture}");
    let text = |text: &str| CString::new(text).expect("no zero bytes");
    let options = [&architecture, "-std=c++17", "-default-device"].map(text);
    let options = options.each_ref().map(|option| option.as_ptr());
    let source = text(source);
    let mut program = 0;
    // SAFETY: all strings outlive the calls, and the program exists until it is destroyed.
    unsafe {
        let (created, source) = (&raw mut program, source.as_ptr());
        let (name, none) = (c"encoder.cu".as_ptr(), ptr::null());
        check((nvrtc.create)(created, source, name, 0, none, none))?;
        let count = options.len() as c_int;
        let found = match (nvrtc.compile)(program, count, options.as_ptr()) {
            0 => read(program, nvrtc.code_size, nvrtc.code),
            _ => read(program, nvrtc.log_size, nvrtc.log).and_then(|log| {
                let log = CStr::from_bytes_until_nul(&log).unwrap_or_default();
                Err(TorchError::new(&log.to_string_lossy()))
            }),
        };
        (nvrtc.destroy)(&raw mut program);
        found
    }
}

/// Reads one of a program's outputs.
///
/// # Safety
/// The program must exist, and the functions must belong to the same output.
unsafe fn read(
    program: Program,
    size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    output: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
) -> Result<Vec<u8>, TorchError> {
    let mut length = 0;
    // SAFETY: the buffer has the length that NVRTC states.
    unsafe {
        check(size(program, &raw mut length))?;
        let mut bytes = vec![0; length];
        check(output(program, bytes.as_mut_ptr().cast()))?;
        Ok(bytes)
    }
}

fn check(code: c_int) -> Result<(), TorchError> {
    match code {
        0 => Ok(()),
        _ => Err(TorchError::new(&format!("NVRTC fails with error {code}"))),
    }
}

const NVRTC: &str = "libnvrtc";
const BUILTINS: &str = "libnvrtc-builtins";

/// Returns the NVRTC that belongs to the CUDA runtime of this process, on Linux.
///
/// # Errors
/// [`TorchError`] if libtorch has not loaded the CUDA runtime.
pub(super) fn of_process() -> Result<PathBuf, TorchError> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    of_maps(&maps).ok_or_else(|| TorchError::new("the CUDA runtime is not loaded"))
}

/// Returns the NVRTC that belongs to the CUDA runtime among the files in a process's memory, given
/// in the format of `/proc/self/maps`.
fn of_maps(maps: &str) -> Option<PathBuf> {
    let mut files = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    files.find_map(|file| of_runtime(Path::new(file)))
}

/// Returns the NVRTC of the same version as a CUDA runtime, or `None` if `runtime` is another file.
/// NVIDIA's wheels put both in one folder in CUDA 13, and in neighbouring folders in CUDA 12. If
/// NVRTC is elsewhere, the system's loader searches for it.
fn of_runtime(runtime: &Path) -> Option<PathBuf> {
    let name = runtime.file_name()?.to_str()?;
    let (_, version) = name.strip_prefix("libcudart")?.split_once(".so.")?;
    let major = version.split('.').next()?;
    let folder = runtime.parent()?;
    let folders = [folder, &folder.join("../../cuda_nvrtc/lib")];
    let found = folders.iter().find_map(|folder| find(folder, NVRTC, major));
    Some(found.unwrap_or_else(|| format!("{NVRTC}.so.{major}").into()))
}

/// Returns a library in a folder by the start of its name and of its version. The name may also
/// contain a hash, as in libtorch's archives.
fn find(folder: &Path, library: &str, version: &str) -> Option<PathBuf> {
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let parts = name.and_then(|name| name.split_once(".so."));
        parts.is_some_and(|(name, found)| {
            name.starts_with(library)
                && name.starts_with(BUILTINS) == (library == BUILTINS)
                // NVIDIA's wheels contain two builds.
                && !name.ends_with(".alt")
                && found.starts_with(version)
        })
    };
    let files = fs::read_dir(folder).ok()?.flatten().map(|file| file.path());
    files.filter(is_wanted).min()
}

#[cfg(test)]
#[path = "tests/nvrtc.rs"]
mod tests;
