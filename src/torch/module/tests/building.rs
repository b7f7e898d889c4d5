//! Builds TorchScript modules for tests.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr;
use tch::Tensor;

unsafe extern "C" {
    fn tessera_module_create(name: *const c_char, out: *mut *mut c_void) -> *mut c_char;
    fn tessera_module_register(
        module: *mut c_void,
        name: *const c_char,
        tensor: *const c_void,
        parameter: bool,
    ) -> *mut c_char;
    fn tessera_module_define(module: *mut c_void, source: *const c_char) -> *mut c_char;
    fn tessera_module_save(module: *const c_void, path: *const c_char) -> *mut c_char;
}

/// A module under construction. Tests never free it.
#[derive(Debug)]
pub struct BuiltModule(pub *mut c_void);

impl BuiltModule {
    /// Creates an empty module.
    pub fn create(name: &str) -> BuiltModule {
        let name = CString::new(name).unwrap();
        let mut module = ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        check(unsafe { tessera_module_create(name.as_ptr(), &raw mut module) }).unwrap();
        BuiltModule(module)
    }

    /// Adds a trainable tensor.
    pub fn register_parameter(&mut self, name: &str, tensor: &Tensor) {
        self.register(name, tensor, true);
    }

    /// Adds a tensor that is not trained.
    pub fn register_buffer(&mut self, name: &str, tensor: &Tensor) {
        self.register(name, tensor, false);
    }

    fn register(&mut self, name: &str, tensor: &Tensor, parameter: bool) {
        let name = CString::new(name).unwrap();
        let tensor = tensor.as_ptr().cast();
        // SAFETY: all pointers are valid, and the module takes its own reference to the tensor.
        let added = unsafe { tessera_module_register(self.0, name.as_ptr(), tensor, parameter) };
        check(added).unwrap();
    }

    /// Compiles methods written in TorchScript, such as `def forward(self, x): return x`.
    pub fn define(&mut self, source: &str) {
        // The parser requires a final newline.
        let source = CString::new(format!("{source}\n")).unwrap();
        // SAFETY: the module is valid, and the string outlives the call.
        check(unsafe { tessera_module_define(self.0, source.as_ptr()) }).unwrap();
    }

    /// Writes the module as a TorchScript file.
    pub fn save(&self, path: &Path) {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the module is valid, and the string outlives the call.
        check(unsafe { tessera_module_save(self.0, path.as_ptr()) }).unwrap();
    }
}

/// Returns the message of an error, which is null on success.
fn check(error: *mut c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the message is a string that ends in a zero.
    let message = unsafe { CStr::from_ptr(error) };
    Err(message.to_string_lossy().into_owned())
}
