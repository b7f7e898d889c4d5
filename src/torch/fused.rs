//! The blocks of a network as single operators on the CPU, implemented in C++ in the folder
//! `fused`. A [`Block`] trains with `forward` and plays with packed weights.

mod elementary;
mod infer;

pub(crate) use elementary::{mish, rms_norm};
pub(crate) use infer::{
    cached_attention, convolution, convolution_kernel, takes_cached_attention, takes_convolution,
};

use super::module::ComputeType;
use super::shim::{self, Call, RawTensor, Settings, Way, take_text};
use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use tch::{Device, Kind, Tensor};

/// Every width must be a multiple of this number, because AMX multiplies 32 bf16 elements at a
/// time.
pub(crate) const MULTIPLE: i64 = 32;

/// Returns whether kernels exist for the dtype and device of this tensor and for these widths.
pub(crate) fn is_available(like: &Tensor, widths: &[i64]) -> bool {
    !is_as_on_a_gpu(like)
        && widths.iter().all(|width| width % MULTIPLE == 0)
        // SAFETY: the tensor is valid for the call.
        && unsafe { shim::tessera_fused_available(like.as_ptr().cast()) }
}

/// Returns whether layers with these input widths can multiply in int8.
pub(crate) fn fits_int8(inputs: &[i64]) -> bool {
    let fits = |&width: &i64| shim::tessera_fused_fits_int8(width);
    inputs.iter().all(fits)
}

/// Splits a joint projection [B, T, 3 · heads · head width] into queries, keys and values [B,
/// heads, T, head width], on any device. Rotates queries and keys by angles that are given by their
/// cosines and sines, [B or 1, 1, T, head width / 2]. Gradients flow through the projection.
///
/// # Panics
/// Panics if the sizes do not fit each other.
pub(crate) fn rotated_heads(joint: &Tensor, heads: i64, [cos, sin]: [&Tensor; 2]) -> [Tensor; 3] {
    let [joint, cos, sin] = raw([Some(joint), Some(cos), Some(sin)]);
    // SAFETY: the tensors are valid for the call, and `out` has space for three tensors.
    outputs(|out| unsafe { shim::tessera_rotated_heads(joint, cos, sin, heads, out) })
}

/// Returns whether [`time_attention`] accepts this projection.
pub(crate) fn takes_time_attention(joint: &Tensor, heads: i64) -> bool {
    let [raw_joint] = raw([Some(joint)]);
    // SAFETY: the tensor is valid for the call.
    !is_as_on_a_gpu(joint) && unsafe { shim::tessera_takes_time_attention(raw_joint, heads) }
}

/// Computes the attention of each square to the same square on all boards, [B, T, 64, heads · head
/// width]. `joint` is the joint projection to queries, keys and values, [B, T, 64, 3 · heads · head
/// width]. Boards are in the view of the side to move, so those at odd plies are flipped
/// vertically. Gradients flow through the projection.
///
/// # Panics
/// Panics if the projection [is not accepted](takes_time_attention).
pub(crate) fn time_attention(joint: &Tensor, heads: i64) -> Tensor {
    let [joint] = raw([Some(joint)]);
    // SAFETY: the tensor is valid for the call.
    let [learned] = outputs(|out| unsafe { shim::tessera_time_attention(joint, heads, out) });
    learned
}

/// The int8 kernels of this processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int8 {
    /// Whether int8 is expected to be the fastest format.
    pub is_preferred: bool,
    /// The dtype of the rest of the network.
    pub dtype: ComputeType,
}

/// Returns this processor's int8 kernels for dense layers, or `None` if it has none.
pub(crate) fn int8() -> Option<Int8> {
    let (mut is_preferred, mut is_bf16) = (false, false);
    let has_kernels = shim::tessera_fused_int8(&mut is_preferred, &mut is_bf16);
    has_kernels.then_some(Int8 {
        is_preferred,
        dtype: ComputeType {
            kind: if is_bf16 { Kind::BFloat16 } else { Kind::Float },
            int8: true,
        },
    })
}

/// At least the number of instruction sets for which any processor has kernels.
#[cfg(test)]
pub(crate) const ALL_SETS: usize = 9;

/// Whether [`compute_as_on_a_gpu`] was called.
static AS_ON_A_GPU: AtomicBool = AtomicBool::new(false);

/// Makes the process train with the operators of a GPU instead of the kernels for the CPU.
pub fn compute_as_on_a_gpu() {
    AS_ON_A_GPU.store(true, Ordering::Relaxed);
}

