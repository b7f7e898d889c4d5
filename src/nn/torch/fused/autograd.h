// What the functions that autograd knows share: kernels for this processor, work
// on chunks of boards, and sums of gradients.
#pragma once

#include "blocks.h"

#include <ATen/core/Tensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace tessera::fused {

// The kernels of this processor, null if it has none for the type.
const Kernels* kernels(at::ScalarType type);

// Threads that may share the work on so many boards here.
int64_t workers_for(int64_t boards);

// Runs work(worker, first, last) on chunks of boards, in order where there is one
// worker.
template <typename Work>
void share(int64_t boards, int64_t workers, const Work& work) {
  const int64_t chunks = (boards + kChunk - 1) / kChunk;
  at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      const int64_t first = chunks * worker / workers * kChunk;
      const int64_t last = std::min(boards, chunks * (worker + 1) / workers * kChunk);
      work(worker, first, last);
    }
  });
}

// Sums of the gradients of parameters, by worker and joined in order.
class Sums {
 public:
  Sums(int64_t workers, std::vector<int64_t> sizes);

  // Where a worker's sums for each parameter lie.
  std::vector<float*> of(int64_t worker) const;

  std::vector<at::Tensor> joined() const;

 private:
  std::vector<int64_t> sizes_;
  at::Tensor all_;
};

inline const void* data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

inline at::Tensor like(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return at::empty(sizes, tensor.options());
}

// An input that may be absent.
inline std::optional<at::Tensor> optional(const at::Tensor* tensor) {
  return tensor == nullptr ? std::nullopt : std::optional(*tensor);
}

inline int64_t whole_tiles(int64_t columns) { return (columns + 31) / 32 * 32; }

}  // namespace tessera::fused
