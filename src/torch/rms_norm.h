#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace tessera {

// The root mean square norm over the last dimension. Without a gradient; what
// it cannot walk through in one pass it leaves to libtorch.
at::Tensor rms_norm(const at::Tensor& in, at::IntArrayRef shape,
                    const std::optional<at::Tensor>& weight,
                    std::optional<double> epsilon);

// Puts the norm with its gradient in the place of libtorch's on the CPU.
void replace_rms_norm();

}  // namespace tessera
