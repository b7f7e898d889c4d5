// What rewriting the graphs of frozen networks takes.
#pragma once

#include "autograd.h"
#include "expected.h"
#include "inference.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/subgraph_matcher.h>

#include <string>
#include <unordered_map>

namespace tessera::fused {

// Whether networks are rewritten: in f32 alone graphs stay as they are, since libtorch's
// products are as fast there, and what a network says does not change.
inline bool has_kernels(const Numbers& numbers) {
  return (numbers.quantised || numbers.type == at::kBFloat16) &&
         kernels(numbers.type, numbers.quantised) != nullptr;
}

// Whether layers with these inputs can multiply in int8.
inline bool fit_int8(at::IntArrayRef inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](int64_t width) {
    return width % kQuantisedMultiple == 0 && width <= kQuantisedMost;
  });
}

// The kernels for tokens like these. In int8 layers multiply whose `inputs` allow it.
inline const Kernels& kernels_of(const at::Tensor& tokens, bool quantised,
                                 std::initializer_list<int64_t> inputs) {
  return kernels_for(tokens.scalar_type(), quantised && fit_int8(inputs));
}

// Packs the weights of a block by one of Kernels' functions, when a network is frozen.
template <typename Block>
at::Tensor pack(int64_t (*by)(const Block&, void*), const Block& block) {
  at::Tensor out = at::empty({by(block, nullptr)}, at::kByte);
  by(block, out.mutable_data_ptr());
  return out;
}

// Where packed weights lie.
template <typename Block>
const void* packed(int64_t (*by)(const Block&, void*), const Block& block,
                   const at::Tensor& weights) {
  TORCH_CHECK(weights.is_cpu() && weights.scalar_type() == at::kByte &&
                  weights.is_contiguous() && weights.numel() == by(block, nullptr),
              "weights packed for other kernels");
  return weights.const_data_ptr();
}

// A constant of a graph; undefined for all else.
inline at::Tensor tensor_of(const torch::jit::Value* value) {
  const auto constant = torch::jit::toIValue(value);
  return constant && constant->isTensor() ? constant->toTensor() : at::Tensor();
}

// The sizes of weights that kernels take; empty for others.
inline std::vector<int64_t> weight_sizes(const at::Tensor& weight) {
  const bool fits =
      weight.defined() && weight.is_cpu() &&
      (weight.scalar_type() == at::kFloat || weight.scalar_type() == at::kBFloat16);
  return fits ? weight.sizes().vec() : std::vector<int64_t>();
}

using Ints = std::vector<int64_t>;

// The graph that takes a pattern's place, with what INT8 stands for in it.
inline std::string with_int8(std::string graph, const Numbers& numbers) {
  const std::string name = "INT8";
  return graph.replace(graph.find(name), name.size(), numbers.quantised ? "1" : "0");
}

// A match's constants by the names that the pattern gives them.
class Constants {
 public:
  using Names = std::unordered_map<std::string, torch::jit::Value*>;

  Constants(const torch::jit::Match& match, const Names& names)
      : match_(match), names_(names) {}

  std::optional<c10::IValue> operator[](const std::string& name) const {
    return torch::jit::toIValue(match_.values_map.at(names_.at(name)));
  }

  bool are(std::initializer_list<std::pair<const char*, c10::IValue>> expected) const {
    return std::all_of(expected.begin(), expected.end(), [&](const auto& pair) {
      const auto value = (*this)[pair.first];
      return value && *value == pair.second;
    });
  }

  std::vector<int64_t> sizes(const std::string& name) const {
    return weight_sizes(tensor_of(match_.values_map.at(names_.at(name))));
  }

  bool have_sizes(
      std::initializer_list<std::pair<const char*, std::vector<int64_t>>> expected) const {
    return std::all_of(expected.begin(), expected.end(),
                       [&](const auto& pair) { return sizes(pair.first) == pair.second; });
  }

 private:
  const torch::jit::Match& match_;
  const Names& names_;
};

}  // namespace tessera::fused
