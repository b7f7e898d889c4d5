// Frozen networks by kernels of ours, in bf16.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace tessera::fused {

// Puts one operator in the place of each encoder block that has a kernel.
void fuse_encoder(const std::shared_ptr<torch::jit::Graph>& graph);

// The same for what the encoder reads: the features of squares, attacks, the embedding.
// Comes after `fuse_encoder`.
void fuse_inputs(const std::shared_ptr<torch::jit::Graph>& graph);

// The same for what reads the encoder: layers of tokens, policies. Comes after
// `fuse_encoder`.
void fuse_heads(const std::shared_ptr<torch::jit::Graph>& graph);

}  // namespace tessera::fused
