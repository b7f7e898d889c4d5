// Frozen networks by kernels of ours: in bf16, or with dense layers in int8.
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace tessera::fused {

// The type of a network's numbers, and whether its dense layers multiply in int8.
struct Numbers {
  at::ScalarType type;
  bool quantised;
};

// Puts one operator in the place of each encoder block that has a kernel.
void fuse_encoder(const std::shared_ptr<torch::jit::Graph>& graph, const Numbers& numbers);

// The same for what the encoder reads: the features of squares, attacks, the embedding.
// Comes after `fuse_encoder`.
void fuse_inputs(const std::shared_ptr<torch::jit::Graph>& graph, const Numbers& numbers);

// The same for what reads the encoder: layers of tokens, policies. Comes after
// `fuse_encoder`.
void fuse_heads(const std::shared_ptr<torch::jit::Graph>& graph, const Numbers& numbers);

// Whether any layer of a graph that was rewritten multiplies in int8: networks may have
// none, or none of a width that kernels take.
bool multiplies_in_int8(const torch::jit::Graph& graph);

}  // namespace tessera::fused
