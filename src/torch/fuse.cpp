// Replaces operators in the graphs of frozen TorchScript with our own, for inference on the CPU.
#include "fuse.h"
#include "mish.h"
#include "rms_norm.h"
#include "winograd.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/library.h>

#include <optional>

namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::toIValue;

TORCH_LIBRARY(tessera, library) {
  library.def(
      "rms_norm(Tensor x, int[] shape, Tensor? weight, float? eps) -> Tensor",
      &tessera::rms_norm);
  library.def("mish(Tensor x) -> Tensor", &tessera::mish);
  library.def(
      "winograd(Tensor boards, Tensor weight, Tensor bias, Tensor kernel) -> Tensor",
      &tessera::winograd);
}

void replace_calls(std::shared_ptr<Graph> graph) {
  torch::jit::SubgraphRewriter rewriter;
  for (const std::string call : {"rms_norm(%x, %shape, %weight, %eps)", "mish(%x)"}) {
    const auto graph_of = [&](const std::string& space) {
      return "graph" + call.substr(call.find('(')) + ":\n  %y = " + space + "::" + call +
             "\n  return (%y)";
    };
    rewriter.RegisterRewritePattern(graph_of("aten"), graph_of("tessera"));
  }
  rewriter.runOnGraph(graph);
}

// Returns a node's kernels if the node is an f32 3 × 3 convolution that keeps the board size and
// has a bias.
std::optional<at::Tensor> kernels_of(const Node* node) {
  const bool plain = node->kind() == c10::aten::conv2d;
  if (!plain && node->kind() != c10::aten::_convolution) {
    return std::nullopt;
  }
  const auto ones = [&](size_t input) {
    const auto value = toIValue(node->input(input));
    return value && value->isIntList() &&
           value->toIntVector() == std::vector<int64_t>{1, 1};
  };
  const auto is = [&](size_t input, const c10::IValue& expected) {
    const auto value = toIValue(node->input(input));
    return value && *value == expected;
  };
  const auto weight = toIValue(node->input(1)), bias = toIValue(node->input(2));
  if (!weight || !weight->isTensor() || !bias || !bias->isTensor() || !ones(3) ||
      !ones(4) || !ones(5) || !(plain || is(6, false)) ||
      !is(plain ? 6 : 8, static_cast<int64_t>(1))) {
    return std::nullopt;
  }
  const at::Tensor kernels = weight->toTensor();
  const bool fits = tessera::winograd_takes(kernels, bias->toTensor());
  return fits ? std::optional(kernels) : std::nullopt;
}

void fuse_convolutions(const std::shared_ptr<Graph>& graph) {
  for (Node* node : graph->nodes()) {
    const auto kernels = kernels_of(node);
    if (!kernels) {
      continue;
    }
    const torch::jit::WithInsertPoint here(node);
    auto* kernel = graph->insertConstant(tessera::winograd_kernel(*kernels));
    Node* fused = graph->create(c10::Symbol::fromQualString("tessera::winograd"),
                                {node->input(0), node->input(1), node->input(2), kernel});
    graph->insertNode(fused);
    fused->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(fused->output());
  }
  torch::jit::EliminateDeadCode(graph);
}

}  // namespace

void tessera::fuse(const std::shared_ptr<Graph>& graph) {
  replace_calls(graph);
  fuse_convolutions(graph);
}
