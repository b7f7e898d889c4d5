// What the encoder of a frozen network reads, by kernels of ours: features of squares,
// their embedding, and attacks. A graph computes all of this by some hundred operators
// on tensors; here it comes from bitboards.
#include "../shim.h"
#include "description.h"
#include "inference.h"
#include "known_inputs.h"
#include "rewriting.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/library.h>

#include <atomic>
#include <tuple>

using at::Tensor;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

namespace tessera::fused {
namespace {

// Lc0's planes among the features, and the numbers that attacks add.
constexpr int64_t kPlanes = 112;
constexpr int64_t kAttacks = 22;

// Looks up the attacks on each of the boards: see src/encode/attacks.rs. Rows are
// [boards, row_width]; squares are [boards, 64, kAttacks], pairs [boards, 2, 64].
using LookUp = void (*)(const uint64_t* rows, size_t row_width, size_t boards,
                        uint8_t* squares, uint64_t* pairs);
std::atomic<LookUp> look_up{nullptr};

Tensor rows_of(const Tensor& rows) {
  TORCH_CHECK(rows.is_cpu() && rows.scalar_type() == at::kLong && rows.dim() == 2 &&
                  rows.size(1) >= kBoards + kScalars,
              "rows of ", rows.sizes());
  return rows.contiguous();
}

// The numbers of squares, u8 [B, 64, 22], and the pairs, bitboards i64 [B, 2, 64].
std::tuple<Tensor, Tensor> attacks_of(const Tensor& rows) {
  const int64_t boards = rows.size(0);
  Tensor squares = at::zeros({boards, kSquares, kAttacks}, at::kByte);
  Tensor pairs = at::zeros({boards, 2, kSquares}, at::kLong);
  if (boards == 0) {
    return {squares, pairs};
  }
  const LookUp by = look_up.load();
  TORCH_CHECK(by != nullptr, "attacks are looked up once a network is frozen");
  by(static_cast<const uint64_t*>(rows.const_data_ptr()),
                 static_cast<size_t>(rows.size(1)), static_cast<size_t>(boards),
                 static_cast<uint8_t*>(squares.mutable_data_ptr()),
                 static_cast<uint64_t*>(pairs.mutable_data_ptr()));
  return {squares, pairs};
}

Tensor attacked_pairs(const Tensor& rows) { return std::get<1>(attacks_of(rows_of(rows))); }

// What a layer of these weights [outputs, width] reads of rows, [B, 64, width]: the planes,
// then numbers of attackers if there is room, then zeros.
Tensor features(const Tensor& rows, const Tensor& weight) {
  const Tensor words = rows_of(rows);
  TORCH_CHECK(weight.dim() == 2 && weight.size(1) >= kPlanes, "too few features");
  const int64_t width = weight.size(1);
  const bool attacked = width >= kPlanes + kAttacks;
  const Tensor squares = attacked ? std::get<0>(attacks_of(words)) : Tensor();
  const int64_t boards = words.size(0);
  Tensor out = at::empty({boards, kSquares, width}, weight.scalar_type());
  const Inputs inputs{words.size(1),
                      width,
                      static_cast<const uint64_t*>(words.const_data_ptr()),
                      static_cast<const uint8_t*>(data(squares)),
                      attacked ? kAttacks : 0,
                      out.mutable_data_ptr()};
  on_boards(kernels_of(out, false, {}), boards, [&](const auto& run, auto first, auto last) {
    run.inputs(inputs, first, last);
  });
  return out;
}

// The layer of these weights [width, inputs], which are contiguous.
Embedding embedding_of(const Tensor& weight) {
  TORCH_CHECK(weight.dim() == 2 && whole({weight.size(0), weight.size(1)}),
              "weights of no embedding");
  expect(weight, weight.scalar_type(), weight.sizes());
  Embedding layer{};
  layer.width = weight.size(0);
  layer.inputs = weight.size(1);
  layer.weight = data(weight);
  return layer;
}

Tensor pack_embedding(const Tensor& weight) {
  const Tensor w = weight.contiguous();
  return pack(kernels_of(w, false, {}).pack_embedding, embedding_of(w));
}

// (features · weightᵀ + bias) · multiply + add, as tokens [B, 64, width].
Tensor embedding(const Tensor& features, const Tensor& weight, const Tensor& packed_weight,
                 const Tensor& bias, const Tensor& multiply, const Tensor& add) {
  const std::vector<Tensor> w = contiguous({weight, bias, multiply, add});
  const Tensor x = features.contiguous();
  Embedding layer = embedding_of(w[0]);
  const at::ScalarType type = w[0].scalar_type();
  expect_tokens(x, type, layer.inputs);
  expect(w[1], type, {layer.width});
  expect(w[2], type, {kSquares, layer.width});
  expect(w[3], type, {kSquares, layer.width});
  layer.boards = x.numel() / (kSquares * layer.inputs);
  layer.features = data(x);
  layer.bias = data(w[1]);
  layer.multiply = data(w[2]);
  layer.add = data(w[3]);
  Tensor y = like(x, {layer.boards, kSquares, layer.width});
  layer.y = y.mutable_data_ptr();
  const Kernels& by = kernels_of(x, false, {});
  layer.packed = packed(by.pack_embedding, layer, packed_weight);
  on_boards(by, layer.boards, [&](const auto& run, auto first, auto last) {
    run.embedding(layer, first, last);
  });
  return y;
}

TORCH_LIBRARY_FRAGMENT(tessera, library) {
  library.def("features(Tensor rows, Tensor weight) -> Tensor", &features);
  library.def("attacked_pairs(Tensor rows) -> Tensor", &attacked_pairs);
  library.def("pack_embedding(Tensor weight) -> Tensor", &pack_embedding);
  library.def(
      "embedding(Tensor features, Tensor weight, Tensor packed, Tensor bias, "
      "Tensor multiply, Tensor add) -> Tensor",
      &embedding);
}

Value* insert(Graph& graph, Node* before, const char* name, at::ArrayRef<Value*> inputs) {
  const torch::jit::WithInsertPoint here(before);
  Node* node = graph.create(c10::Symbol::fromQualString(name), inputs);
  graph.insertNode(node);
  return node->output();
}

// The features that a dense layer reads, 0 if it reads something else.
int64_t known_features(const Node* layer) {
  if (layer->kind() != c10::aten::linear ||
      layer->input(0)->node()->kind() != c10::aten::cat) {
    return 0;
  }
  const std::string inputs = describe(layer->input(0));
  return inputs == kPlanesText             ? kPlanes
         : inputs == kPlanesAndAttacksText ? kPlanes + kAttacks
                                           : 0;
}

// The only reader of a value if that is an operator of this kind and adds or multiplies
// a constant by square.
Node* by_square(const Value* value, c10::Symbol kind, int64_t width) {
  if (value->uses().size() != 1) {
    return nullptr;
  }
  Node* node = value->uses()[0].user;
  const bool fits = node->kind() == kind && node->input(0) == value &&
                    weight_sizes(tensor_of(node->input(1))) == Ints{kSquares, width} &&
                    (kind != c10::aten::add || torch::jit::toIValue(node->input(2)) == 1);
  return fits ? node : nullptr;
}

void fuse_embedding(Graph& graph, Node* layer) {
  const int64_t inputs = known_features(layer);
  const Tensor weight = inputs > 0 ? tensor_of(layer->input(1)) : Tensor();
  const Ints sizes = weight_sizes(weight);
  if (sizes.size() != 2 || sizes[1] != inputs) {
    return;
  }
  const int64_t width = sizes[0], whole_width = round_up_32(inputs);
  const torch::jit::WithInsertPoint here(layer);
  Value* padded =
      graph.insertConstant(at::constant_pad_nd(weight, {0, whole_width - inputs}));
  Value* features =
      insert(graph, layer, "tessera::features", {graph.inputs().back(), padded});
  layer->replaceInput(0, features);
  layer->replaceInput(1, padded);
  const bool has_bias = weight_sizes(tensor_of(layer->input(2))) == Ints{width};
  Node* multiplied = by_square(layer->output(), c10::aten::mul, width);
  Node* added = multiplied ? by_square(multiplied->output(), c10::aten::add, width) : nullptr;
  if (has_bias && whole({width}) && added != nullptr) {
    Value* packed = insert(graph, added, "tessera::pack_embedding", {padded});
    added->output()->replaceAllUsesWith(insert(
        graph, added, "tessera::embedding",
        {features, padded, packed, layer->input(2), multiplied->input(1), added->input(1)}));
  }
}

// Has a block's attention look at `pairs`, bitboards of attacks, not at biases made of
// them.
void fuse_attacks(Graph& graph, Node* attention, Value* pairs) {
  const Node* view = attention->input(1)->node();
  const Node* product = view->kind() == c10::aten::view ? view->input(0)->node() : view;
  if (product->kind() != c10::aten::matmul ||
      describe(product->input(1)) != kAttackedPairsText) {
    return;
  }
  const Tensor worth = tensor_of(product->input(0));
  const auto split = torch::jit::toIValue(attention->input(6));
  if (!split || weight_sizes(worth) != Ints{split->toIntVector().at(3), 2}) {
    return;
  }
  const torch::jit::WithInsertPoint here(attention);
  attention->replaceInput(1, graph.insertConstant(c10::IValue()));
  attention->replaceInput(2, pairs);
  attention->replaceInput(3, graph.insertConstant(worth.to(at::kFloat)));
}

}  // namespace

void fuse_inputs(const std::shared_ptr<Graph>& graph, const Numbers& numbers) {
  if (!has_kernels(numbers) || look_up.load() == nullptr || graph->inputs().size() != 2) {
    return;
  }
  const auto attention = c10::Symbol::fromQualString("tessera::attention");
  Node* first = *graph->nodes().begin();
  Value* pairs =
      insert(*graph, first, "tessera::attacked_pairs", {graph->inputs().back()});
  for (Node* node : graph->nodes()) {
    if (node->kind() == attention) {
      fuse_attacks(*graph, node, pairs);
    } else {
      fuse_embedding(*graph, node);
    }
  }
  torch::jit::EliminateDeadCode(graph);
}

}  // namespace tessera::fused

// What dense layers and products of a frozen module's graph read, as describe() has it.
extern "C" char* tessera_fused_describe(const torch::jit::Module* module, char** out) {
  return tessera::guarded([&] {
    std::string text;
    for (const Node* node : module->get_method("forward").graph()->nodes()) {
      if (node->kind() == c10::aten::linear || node->kind() == c10::aten::matmul) {
        text += tessera::fused::describe(node->input(node->kind() == c10::aten::matmul)) + "\n";
      }
    }
    *out = tessera::text(text);
  });
}

// Names the function by which frozen networks look up attacks.
extern "C" void tessera_fused_look_up(tessera::fused::LookUp look_up) {
  tessera::fused::look_up = look_up;
}
