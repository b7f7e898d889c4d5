#pragma once

#include <ATen/core/Tensor.h>

namespace tessera {

// Boards have eight by eight squares. Channels are transformed in groups of this size.
constexpr int64_t kWinogradChannels = 16;

// Transforms the kernels [out, in, 3, 3] of a convolution to [36, in, out], for `winograd`.
at::Tensor winograd_kernel(const at::Tensor& weight);

// Returns whether `winograd` supports convolutions with these kernels [out, in, 3, 3] and this
// bias.
bool winograd_takes(const at::Tensor& weight, const at::Tensor& bias);

// Computes a channels-last 3 × 3 convolution of boards [B, in, 8, 8], padded to keep their size.
// libtorch computes the convolution, with the original kernels, if the boards have another shape.
at::Tensor winograd(const at::Tensor& boards, const at::Tensor& weight,
                    const at::Tensor& bias, const at::Tensor& kernel);

}  // namespace tessera
