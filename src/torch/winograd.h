#pragma once

#include <ATen/core/Tensor.h>

namespace tessera {

// Boards have eight by eight squares; channels go through the transforms in
// groups of this many.
constexpr int64_t kWinogradChannels = 16;

// The kernels [out, in, 3, 3] of a convolution as `winograd` wants them,
// [36, in, out].
at::Tensor winograd_kernel(const at::Tensor& weight);

// Whether `winograd` computes convolutions of these kernels [out, in, 3, 3] and bias.
bool winograd_takes(const at::Tensor& weight, const at::Tensor& bias);

// A 3 × 3 convolution of boards [B, in, 8, 8] whose channels come last, padded
// to keep their size. Whatever is shaped otherwise it leaves to libtorch, for
// which it has the kernels as they were.
at::Tensor winograd(const at::Tensor& boards, const at::Tensor& weight,
                    const at::Tensor& bias, const at::Tensor& kernel);

}  // namespace tessera