/// Returns whether this tensor is on a GPU, or is [treated](compute_as_on_a_gpu) as if it were.
pub(crate) fn is_as_on_a_gpu(tensor: &Tensor) -> bool {
    tensor.device() != Device::Cpu || AS_ON_A_GPU.load(Ordering::Relaxed)
}

/// Runs `work` with the given number of the fastest instruction sets disabled. From fastest to
/// slowest, the sets are AMX, AVX-512 with bf16, AVX-512 without bf16, and AVX2.
#[cfg(test)]
pub(crate) fn without_fastest<R>(sets: usize, work: impl FnOnce() -> R) -> R {
    shim::tessera_fused_pass_over(sets);
    let result = work();
    shim::tessera_fused_pass_over(0);
    result
}

/// The operator of a block, as declared in operator.h.
pub(crate) type Compute = unsafe extern "C" fn(*const Call, *mut *mut RawTensor) -> *mut c_char;

/// A block of a network that one operator computes. Without gradients, it uses weights that are
/// packed once for many calls. They are packed in int8 if this is requested and the widths [allow
/// it](fits_int8).
pub(crate) trait Block {
    /// The function that computes such blocks.
    const COMPUTE: Compute;

    /// Returns the block's tensors in the order of the C++ code: tokens, if any, then weights. A
    /// null pointer marks an absent tensor.
    fn inputs(&self, x: Option<&Tensor>) -> Vec<*const RawTensor>;

    /// Returns the block's settings other than tensors.
    fn settings(&self) -> Settings {
        Settings::default()
    }

    /// Maps tokens [B, 64, width] to tokens. Gradients flow through the block.
    ///
    /// # Panics
    /// Panics if the sizes do not fit each other.
    fn forward(&self, x: &Tensor) -> Tensor {
        let [y] = compute(self, Way::Learn, Some(x), None, false);
        y
    }

    /// Packs the block's weights for its kernel, as u8.
    fn pack(&self, int8: bool) -> Tensor {
        let [packed] = compute(self, Way::Pack, None, None, int8);
        packed
    }

    /// Computes the same as [`Block::forward`], with packed weights and without gradients.
    fn infer(&self, x: &Tensor, packed: &Tensor, int8: bool) -> Tensor {
        let [y] = compute(self, Way::Infer, Some(x), Some(packed), int8);
        y
    }
}

/// Returns the `N` tensors that a block computes.
fn compute<B: Block + ?Sized, const N: usize>(
    block: &B,
    way: Way,
    x: Option<&Tensor>,
    packed: Option<&Tensor>,
    int8: bool,
) -> [Tensor; N] {
    let inputs = block.inputs(x);
    let [packed] = raw([packed]);
    let call = Call {
        way,
        inputs: inputs.as_ptr(),
        count: inputs.len() as i64,
        packed,
        outputs: N as i64,
        settings: Settings {
            int8,
            ..block.settings()
        },
    };
    // SAFETY: the call has the stated number of inputs and space for the stated number of outputs.
    outputs(|out| unsafe { B::COMPUTE(&raw const call, out) })
}

/// A residual connection and the norm after it: y = norm(x + gain · f(x)).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormEnd<'a> {
    /// Scale of the block's output.
    pub gain: f64,
    /// The constant that is added to the variance.
    pub epsilon: f64,
    /// [width].
    pub weight: &'a Tensor,
    /// `[width]`. Without a bias, the norm does not subtract the mean.
    pub bias: Option<&'a Tensor>,
}

impl NormEnd<'_> {
    fn settings(&self) -> Settings {
        Settings {
            gain: self.gain,
            epsilon: self.epsilon,
            ..Settings::default()
        }
    }
}

/// The layers that generate a layer's attention biases from the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gab<'a> {
    /// [compress, width].
    pub squares: &'a Tensor,
    /// [hidden, 64 · compress].
    pub summary: Dense<'a>,
    /// Weight and bias, `[hidden]`.
    pub summary_norm: (&'a Tensor, &'a Tensor),
    /// [h · g, hidden].
    pub heads: Dense<'a>,
    /// Weight and bias, [h · g].
    pub heads_norm: (&'a Tensor, &'a Tensor),
    /// The constant that is added to the variances of both norms.
    pub epsilon: f64,
    /// [4096, g].
    pub generator: &'a Tensor,
}

/// A dense layer: weight [outputs, inputs] and bias `[outputs]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense<'a> {
    pub weight: &'a Tensor,
    pub bias: &'a Tensor,
}

