#pragma once

#include <memory>

namespace torch::jit {
struct Graph;
}

namespace tessera {

// Puts our own operators in the place of libtorch's, for inference on the CPU.
void fuse(const std::shared_ptr<torch::jit::Graph>& graph);

}  // namespace tessera
