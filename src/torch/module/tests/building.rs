//! Builds modules for tests.

use super::super::shim::{self, RawTensor};
use super::super::{Module, TorchError, c_string, check, owned};
use std::ffi::c_char;
use std::path::Path;
use std::ptr;
use tch::Tensor;

unsafe extern "C" {
    fn tessera_module_create(name: *const c_char, out: *mut *mut shim::Module) -> *mut c_char;
    fn tessera_module_save(module: *const shim::Module, path: *const c_char) -> *mut c_char;
    fn tessera_module_define(module: *mut shim::Module, source: *const c_char) -> *mut c_char;
    fn tessera_module_register(
        module: *mut shim::Module,
        name: *const c_char,
        tensor: *const RawTensor,
        parameter: bool,
    ) -> *mut c_char;
}

impl Module {
    /// Creates an empty module, to be filled with [`Module::register_parameter`],
    /// [`Module::register_buffer`] and [`Module::define`].
    ///
    /// # Errors
    /// [`TorchError`] if the name is not an identifier.
    pub fn create(name: &str) -> Result<Module, TorchError> {
        let name = c_string(name)?;
        let mut module = ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        check(unsafe { tessera_module_create(name.as_ptr(), &raw mut module) })?;
        owned(module)
    }

    /// Writes the module as a TorchScript file.
    ///
    /// # Errors
    /// [`TorchError`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TorchError> {
        let path = path
            .to_str()
            .ok_or_else(|| TorchError(format!("{} is not UTF-8", path.display())))?;
        let path = c_string(path)?;
        // SAFETY: the module is valid, and the string outlives the call.
        check(unsafe { tessera_module_save(self.0.as_ptr(), path.as_ptr()) })
    }

    /// Compiles methods written in TorchScript, such as
    /// `def forward(self, x): return x`.
    ///
    /// # Errors
    /// [`TorchError`] if the source does not compile.
    pub fn define(&mut self, source: &str) -> Result<(), TorchError> {
        // The parser requires a final newline.
        let source = c_string(&format!("{source}\n"))?;
        // SAFETY: the module is valid, and the string outlives the call.
        check(unsafe { tessera_module_define(self.0.as_ptr(), source.as_ptr()) })
    }

    /// Adds a trainable tensor.
    ///
    /// # Errors
    /// [`TorchError`] if the name is invalid.
    pub fn register_parameter(&mut self, name: &str, tensor: &Tensor) -> Result<(), TorchError> {
        self.register(name, tensor, true)
    }

    /// Adds a non-trainable tensor.
    ///
    /// # Errors
    /// [`TorchError`] if the name is invalid.
    pub fn register_buffer(&mut self, name: &str, tensor: &Tensor) -> Result<(), TorchError> {
        self.register(name, tensor, false)
    }

    fn register(&mut self, name: &str, tensor: &Tensor, parameter: bool) -> Result<(), TorchError> {
        let name = c_string(name)?;
        let tensor = tensor.as_ptr().cast();
        // SAFETY: all three pointers are valid, and the module takes its own reference to the
        // tensor.
        check(unsafe { tessera_module_register(self.0.as_ptr(), name.as_ptr(), tensor, parameter) })
    }
}
