//! The blocks without gradients, by weights that are packed once for many calls; in int8
//! where that is asked for and the widths [allow it](fits_int8).

use super::super::shim;
use super::{
    Attention, Dense, Embedding, FeedForward, Policy, dense_inputs, features, outputs, raw,
};
use tch::Tensor;

/// Whether layers with so many inputs can multiply in int8.
pub(crate) fn fits_int8(inputs: &[i64]) -> bool {
    let fits = |&width: &i64| shim::tessera_fused_fits_int8(width);
    inputs.iter().all(fits)
}

impl Attention<'_> {
    /// Its weights as the kernel wants them, u8.
    pub fn pack(&self, int8: bool) -> Tensor {
        let weights = Attention {
            attacks: None,
            ..*self
        };
        let inputs = weights.inputs(None);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [packed] = outputs(|out| unsafe {
            shim::tessera_fused_pack_attention(inputs.as_ptr(), self.heads, int8, out)
        });
        packed
    }

    /// Tokens [B, 64, width] to tokens, by packed weights.
    pub fn infer(&self, x: &Tensor, packed: &Tensor, int8: bool) -> Tensor {
        let inputs = self.inputs(Some(x));
        let Attention { gab, norm, .. } = self;
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [y] = outputs(|out| unsafe {
            shim::tessera_fused_infer_attention(
                inputs.as_ptr(),
                packed.as_ptr().cast(),
                self.heads,
                norm.gain,
                norm.epsilon,
                gab.epsilon,
                int8,
                out,
            )
        });
        y
    }
}

impl FeedForward<'_> {
    /// Its weights as the kernel wants them, u8.
    pub fn pack(&self, int8: bool) -> Tensor {
        let inputs = self.inputs(None);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [packed] = outputs(|out| unsafe {
            shim::tessera_fused_pack_feed_forward(inputs.as_ptr(), int8, out)
        });
        packed
    }

    /// Tokens [B, 64, width] to tokens, by packed weights.
    pub fn infer(&self, x: &Tensor, packed: &Tensor, int8: bool) -> Tensor {
        let inputs = self.inputs(Some(x));
        let (gain, epsilon) = (self.norm.gain, self.norm.epsilon);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [y] = outputs(|out| unsafe {
            shim::tessera_fused_infer_feed_forward(
                inputs.as_ptr(),
                packed.as_ptr().cast(),
                gain,
                epsilon,
                int8,
                out,
            )
        });
        y
    }
}

/// The weights of layers that read the same tokens as the kernel wants them, u8.
pub(crate) fn dense_pack(layers: &[Dense], int8: bool) -> Tensor {
    let inputs = dense_inputs(None, layers);
    let count = layers.len() as i64;
    // SAFETY: a place for tokens and two inputs for each layer, valid for the call.
    let [packed] =
        outputs(|out| unsafe { shim::tessera_fused_pack_dense(inputs.as_ptr(), count, int8, out) });
    packed
}

/// Mish of what each layer makes of the same tokens [B, 64, width], [B, 64, outputs]
/// each, by packed weights.
pub(crate) fn dense_infer<const N: usize>(
    x: &Tensor,
    layers: [Dense; N],
    packed: &Tensor,
    int8: bool,
) -> [Tensor; N] {
    let inputs = dense_inputs(Some(x), &layers);
    // SAFETY: x and two inputs for each layer, valid for the call.
    outputs(|out| unsafe {
        let packed = packed.as_ptr().cast();
        shim::tessera_fused_infer_dense(inputs.as_ptr(), packed, N as i64, int8, out)
    })
}

impl Policy<'_> {
    /// Its weights as the kernel wants them, u8.
    pub fn pack(&self, int8: bool) -> Tensor {
        let inputs = self.inputs(None);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [packed] =
            outputs(|out| unsafe { shim::tessera_fused_pack_policy(inputs.as_ptr(), int8, out) });
        packed
    }

    /// Logits f32 [B, 1858] from tokens [B, 64, width], by packed weights.
    pub fn infer(&self, x: &Tensor, packed: &Tensor, int8: bool) -> Tensor {
        let inputs = self.inputs(Some(x));
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [logits] = outputs(|out| unsafe {
            let packed = packed.as_ptr().cast();
            shim::tessera_fused_infer_policy(inputs.as_ptr(), packed, int8, out)
        });
        logits
    }
}

impl Embedding<'_> {
    /// Its weights as the kernel wants them, u8; never in int8.
    pub fn pack(&self) -> Tensor {
        let inputs = self.inputs(None);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [packed] =
            outputs(|out| unsafe { shim::tessera_fused_pack_embedding(inputs.as_ptr(), out) });
        packed
    }

    /// Tokens as of [`Embedding::forward`], by packed weights.
    pub fn infer(&self, rows: &Tensor, attacks: Option<&Tensor>, packed: &Tensor) -> Tensor {
        let features = features(rows, attacks, self.dense.weight);
        let inputs = self.inputs(Some(&features));
        // SAFETY: as many inputs as the shim reads, valid for the call.
        let [tokens] = outputs(|out| unsafe {
            let packed = packed.as_ptr().cast();
            shim::tessera_fused_infer_embedding(inputs.as_ptr(), packed, out)
        });
        tokens
    }
}

/// The root mean square norm over the last dimension, without a gradient.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f64) -> Tensor {
    let [x, weight] = raw([Some(x), Some(weight)]);
    // SAFETY: the tensors are valid for the call.
    let [y] = outputs(|out| unsafe { shim::tessera_rms_norm(x, weight, epsilon, out) });
    y
}

/// Whether [`convolution`] computes a layer of kernels [outputs, inputs, 3, 3] in these
/// numbers.
pub(crate) fn takes_convolution(layer: Dense) -> bool {
    let [weight, bias] = raw([Some(layer.weight), Some(layer.bias)]);
    // SAFETY: the tensors are valid for the call.
    unsafe { shim::tessera_winograd_takes(weight, bias) }
}

/// The kernels of a layer as [`convolution`] wants them.
pub(crate) fn convolution_kernel(layer: Dense) -> Tensor {
    let [weight] = raw([Some(layer.weight)]);
    // SAFETY: the tensor is valid for the call.
    let [kernel] = outputs(|out| unsafe { shim::tessera_winograd_kernel(weight, out) });
    kernel
}

/// A 3 × 3 convolution that keeps the size of boards f32 [B, inputs, 8, 8], without a
/// gradient.
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
