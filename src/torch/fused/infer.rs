//! Operators without gradients, which are used in play.

use super::super::shim;
use super::{Dense, outputs, raw};
use tch::Tensor;

/// Returns whether [`cached_attention`] accepts these queries.
pub(crate) fn takes_cached_attention(query: &Tensor) -> bool {
    let [query] = raw([Some(query)]);
    // SAFETY: the tensor is valid for the call.
    unsafe { shim::tessera_takes_cached_attention(query) }
}

/// Computes the attention, [B, heads, 1, width], of one new token per game. The queries are [B,
/// heads, 1, width], and the keys and values [B, heads, S, width]. In each game, attention starts
/// at column `first`, i64 `[B]`, or covers all columns if `first` is `None`.
///
/// # Panics
/// Panics if the sizes do not fit each other.
pub(crate) fn cached_attention(
    query: &Tensor,
    [keys, values]: [&Tensor; 2],
    first: Option<&Tensor>,
) -> Tensor {
    let [query, keys, values, first] = raw([Some(query), Some(keys), Some(values), first]);
    // SAFETY: the tensors are valid for the call.
    let [learned] =
        outputs(|out| unsafe { shim::tessera_cached_attention(query, keys, values, first, out) });
    learned
}

/// Returns whether [`convolution`] supports this layer, whose kernels are [outputs, inputs, 3, 3].
pub(crate) fn takes_convolution(layer: Dense) -> bool {
    let [weight, bias] = raw([Some(layer.weight), Some(layer.bias)]);
    // SAFETY: the tensors are valid for the call.
    unsafe { shim::tessera_winograd_takes(weight, bias) }
}

/// Transforms a layer's kernels for [`convolution`].
pub(crate) fn convolution_kernel(layer: Dense) -> Tensor {
    let [weight] = raw([Some(layer.weight)]);
    // SAFETY: the tensor is valid for the call.
    let [kernel] = outputs(|out| unsafe { shim::tessera_winograd_kernel(weight, out) });
    kernel
}

/// Computes a 3 × 3 convolution of boards f32 [B, inputs, 8, 8] that keeps their size, without
/// gradients. `kernel` is the result of [`convolution_kernel`].
pub(crate) fn convolution(boards: &Tensor, layer: Dense, kernel: &Tensor) -> Tensor {
    let [boards, weight, bias, kernel] = raw([
        Some(boards),
        Some(layer.weight),
        Some(layer.bias),
        Some(kernel),
    ]);
    // SAFETY: the tensors are valid for the call.
    let [y] = outputs(|out| unsafe { shim::tessera_winograd(boards, weight, bias, kernel, out) });
    y
}
