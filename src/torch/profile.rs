//! Traces of libtorch's activity.

use super::module::{TorchError, check};
use super::shim;
use crate::atomic_file;
use std::ffi::CString;
use std::path::Path;

/// Traces everything that libtorch does on all threads during `work`, and writes a file in Chrome's
/// trace format. The trace contains operators and, on a GPU, launches and kernels, with times in
/// microseconds.
///
/// # Errors
/// [`TorchError`] if another trace is running, or the file cannot be written.
pub fn trace<T>(path: &Path, work: impl FnOnce() -> T) -> Result<T, TorchError> {
    let system = |error: std::io::Error| TorchError::new(&format!("{}: {error}", path.display()));
    let unfinished = atomic_file::unfinished(path).map_err(system)?;
    let name = CString::new(unfinished.path().as_os_str().as_encoded_bytes());
    let name = name.map_err(|error| system(error.into()))?;
    check(shim::tessera_profile_begin())?;
    let result = work();
    // SAFETY: the path ends with a zero byte and outlives the call.
    check(unsafe { shim::tessera_profile_end(name.as_ptr()) })?;
    atomic_file::persist(unfinished, path).map_err(system)?;
    Ok(result)
}
