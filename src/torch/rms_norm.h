#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace tessera {

// Computes the root-mean-square norm over the last dimension. Gradients flow. libtorch processes
// the inputs that a single pass does not support.
at::Tensor rms_norm(const at::Tensor& in, at::IntArrayRef shape,
                    const std::optional<at::Tensor>& weight,
                    std::optional<double> epsilon);

}  // namespace tessera
