#pragma once

#include <memory>

namespace torch::jit {
struct Graph;
}

namespace tessera {

// Replaces libtorch's operators with our own, for inference on the CPU.
void fuse(const std::shared_ptr<torch::jit::Graph>& graph);

}  // namespace tessera
