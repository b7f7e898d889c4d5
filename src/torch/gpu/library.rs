//! NVIDIA's libraries, which are loaded at run time, so that the same program also runs without
//! them.

use crate::error_report::one_line;
use crate::torch::TorchError;
use libloading::Library;
use std::path::Path;

/// Declares functions of a library, which are loaded together. All of them return 0 on success.
macro_rules! functions {
    ($name:ident { $($function:ident = $symbol:literal($($type:ty),*);)* }) => {
        struct $name {
            $($function: unsafe extern "C" fn($($type),*) -> std::ffi::c_int,)*
        }

        impl $name {
            fn load(library: &std::path::Path) -> Result<$name, $crate::torch::TorchError> {
                use $crate::torch::gpu::library::{failure, open};
                let library = open(library)?;
                Ok($name {
                    // SAFETY: the types are those that NVIDIA documents.
                    $($function: *unsafe { library.get($symbol) }.map_err(failure)?,)*
                })
            }
        }
    };
}

pub(super) use functions;

/// Loads a library, which stays loaded.
pub(super) fn open(library: &Path) -> Result<&'static Library, TorchError> {
    // SAFETY: the initialisers of NVIDIA's libraries have no preconditions.
    let library = unsafe { Library::new(library) };
    library.map(|it| &*Box::leak(Box::new(it))).map_err(failure)
}

/// Converts the error of a library that is missing or lacks a function.
pub(super) fn failure(error: libloading::Error) -> TorchError {
    TorchError::new(&one_line(&error))
}
