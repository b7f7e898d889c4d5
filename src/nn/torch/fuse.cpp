// Operators of ours in the graphs of networks, for inference on the CPU.
#include "fuse.h"
#include "rms_norm.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/library.h>

namespace {

TORCH_LIBRARY(tessera, library) {
  library.def(
      "rms_norm(Tensor x, int[] shape, Tensor? weight, float? eps) -> Tensor",
      &tessera::rms_norm);
}

}  // namespace

void tessera::fuse(const std::shared_ptr<torch::jit::Graph>& graph) {
  const std::string call = "rms_norm(%x, %shape, %weight, %eps)";
  const auto graph_of = [&](const char* space) {
    return "graph(%x, %shape, %weight, %eps):\n  %y = " + (space + ("::" + call)) +
           "\n  return (%y)";
  };
  torch::jit::SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(graph_of("aten"), graph_of("tessera"));
  auto mutable_graph = graph;
  rewriter.runOnGraph(mutable_graph);
}