/// The attention block with board-dependent biases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'a> {
    /// Number of heads.
    pub heads: i64,
    /// [2 · width, width].
    pub query_key: &'a Tensor,
    /// [width, width].
    pub value: &'a Tensor,
    /// [width, width].
    pub output: Dense<'a>,
    /// The first tensor, bitboards i64 [B, 2, 64], contains for each square the squares that its
    /// piece attacks and the squares whose pieces attack it. The second tensor contains each head's
    /// two attack weights, [h, 2].
    pub attacks: Option<(&'a Tensor, &'a Tensor)>,
    /// The bias generator.
    pub gab: Gab<'a>,
    /// The residual and norm at the end of the block.
    pub norm: NormEnd<'a>,
}

impl Block for Attention<'_> {
    const COMPUTE: Compute = shim::tessera_fused_attention;

    fn inputs(&self, x: Option<&Tensor>) -> Vec<*const RawTensor> {
        let Attention { gab, norm, .. } = self;
        // Weights can be packed without boards, and then attacks are absent.
        let attacks = self.attacks.filter(|_| x.is_some());
        let inputs = [
            x,
            Some(self.query_key),
            Some(self.value),
            Some(self.output.weight),
            Some(self.output.bias),
            Some(norm.weight),
            Some(gab.squares),
            Some(gab.summary.weight),
            Some(gab.summary.bias),
            Some(gab.summary_norm.0),
            Some(gab.summary_norm.1),
            Some(gab.heads.weight),
            Some(gab.heads.bias),
            Some(gab.heads_norm.0),
            Some(gab.heads_norm.1),
            Some(gab.generator),
            norm.bias,
            attacks.map(|(attacks, _)| attacks),
            attacks.map(|(_, worth)| worth),
        ];
        raw(inputs).into()
    }

    fn settings(&self) -> Settings {
        Settings {
            heads: self.heads,
            epsilon_of_bias: self.gab.epsilon,
            ..self.norm.settings()
        }
    }
}

/// The feed-forward block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedForward<'a> {
    /// [hidden, width].
    pub widen: Dense<'a>,
    /// [width, hidden].
    pub narrow: Dense<'a>,
    /// The residual and norm at the end of the block.
    pub norm: NormEnd<'a>,
}

impl Block for FeedForward<'_> {
    const COMPUTE: Compute = shim::tessera_fused_feed_forward;

    fn inputs(&self, x: Option<&Tensor>) -> Vec<*const RawTensor> {
        let inputs = [
            x,
            Some(self.widen.weight),
            Some(self.widen.bias),
            Some(self.narrow.weight),
            Some(self.narrow.bias),
            Some(self.norm.weight),
            self.norm.bias,
        ];
        raw(inputs).into()
    }

    fn settings(&self) -> Settings {
        self.norm.settings()
    }
}

/// Dense layers that share their input tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DenseLayers<'a, const N: usize>(pub [Dense<'a>; N]);

impl<const N: usize> DenseLayers<'_, N> {
    /// Applies each layer and then Mish to tokens [B, 64, width]. Each result is [B, 64, outputs].
    pub fn mish(&self, x: &Tensor) -> [Tensor; N] {
        compute(self, Way::Learn, Some(x), None, false)
    }

    /// Computes the same as [`DenseLayers::mish`], with packed weights and without gradients.
    pub fn infer_mish(&self, x: &Tensor, packed: &Tensor, int8: bool) -> [Tensor; N] {
        compute(self, Way::Infer, Some(x), Some(packed), int8)
    }
}

impl<const N: usize> Block for DenseLayers<'_, N> {
    const COMPUTE: Compute = shim::tessera_fused_dense;

    fn inputs(&self, x: Option<&Tensor>) -> Vec<*const RawTensor> {
        let layers = self.0.iter().flat_map(|layer| [layer.weight, layer.bias]);
        let layers = layers.map(|tensor| tensor.as_ptr() as _);
        raw([x]).into_iter().chain(layers).collect()
    }
}

/// A policy head: move logits from attention between squares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy<'a> {
    /// [width, width].
    pub query: Dense<'a>,
    /// [width, width].
    pub key: Dense<'a>,
    /// [3, width].
    pub promotion: &'a Tensor,
    /// The index of each move's logit among those of 4096 pairs of squares and 192 promotions, i64
    /// [1858].
    pub places: &'a Tensor,
}

