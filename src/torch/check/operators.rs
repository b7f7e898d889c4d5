//! The operators that code may call, and the argument names that it may use.

/// The functions of `torch` that our exporters write, in alphabetical order. All belong to
/// libtorch. With no argument names other than [`ARGUMENTS`], they create new tensors and have no
/// other effects. A test derives both lists from the networks that our exporters and importers
/// write.
pub const OPERATORS: [&str; 64] = [
    "_convolution",
    "abs",
    "add",
    "addcmul",
    "addmm",
    "baddbmm",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bmm",
    "cat",
    "chunk",
    "clamp",
    "cos",
    "cumsum",
    "div",
    "embedding",
    "expand",
    "flatten",
    "flip",
    "gelu",
    "gt",
    "index_select",
    "layer_norm",
    "linear",
    "matmul",
    "mean",
    "mish",
    "mul",
    "narrow",
    "ne",
    "neg",
    "ones_like",
    "permute",
    "relu",
    "reshape",
    "rms_norm",
    "scaled_dot_product_attention",
    "select",
    "selu",
    "sigmoid",
    "silu",
    "sin",
    "slice",
    "softmax",
    "softplus",
    "split",
    "square",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "t",
    "tanh",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unsqueeze",
    "view",
    "where",
    "zeros_like",
];

/// The argument names that our exporters write. `out` is not among them, because it makes an
/// operator write to an existing tensor.
pub const ARGUMENTS: [&str; 3] = ["alpha", "beta", "dtype"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_in_order() {
        assert!(OPERATORS.is_sorted() && ARGUMENTS.is_sorted());
    }
}
