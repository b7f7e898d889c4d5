#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <mutex>

namespace tessera {

// Starts an operation on tensors of a group, without waiting for it. libtorch 2.11 enters the first
// operation of every group into one record (the flight recorder) without a lock, so this function
// locks for all groups of the process.
template <typename Operation>
c10::intrusive_ptr<c10d::Work> begin(const at::Tensor& tensor, Operation&& operation) {
  static std::mutex record;
  std::vector<at::Tensor> tensors{tensor};
  const std::lock_guard<std::mutex> locked(record);
  return operation(tensors);
}

}  // namespace tessera
