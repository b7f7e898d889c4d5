#pragma once

#include <ATen/core/Tensor.h>

namespace tessera {

// Computes mish. Gradients flow. libtorch processes the inputs for which there is no kernel.
at::Tensor mish(const at::Tensor& in);

}  // namespace tessera
