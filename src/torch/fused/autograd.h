// Shared parts of the autograd functions: the choice of this processor's kernels, the distribution
// of boards to threads, and sums of gradients.
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

// Returns the kernels of this processor, or null if it has none for the dtype. `int8` requests
// kernels with dense layers in int8.
const Kernels* kernels(at::ScalarType type, bool int8 = false);

// Returns the same kernels, and throws if there are none.
inline const Kernels& kernels_for(at::ScalarType type, bool int8 = false) {
  const Kernels* run = kernels(type, int8);
  TORCH_CHECK(run != nullptr, "no kernels for tokens of ", type);
  return *run;
}

// Returns the number of threads to use for a number of boards.
int64_t workers_for(int64_t boards);

// Runs work(worker, first, last) on chunks of boards, in order if there is a single worker.
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

// Runs work(kernels, first, last) on chunks of boards.
template <typename Work>
void on_boards(const Kernels& run, int64_t boards, const Work& work) {
  share(boards, workers_for(boards),
        [&](int64_t, int64_t first, int64_t last) { work(run, first, last); });
}

// Sums of parameter gradients. Each worker has its own sums, which are then added in order.
class Sums {
 public:
  Sums(int64_t workers, std::vector<int64_t> sizes);

  // Returns a worker's sums, one vector for each parameter.
  std::vector<float*> of(int64_t worker) const;

  std::vector<at::Tensor> joined() const;

 private:
  std::vector<int64_t> sizes_;
  at::Tensor all_;
};

inline const void* data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

// Returns the tensors as contiguous tensors, which kernels require. Absent tensors stay absent.
inline std::vector<at::Tensor> contiguous(at::TensorList tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.defined() ? tensor.contiguous() : tensor);
  }
  return all;
}

inline at::Tensor like(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return at::empty(sizes, tensor.options());
}

// Builds the bias generator from its ten weights: the compression of squares; the weight, bias and
// norm of the summary; the weight, bias and norm of the heads' projection; and the generator
// itself, [4096, generated].
inline Gab gab_of(const at::Tensor* weights, double epsilon) {
  const at::Tensor &compress = weights[0], &summary = weights[1], &generator = weights[9];
  const auto norm = [&](int weight) {
    return GabNorm{static_cast<float>(epsilon), data(weights[weight]),
                   data(weights[weight + 1])};
  };
  return {compress.size(0), summary.size(0),  generator.size(1), data(compress),
          data(summary),    data(weights[2]), norm(3),           data(weights[5]),
          data(weights[6]), norm(7),          data(generator)};
}

// The next multiple of 32.
inline int64_t round_up_32(int64_t columns) { return (columns + 31) / 32 * 32; }

}  // namespace tessera::fused