/// Maps tokens [B, 64, width] to logits f32 [B, 1858].
impl Block for Policy<'_> {
    const COMPUTE: Compute = shim::tessera_fused_policy;

    fn inputs(&self, x: Option<&Tensor>) -> Vec<*const RawTensor> {
        let inputs = [
            x,
            Some(self.query.weight),
            Some(self.query.bias),
            Some(self.key.weight),
            Some(self.key.bias),
            Some(self.promotion),
            Some(self.places),
        ];
        raw(inputs).into()
    }
}

/// The embedding of features: (features · weightᵀ + bias) · multiply + add. Gradients do not flow
/// to the features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedding<'a> {
    /// [width, features], with zeros for features that pad the number to a multiple of
    /// [`MULTIPLE`].
    pub dense: Dense<'a>,
    /// One row per square, [64, width].
    pub multiply: &'a Tensor,
    /// One row per square, [64, width].
    pub add: &'a Tensor,
}

/// Maps [`features`] to tokens [B, 64, width], never in int8.
impl Block for Embedding<'_> {
    const COMPUTE: Compute = shim::tessera_fused_embedding;

    fn inputs(&self, features: Option<&Tensor>) -> Vec<*const RawTensor> {
        let inputs = [
            features,
            Some(self.dense.weight),
            Some(self.dense.bias),
            Some(self.multiply),
            Some(self.add),
        ];
        raw(inputs).into()
    }
}

/// Computes the inputs [B, 64, inputs] of a dense layer with weights [outputs, inputs], in the
/// dtype of the weights. `rows` are i64 [B, 110 or more], and `attacks` are attack features u8 [B,
/// 64, n]. The inputs consist of Lc0's planes, the attack features, and zeros as padding.
pub(crate) fn features(rows: &Tensor, attacks: Option<&Tensor>, weight: &Tensor) -> Tensor {
    let [rows, attacks, like] = raw([Some(rows), attacks, Some(weight)]);
    let width = weight.size()[1];
    // SAFETY: the tensors are valid for the call.
    let [features] =
        outputs(|out| unsafe { shim::tessera_fused_inputs(rows, attacks, width, like, out) });
    features
}

/// The constants of a NAdam step, described in nadam.h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nadam {
    /// Decay rate of the running mean of the gradient.
    pub beta1: f64,
    /// Decay rate of the running mean of the squared gradient.
    pub beta2: f64,
    /// The constant that is added to the root of the mean squared gradient.
    pub epsilon: f64,
    /// The divisor that corrects the mean squared gradient for its initial zeros.
    pub correction: f64,
    /// The factor of the gradient in the step.
    pub fresh: f64,
    /// The factor of the mean gradient in the step.
    pub kept: f64,
}

impl Nadam {
    /// In one pass, updates the running means of the gradient and of its square, and writes the
    /// step to `direction`. All vectors must be contiguous f32 tensors of equal length on the CPU,
    /// and [`is_available`] must hold for them.
    pub fn step(&self, gradient: &Tensor, [mean, square, direction]: [&mut Tensor; 3]) {
        let vectors = raw([Some(gradient), Some(mean), Some(square), Some(direction)]);
        let constants = [
            1.0 - self.beta1,
            self.beta2,
            1.0 - self.beta2,
            self.epsilon,
            1.0 / self.correction,
            self.fresh,
            self.kept,
        ];
        // SAFETY: the shim accesses this many vectors and constants, and nothing else accesses them
        // during the call.
        let failure = unsafe {
            take_text(shim::tessera_fused_nadam(
                vectors.as_ptr(),
                constants.as_ptr(),
            ))
        };
        if let Some(reason) = failure {
            panic!("a fused operator failed: {reason}");
        }
    }
}

pub(super) fn raw<const N: usize>(inputs: [Option<&Tensor>; N]) -> [*const RawTensor; N] {
    inputs.map(|input| input.map_or(ptr::null(), |tensor| tensor.as_ptr() as _))
}

/// Returns the tensors that the shim creates. Panics if libtorch throws, as tch does.
pub(super) fn outputs<const N: usize>(
    make: impl FnOnce(*mut *mut RawTensor) -> *mut c_char,
) -> [Tensor; N] {
    let mut outputs = [ptr::null_mut(); N];
    let failure = make(outputs.as_mut_ptr());
    // SAFETY: if there is a message, it belongs to the shim. Otherwise the tensors are new and
    // owned here.
    unsafe {
        if let Some(reason) = take_text(failure) {
            panic!("a fused operator failed: {reason}");
        }
        outputs.map(|tensor: *mut RawTensor| Tensor::from_ptr(tensor.cast()))
    }
}

#[cfg(test)]
mod tests;
