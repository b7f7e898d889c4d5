// Encoder blocks of frozen networks by kernels of ours, in bf16.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace tessera::fused {

// Puts one operator in the place of each encoder block that has a kernel.
void fuse_encoder(const std::shared_ptr<torch::jit::Graph>& graph);

}  // namespace tessera::fused
