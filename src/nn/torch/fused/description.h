// What a value of a graph is computed from, as text.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <string>

namespace tessera::fused {

// The operators that lead from the graph's inputs to the value, a line each; empty where
// they are too many to be of interest. Two values have the same text if and only if they
// are computed alike: values have numbers for names, constants stand where they are read,
// tensors by their hash. Only the type is told of what type_as() takes after.
std::string describe(const torch::jit::Value* value);

}  // namespace tessera::fused
