#pragma once

#include <memory>

namespace torch::jit {
struct Graph;
}

namespace tessera {
namespace fused {
struct Numbers;
}

// Puts our own operators in the place of libtorch's, for inference on the CPU.
void fuse(const std::shared_ptr<torch::jit::Graph>& graph, const fused::Numbers& numbers);

}  // namespace tessera
