//! Declarations of our C++ functions, which are defined in the `.cpp` files of this folder.

use std::ffi::{CStr, c_char, c_int, c_void};
use tch::Tensor;
// This import links the C++ code.
use tessera_native as _;

/// `torch::jit::Module`.
#[repr(C)]
pub(super) struct Module {
    _private: [u8; 0],
}

/// `at::Tensor`, to which the pointers of tch's tensors point.
#[repr(C)]
pub(crate) struct RawTensor {
    _private: [u8; 0],
}

/// The sizes of an encoder, as described in `gpu/sizes.h`.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::NoUninit)]
#[repr(C)]
pub(crate) struct Sizes {
    pub words: c_int,
    pub features: c_int,
    pub layers: c_int,
    pub width: c_int,
    pub heads: c_int,
    pub feed_forward: c_int,
    pub compress: c_int,
    pub hidden: c_int,
    pub generator: c_int,
    pub heads_per_pass: c_int,
    pub has_attacks: c_int,
    pub is_centred: c_int,
    pub epsilon: f32,
    pub gab_epsilon: f32,
}

/// Receives a tensor, which the callback then owns, and the tensor's name, which the callback may
/// only read.
type VisitTensor = unsafe extern "C" fn(*mut c_void, *const c_char, *mut RawTensor);

/// A method to trace, with its name, and the names and examples of its arguments.
#[repr(C)]
pub(super) struct Method {
    pub name: *const c_char,
    pub arguments: *const *const c_char,
    pub examples: *const *const RawTensor,
    pub inputs: usize,
    pub outputs: usize,
    pub context: *mut c_void,
}

/// Runs the method of a context on its inputs and writes the new tensors to the outputs. Returns 0
/// on success.
pub(super) type Run =
    unsafe extern "C" fn(*mut c_void, *const *mut RawTensor, *mut *mut RawTensor) -> c_int;

/// Ways to compute a block.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub(crate) enum Way {
    /// Computes the block with gradients.
    Learn,
    /// Packs the block's weights for its kernel.
    Pack,
    /// Computes the block with packed weights.
    Infer,
}

/// The settings of a block other than tensors.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Settings {
    pub heads: i64,
    pub gain: f64,
    pub epsilon: f64,
    pub epsilon_of_bias: f64,
    pub int8: bool,
}

/// A call of a block.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Call {
    pub way: Way,
    pub inputs: *const *const RawTensor,
    pub count: i64,
    pub packed: *const RawTensor,
    pub outputs: i64,
    pub settings: Settings,
}

/// A tensor that the shim reads.
type In = *const RawTensor;
/// Space for one or more tensors that the shim creates.
type Out = *mut *mut RawTensor;
/// An error message for [`take_text`], or null on success.
type Failure = *mut c_char;

