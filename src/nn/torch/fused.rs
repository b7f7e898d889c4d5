//! The blocks of an encoder layer as single operators with gradients, for training
//! on a processor: see the C++ in the folder of this name.

use super::shim::tessera_fused_feed_forward;
use super::shim::{RawTensor, take_text, tessera_fused_attention, tessera_fused_available};
use std::ptr;
use tch::{Device, Tensor};

/// Every width must be a multiple of this: AMX multiplies 32 numbers of bf16 at a
/// time.
const MULTIPLE: i64 = 32;

/// Whether tensors like this one, with these widths, have kernels.
pub(crate) fn is_available(like: &Tensor, widths: &[i64]) -> bool {
    like.device() == Device::Cpu
        && widths.iter().all(|width| width % MULTIPLE == 0)
        // SAFETY: the tensor is valid for the call.
        && unsafe { tessera_fused_available(like.as_ptr().cast()) }
}

/// A residual and the norm after it: y = norm(x + gain · f(x)).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormEnd<'a> {
    /// What the block's output is scaled by.
    pub gain: f64,
    /// Added to the variance.
    pub epsilon: f64,
    /// [width].
    pub weight: &'a Tensor,
    /// `[width]`; a norm without does not centre.
    pub bias: Option<&'a Tensor>,
}

/// The attention block with biases that a generator makes of the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'a> {
    /// Heads.
    pub heads: i64,
    /// What the generator is asked for, [B · h, g].
    pub queries_of_bias: &'a Tensor,
    /// [4096, g].
    pub generator: &'a Tensor,
    /// [2 · width, width].
    pub query_key: &'a Tensor,
    /// [width, width].
    pub value: &'a Tensor,
    /// [width, width].
    pub output: &'a Tensor,
    /// `[width]`.
    pub output_bias: &'a Tensor,
    /// Which squares the piece on each square attacks, then from which it is
    /// attacked, as bitboards i64 [B, 2, 64]; and what both are worth to each
    /// head, [h, 2].
    pub attacks: Option<(&'a Tensor, &'a Tensor)>,
    /// The end of the block.
    pub norm: NormEnd<'a>,
}

impl Attention<'_> {
    /// Tokens [B, 64, width] to tokens.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let inputs = raw([
            Some(x),
            Some(self.queries_of_bias),
            Some(self.generator),
            Some(self.query_key),
            Some(self.value),
            Some(self.output),
            Some(self.output_bias),
            Some(self.norm.weight),
            self.norm.bias,
            self.attacks.map(|(attacks, _)| attacks),
            self.attacks.map(|(_, worth)| worth),
        ]);
        let (gain, epsilon) = (self.norm.gain, self.norm.epsilon);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        output(|out| unsafe {
            tessera_fused_attention(inputs.as_ptr(), self.heads, gain, epsilon, out)
        })
    }
}

/// The feed-forward block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedForward<'a> {
    /// [hidden, width].
    pub widen: &'a Tensor,
    /// `[hidden]`.
    pub widen_bias: &'a Tensor,
    /// [width, hidden].
    pub narrow: &'a Tensor,
    /// `[width]`.
    pub narrow_bias: &'a Tensor,
    /// The end of the block.
    pub norm: NormEnd<'a>,
}

impl FeedForward<'_> {
    /// Tokens [B, 64, width] to tokens.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let inputs = raw([
            Some(x),
            Some(self.widen),
            Some(self.widen_bias),
            Some(self.narrow),
            Some(self.narrow_bias),
            Some(self.norm.weight),
            self.norm.bias,
        ]);
        let (gain, epsilon) = (self.norm.gain, self.norm.epsilon);
        // SAFETY: as many inputs as the shim reads, valid for the call.
        output(|out| unsafe { tessera_fused_feed_forward(inputs.as_ptr(), gain, epsilon, out) })
    }
}

fn raw<const N: usize>(inputs: [Option<&Tensor>; N]) -> [*const RawTensor; N] {
    inputs.map(|input| input.map_or(ptr::null(), |tensor| tensor.as_ptr() as _))
}

/// The tensor that the shim makes; like tch, it panics where libtorch throws.
fn output(make: impl FnOnce(*mut *mut RawTensor) -> *mut std::ffi::c_char) -> Tensor {
    let mut out = ptr::null_mut();
    let failure = make(&raw mut out);
    // SAFETY: the text is the shim's; without one the tensor is new and ours.
    unsafe {
        if let Some(reason) = take_text(failure) {
            panic!("a fused operator failed: {reason}");
        }
        Tensor::from_ptr(out.cast())
    }
}
