// Moves traced graphs and tensors between devices.
#include "placement.h"
#include "shim.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <vector>

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;

namespace {

template <typename Visit>
void each_node(Block* block, const Visit& visit) {
  std::vector<Node*> nodes(block->nodes().begin(), block->nodes().end());
  for (Node* node : nodes) {
    for (Block* inner : node->blocks()) {
      each_node(inner, visit);
    }
    visit(node);
  }
}

}  // namespace

void tessera::forget_devices(Graph& graph) {
  // The signature is to(self, dtype, layout, device, pin_memory, non_blocking, copy,
  // memory_format).
  const auto is_conversion = [](const Node* node) {
    return node->kind() == c10::aten::to && node->inputs().size() == 8 &&
           node->input(1)->type()->kind() != c10::TypeKind::NoneType;
  };
  each_node(graph.block(), [&](Node* node) {
    if (!is_conversion(node)) {
      return;
    }
    const torch::jit::WithInsertPoint here(node);
    torch::jit::Value* converted = graph.insert(
        c10::aten::to,
        {node->input(0), node->input(1), node->input(5), node->input(6), node->input(7)});
    converted->copyMetadata(node->output());
    node->output()->replaceAllUsesWith(converted);
    node->destroy();
  });
  torch::jit::EliminateDeadCode(graph.block());
}

void tessera::name_device(Graph& graph, c10::Device place) {
  each_node(graph.block(), [&](Node* node) {
    if (node->kind() != c10::prim::Constant || node->outputs().size() != 1) {
      return;
    }
    const auto value = torch::jit::toIValue(node->output());
    if (!value) {
      return;
    }
    if (value->isDevice()) {
      const torch::jit::WithInsertPoint here(node);
      node->output()->replaceAllUsesWith(graph.insertConstant(place));
    } else if (value->isTensor() && value->toTensor().defined()) {
      const torch::jit::WithInsertPoint here(node);
      node->output()->replaceAllUsesWith(graph.insertConstant(value->toTensor().to(place)));
    }
  });
  torch::jit::EliminateDeadCode(graph.block());
}

// Copies a tensor from CPU memory to a CUDA device, asynchronously through pinned memory. (tch's
// own method prints a warning about one of its arguments in every call.)
extern "C" char* tessera_send(const at::Tensor* in, int device, at::Tensor** out) {
  return tessera::guarded([&] {
    const c10::Device place(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
    *out = new at::Tensor(in->pin_memory().to(place, in->scalar_type(), /*non_blocking=*/true));
  });
}

// Creates an uninitialised pinned tensor i64 [count].
extern "C" char* tessera_pinned(int64_t count, at::Tensor** out) {
  return tessera::guarded([&] {
    const auto options = at::TensorOptions(c10::kLong).pinned_memory(true);
    *out = new at::Tensor(at::empty({count}, options));
  });
}

// Copies a tensor from a CUDA device to pinned memory, and waits until the copy is complete.
extern "C" char* tessera_receive(const at::Tensor* in, at::Tensor** out) {
  return tessera::guarded([&] {
    const auto options = in->options().device(c10::kCPU).pinned_memory(true);
    at::Tensor host = at::empty(in->sizes(), options);
    host.copy_(*in);
    *out = new at::Tensor(std::move(host));
  });
}
