#pragma once

#include <ATen/core/Tensor.h>

#include "sizes.h"

namespace tessera::gpu {

// Returns the bytes of shared memory that a block of the encoder kernel needs.
int shared_memory(const Sizes& sizes);

// Encodes boards on the CPU. If `reversed`, warps and lanes run in the opposite order.
void emulate(const Sizes& sizes, bool reversed, const at::Tensor& words,
             const at::Tensor& matrices, const at::Tensor& vectors, at::Tensor& out);

}  // namespace tessera::gpu
