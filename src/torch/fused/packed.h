// Weights that are packed for kernels once and used in many calls.
#pragma once

#include "autograd.h"

namespace tessera::fused {

// Returns whether layers with these numbers of inputs can multiply in int8.
inline bool fit_int8(at::IntArrayRef inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](int64_t width) {
    return width % kQuantisedMultiple == 0 && width <= kQuantisedMost;
  });
}

// Returns the kernels for tokens of this dtype. They use int8 if it is requested and the numbers of
// `inputs` of the layers allow it.
inline const Kernels& kernels_for(at::ScalarType type, bool int8, at::IntArrayRef inputs) {
  return kernels_for(type, int8 && fit_int8(inputs));
}

// Packs the weights of a block with the given kernel function.
template <typename Block>
at::Tensor pack_by(int64_t (*by)(const Block&, void*), const Block& block) {
  at::Tensor out = at::empty({by(block, nullptr)}, at::kByte);
  by(block, out.mutable_data_ptr());
  return out;
}

// Returns the memory of packed weights, after checking their size.
template <typename Block>
const void* packed(int64_t (*by)(const Block&, void*), const Block& block,
                   const at::Tensor& weights) {
  TORCH_CHECK(weights.is_cpu() && weights.scalar_type() == at::kByte &&
                  weights.is_contiguous() && weights.numel() == by(block, nullptr),
              "weights packed for other kernels");
  return weights.const_data_ptr();
}

// Returns the given number of inputs of a function. Absent inputs are undefined tensors.
inline std::vector<at::Tensor> all_of(const at::Tensor* const* inputs, int64_t count) {
  std::vector<at::Tensor> all;
  for (int64_t place = 0; place < count; ++place) {
    all.push_back(inputs[place] == nullptr ? at::Tensor() : *inputs[place]);
  }
  return all;
}

}  // namespace tessera::fused
