//! Traces of libtorch's activity.

use super::module::{TorchError, check};
use super::shim;
use crate::atomic_file;
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A trace of everything that libtorch does on all threads, in Chrome's trace format. It contains
/// operators and, on a GPU, launches and kernels, with times in microseconds.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    unfinished: NamedTempFile,
}

impl Trace {
    /// Starts a trace that [`Trace::finish`] will write to `path`.
    ///
    /// # Errors
    /// [`TorchError`] if another trace is running, or no file can be written there.
    pub fn begin(path: &Path) -> Result<Trace, TorchError> {
        let unfinished = atomic_file::unfinished(path).map_err(|error| failed(path, &error))?;
        check(shim::tessera_profile_begin())?;
        Ok(Trace {
            path: path.to_owned(),
            unfinished,
        })
    }

    /// Ends the trace and writes it.
    ///
    /// # Errors
    /// [`TorchError`] if the file cannot be written.
    pub fn finish(self) -> Result<(), TorchError> {
        let name = CString::new(self.unfinished.path().as_os_str().as_encoded_bytes());
        let name = name.map_err(|error| failed(&self.path, &error.into()))?;
        // SAFETY: the path ends with a zero byte and outlives the call.
        check(unsafe { shim::tessera_profile_end(name.as_ptr()) })?;
        atomic_file::persist(self.unfinished, &self.path)
            .map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> TorchError {
    TorchError::new(&format!("{}: {error}", path.display()))
}
