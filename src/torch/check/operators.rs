//! The operators that code may call, and the names of their arguments.

/// Functions of `torch` that our exporters write, in alphabetical order. All belong to libtorch.
/// Called with only [`ARGUMENTS`], they create new tensors and do not access anything else. A test
/// derives both lists from the networks that our exporters and importers write.
pub const OPERATORS: [&str; 65] = [
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
    "device",
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

/// Argument names that our exporters write. `out` is excluded, because operators write to it.
pub const ARGUMENTS: [&str; 5] = ["alpha", "beta", "device", "dtype", "layout"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_in_order() {
        assert!(OPERATORS.is_sorted() && ARGUMENTS.is_sorted());
    }
}