unsafe extern "C" {
    fn tessera_free_text(text: *mut c_char);

    pub(super) fn tessera_module_load(
        data: *const c_char,
        size: usize,
        out: *mut *mut Module,
    ) -> Failure;
    pub(super) fn tessera_module_copy(module: *const Module, out: *mut *mut Module) -> Failure;
    pub(super) fn tessera_module_free(module: *mut Module);
    pub(super) fn tessera_module_tensors(
        module: *const Module,
        context: *mut c_void,
        visit: VisitTensor,
    ) -> Failure;
    pub(super) fn tessera_module_freeze(
        module: *mut Module,
        device: c_int,
        scalar_type: c_int,
    ) -> Failure;
    pub(super) fn tessera_module_forward(
        module: *mut Module,
        input: In,
        context: *mut c_void,
        visit: VisitTensor,
    ) -> Failure;

    pub(super) safe fn tessera_profile_begin() -> Failure;
    pub(super) fn tessera_profile_end(path: *const c_char) -> Failure;

    pub(super) fn tessera_script_write(
        names: *const *const c_char,
        tensors: *const In,
        parameters: usize,
        buffers: usize,
        metadata: *const c_char,
        record: *const c_char,
        methods: *const Method,
        method_count: usize,
        run: Run,
        scalar_type: c_int,
        path: *const c_char,
    ) -> Failure;

    pub(super) fn tessera_fused_available(like: In) -> bool;
    pub(super) safe fn tessera_fused_int8(fastest: &mut bool, bf16: &mut bool) -> bool;
    #[cfg(test)]
    pub(super) safe fn tessera_fused_pass_over(sets: usize);
    pub(super) fn tessera_fused_attention(call: *const Call, out: Out) -> Failure;
    pub(super) fn tessera_fused_dense(call: *const Call, out: Out) -> Failure;
    pub(super) fn tessera_fused_inputs(
        rows: In,
        attacks: In,
        width: i64,
        like: In,
        out: Out,
    ) -> Failure;
    pub(super) fn tessera_fused_embedding(call: *const Call, out: Out) -> Failure;
    pub(super) fn tessera_fused_nadam(vectors: *const In, constants: *const f64) -> Failure;
    pub(super) fn tessera_fused_policy(call: *const Call, out: Out) -> Failure;
    pub(super) fn tessera_fused_feed_forward(call: *const Call, out: Out) -> Failure;

    pub(super) safe fn tessera_fused_fits_int8(inputs: i64) -> bool;
    pub(super) fn tessera_takes_cached_attention(query: In) -> bool;
    pub(super) fn tessera_cached_attention(
        query: In,
        keys: In,
        values: In,
        first: In,
        out: Out,
    ) -> Failure;
    pub(super) fn tessera_rms_norm(x: In, weight: In, epsilon: f64, out: Out) -> Failure;
    pub(super) fn tessera_mish(x: In, out: Out) -> Failure;
    pub(super) fn tessera_send(tensor: In, device: c_int, out: Out) -> Failure;
    pub(super) fn tessera_pinned(count: i64, out: Out) -> Failure;
    pub(super) fn tessera_receive(tensor: In, out: Out) -> Failure;
    pub(super) safe fn tessera_gpu_shared_memory(sizes: &Sizes) -> c_int;
    pub(super) fn tessera_gpu_emulate(
        sizes: &Sizes,
        reversed: bool,
        words: In,
        matrices: In,
        vectors: In,
        tokens: In,
    ) -> Failure;
    pub(super) safe fn tessera_gpu_stream(device: c_int, stream: &mut usize) -> Failure;
    pub(super) safe fn tessera_gpu_assign_stream(device: c_int) -> Failure;
    pub(super) fn tessera_rotated_heads(
        joint: In,
        cos: In,
        sin: In,
        heads: i64,
        out: Out,
    ) -> Failure;
    pub(super) fn tessera_takes_time_attention(joint: In, heads: i64) -> bool;
    pub(super) fn tessera_time_attention(joint: In, heads: i64, out: Out) -> Failure;
    pub(super) fn tessera_winograd_takes(weight: In, bias: In) -> bool;
    pub(super) fn tessera_winograd_kernel(weight: In, out: Out) -> Failure;
    pub(super) fn tessera_winograd(
        boards: In,
        weight: In,
        bias: In,
        kernel: In,
        out: Out,
    ) -> Failure;
    pub(super) safe fn tessera_inference_begin() -> *mut c_void;
    pub(super) fn tessera_inference_end(mode: *mut c_void);

    pub(super) safe fn tessera_mkl_asked() -> bool;
    pub(super) safe fn tessera_keep_memory() -> bool;
    pub(super) fn tessera_torch_configuration(out: *mut *mut c_char) -> Failure;
    pub(super) fn tessera_cpu_name(out: *mut *mut c_char) -> Failure;
    pub(super) fn tessera_cpu_features(out: *mut *mut c_char) -> Failure;
}

/// Calls a pass, on behalf of C++, on copies of the tensors at `inputs`, and writes the `count`
/// tensors that it returns to `outputs`; C++ then owns them. Returns 0 on success.
///
/// # Safety
/// There must be `given` live tensors at `inputs`, and room for `count` pointers at `outputs`.
pub(crate) unsafe fn answer(
    (inputs, given): (*const *mut RawTensor, usize),
    (outputs, count): (*mut *mut RawTensor, usize),
    pass: impl FnOnce(&[Tensor]) -> Vec<Tensor>,
) -> c_int {
    let called = std::panic::AssertUnwindSafe(|| {
        // SAFETY: guaranteed by the caller; the clones are owned here.
        let input = |index| unsafe { Tensor::clone_from_ptr((*inputs.add(index)).cast()) };
        pass(&(0..given).map(input).collect::<Vec<_>>())
    });
    let Ok(tensors) = std::panic::catch_unwind(called) else {
        return 1;
    };
    if tensors.len() != count {
        return 1;
    }
    for (index, mut tensor) in tensors.into_iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            *outputs.add(index) = torch_sys::at_shallow_clone(tensor.as_mut_ptr()).cast();
        }
    }
    0
}

/// Takes ownership of a string from the shim. Returns `None` for null.
///
/// # Safety
/// `text` must be null or come from the shim, and must not be used afterwards.
pub(crate) unsafe fn take_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the shim's strings end with a zero byte, and this function is responsible for freeing
    // them.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        tessera_free_text(text);
        Some(copy)
    }
}
