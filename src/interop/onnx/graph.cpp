// Traces a forward pass written in Rust. The pass runs once under libtorch's tracer, and the
// recorded operator graph is returned as JSON (see graph.rs for its schema). The tracer's graph is
// flat and in execution order.

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cmath>
#include <iomanip>
#include <sstream>
#include <vector>

#include "../../torch/shim.h"

namespace {

using torch::jit::Node;
using torch::jit::Value;

// Runs the forward pass over `inputs` and writes `count` new tensors to
// `outputs`; returns 0 on success.
using Forward = int (*)(void* context, at::Tensor** inputs, at::Tensor** outputs, size_t count);
using Receive = void (*)(void* context, at::Tensor*);

class Writer {
 public:
  Writer(std::ostream& out, void* context, Receive receive)
      : out_(out), context_(context), receive_(receive) {
    out_ << std::setprecision(17);
  }

  void graph(const torch::jit::Graph& graph) {
    out_ << "{\"nodes\":[";
    const char* comma = "";
    for (const Node* node : graph.nodes()) {
      if (!is_inlined(node)) {
        out_ << comma;
        this->node(node);
        comma = ",";
      }
    }
    out_ << "],\"outputs\":";
    const Node* result = graph.outputs().at(0)->node();
    TORCH_CHECK(result->kind() == c10::prim::TupleConstruct, "the pass returns no tuple");
    arguments(result->inputs());
    out_ << ",\"inputs\":";
    typed(graph.inputs());
    out_ << "}";
  }

 private:
  // Whether the node is written inline where its value is used.
  static bool is_inlined(const Node* node) {
    return node->kind() == c10::prim::Constant || node->kind() == c10::prim::ListConstruct ||
           node->kind() == c10::prim::TupleConstruct;
  }

  void node(const Node* node) {
    out_ << "{\"operator\":\"" << node->kind().toQualString() << "\",\"arguments\":";
    arguments(node->inputs());
    out_ << ",\"outputs\":";
    typed(node->outputs());
    out_ << "}";
  }

  void arguments(at::ArrayRef<const Value*> values) {
    out_ << "[";
    for (size_t i = 0; i < values.size(); ++i) {
      out_ << (i == 0 ? "" : ",");
      argument(values[i]);
    }
    out_ << "]";
  }

  void argument(const Value* value) {
    const Node* node = value->node();
    if (node->kind() == c10::prim::ListConstruct) {
      out_ << "{\"List\":";
      arguments(node->inputs());
      out_ << "}";
    } else if (node->kind() == c10::prim::Constant) {
      constant(*torch::jit::toIValue(value));
    } else {
      out_ << "{\"Value\":" << value->unique() << "}";
    }
  }

  void constant(const c10::IValue& value) {
    // ONNX has no concept of devices.
    if (value.isNone() || value.isDevice()) {
      out_ << "\"None\"";
    } else if (value.isBool()) {
      out_ << "{\"Bool\":" << (value.toBool() ? "true" : "false") << "}";
    } else if (value.isInt()) {
      out_ << "{\"Int\":" << value.toInt() << "}";
    } else if (value.isDouble()) {
      TORCH_CHECK(std::isfinite(value.toDouble()), "a constant is not finite");
      out_ << "{\"Float\":" << value.toDouble() << "}";
    } else if (value.isIntList()) {
      out_ << "{\"List\":[";
      const char* comma = "";
      for (const int64_t number : value.toIntVector()) {
        out_ << comma << "{\"Int\":" << number << "}";
        comma = ",";
      }
      out_ << "]}";
    } else if (value.isTensor()) {
      receive_(context_, new at::Tensor(value.toTensor()));
      out_ << "{\"Tensor\":" << tensors_++ << "}";
    } else if (value.isString()) {
      // Operator options are words such as "none".
      out_ << "{\"Text\":\"" << value.toStringRef() << "\"}";
    } else {
      TORCH_CHECK(false, "a constant is of the type ", value.tagKind());
    }
  }

  void typed(at::ArrayRef<const Value*> values) {
    out_ << "[";
    for (size_t i = 0; i < values.size(); ++i) {
      out_ << (i == 0 ? "" : ",") << "{\"value\":" << values[i]->unique();
      const auto type = values[i]->type()->cast<c10::TensorType>();
      const auto sizes = type ? type->sizes().concrete_sizes() : std::nullopt;
      if (sizes && type->scalarType()) {
        out_ << ",\"floating\":" << (c10::isFloatingType(*type->scalarType()) ? "true" : "false")
             << ",\"shape\":[";
        const char* comma = "";
        for (const int64_t size : *sizes) {
          out_ << comma << size;
          comma = ",";
        }
        out_ << "]";
      }
      out_ << "}";
    }
    out_ << "]";
  }

  std::ostream& out_;
  void* context_;
  Receive receive_;
  size_t tensors_ = 0;
};

}  // namespace

extern "C" {

// Traces `forward` with the first `given` of the `count` tensors in `inputs` as arguments. The pass
// accesses the other tensors directly, by identity. Any further tensors in the graph are passed to
// `receive`, which then owns them.
char* tessera_graph(
    at::Tensor* const* inputs,
    size_t given,
    size_t count,
    Forward forward,
    size_t outputs,
    void* context,
    Receive receive,
    char** json) {
  return tessera::guarded([&] {
    torch::jit::Stack stack;
    for (size_t i = 0; i < count; ++i) {
      stack.emplace_back(*inputs[i]);
    }
    const auto run = [&](torch::jit::Stack traced) -> torch::jit::Stack {
      std::vector<at::Tensor> tensors;
      std::vector<at::Tensor*> pointers;
      for (size_t i = 0; i < given; ++i) {
        tensors.push_back(traced.at(i).toTensor());
      }
      for (auto& tensor : tensors) {
        pointers.push_back(&tensor);
      }
      std::vector<at::Tensor*> slots(outputs, nullptr);
      const int failed = forward(context, pointers.data(), slots.data(), outputs);
      std::vector<c10::IValue> results;
      for (at::Tensor* slot : slots) {
        if (slot != nullptr) {
          results.emplace_back(*slot);
          delete slot;
        }
      }
      TORCH_CHECK(failed == 0, "the forward pass failed under the tracer");
      return {c10::ivalue::Tuple::create(std::move(results))};
    };
    const auto traced = torch::jit::tracer::trace(
        std::move(stack), run, [](const at::Tensor&) { return std::string(); },
        /*strict=*/true, /*force_outplace=*/true);
    std::ostringstream text;
    Writer(text, context, receive).graph(*traced.first->graph);
    *json = tessera::text(text.str());
  });
}
}
