#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace tessera {

// The root-mean-square norm over the last dimension, without a gradient. Inputs that one pass
// cannot handle are left to libtorch.
at::Tensor rms_norm(const at::Tensor& in, at::IntArrayRef shape,
                    const std::optional<at::Tensor>& weight,
                    std::optional<double> epsilon);

// Replaces libtorch's norm and its gradient on the CPU.
void replace_rms_norm();

}  // namespace tessera
