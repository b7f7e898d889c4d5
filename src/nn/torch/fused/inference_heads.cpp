// What reads the encoder of a frozen network, by kernels of ours: dense layers of tokens,
// and policies.
#include "inference.h"
#include "rewriting.h"

#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/library.h>

#include <cmath>
#include <map>

using at::Tensor;
using torch::jit::Graph;
using torch::jit::Match;
using torch::jit::Node;
using torch::jit::Value;

namespace tessera::fused {
namespace {

// The layers of these weights and biases in turns, which are contiguous.
DenseLayers layers_of(const std::vector<Tensor>& w) {
  DenseLayers layers{};
  layers.count = static_cast<int64_t>(w.size() / 2);
  TORCH_CHECK(layers.count > 0 && layers.count <= kMostLayers && w[0].dim() == 2,
              "no layers of tokens");
  layers.width = w[0].size(1);
  TORCH_CHECK(whole({layers.width}), "widths that have no kernels");
  const at::ScalarType type = w[0].scalar_type();
  for (int64_t layer = 0; layer < layers.count; ++layer) {
    const Tensor &weight = w[2 * layer], &bias = w[2 * layer + 1];
    const int64_t width = weight.size(0);
    expect(weight, type, {width, layers.width});
    expect(bias, type, {width});
    layers.outputs[layer] = width;
    layers.weights[layer] = data(weight);
    layers.biases[layer] = data(bias);
    layers.joint += width;
  }
  layers.joint = round_up_32(layers.joint);
  return layers;
}

Tensor pack_dense(const std::vector<Tensor>& weights, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const DenseLayers layers = layers_of(w);
  return pack(kernels_of(w[0], quantised, {layers.width}).pack_dense, layers);
}

// Mish of what each layer makes of tokens [B, 64, width] or [B · 64, width].
std::vector<Tensor> dense_mish(const Tensor& tokens, const std::vector<Tensor>& weights,
                               const Tensor& packed_weights, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const Tensor x = tokens.contiguous();
  DenseLayers layers = layers_of(w);
  expect_tokens(x, w[0].scalar_type(), layers.width);
  layers.boards = x.numel() / (kSquares * layers.width);
  layers.x = data(x);
  std::vector<Tensor> outputs;
  for (int64_t layer = 0; layer < layers.count; ++layer) {
    Ints sizes = x.sizes().vec();
    sizes.back() = layers.outputs[layer];
    outputs.push_back(like(x, sizes));
    layers.y[layer] = outputs.back().mutable_data_ptr();
  }
  const Kernels& by = kernels_of(x, quantised, {layers.width});
  layers.packed = packed(by.pack_dense, layers, packed_weights);
  on_boards(by, layers.boards, [&](const auto& run, auto first, auto last) {
    run.dense(layers, first, last);
  });
  return outputs;
}

// The head of these weights, which are contiguous.
Policy policy_of(const std::vector<Tensor>& w) {
  TORCH_CHECK(w.size() == 5, "weights of no policy");
  const int64_t width = w[1].numel();
  TORCH_CHECK(whole({width}), "widths that have no kernels");
  const at::ScalarType type = w[0].scalar_type();
  expect(w[0], type, {width, width});
  expect(w[1], type, {width});
  expect(w[2], type, {width, width});
  expect(w[3], type, {width});
  expect(w[4], type, {kPromotions, width});
  Policy head{};
  head.width = width;
  head.query = data(w[0]);
  head.query_bias = data(w[1]);
  head.key = data(w[2]);
  head.key_bias = data(w[3]);
  head.promotion = data(w[4]);
  return head;
}

Tensor pack_policy(const std::vector<Tensor>& weights, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const Policy head = policy_of(w);
  return pack(kernels_of(w[0], quantised, {head.width}).pack_policy, head);
}

// Logits f32 [B, 1858] of tokens [B, 64, width].
Tensor policy(const Tensor& tokens, const std::vector<Tensor>& weights,
              const Tensor& packed_weights, const Tensor& places, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const Tensor x = tokens.contiguous(), moves = places.contiguous();
  Policy head = policy_of(w);
  TORCH_CHECK(are_places(moves), "places of no policy");
  expect(x, w[0].scalar_type(), {x.size(0), kSquares, head.width});
  head.boards = x.size(0);
  head.x = data(x);
  head.places = moves.const_data_ptr<int64_t>();
  Tensor logits = at::empty({head.boards, kPolicy}, at::kFloat);
  head.logits = logits.mutable_data_ptr<float>();
  const Kernels& by = kernels_of(x, quantised, {head.width});
  head.packed = packed(by.pack_policy, head, packed_weights);
  on_boards(by, head.boards, [&](const auto& run, auto first, auto last) {
    run.policy(head, first, last);
  });
  return logits;
}

TORCH_LIBRARY_FRAGMENT(tessera, library) {
  library.def("pack_dense(Tensor[] weights, bool int8) -> Tensor",
              [](std::vector<Tensor> weights, bool int8) { return pack_dense(weights, int8); });
  library.def("dense_mish(Tensor x, Tensor[] weights, Tensor packed, bool int8) -> Tensor[]",
              [](const Tensor& x, std::vector<Tensor> weights, const Tensor& packed,
                 bool int8) { return dense_mish(x, weights, packed, int8); });
  library.def("pack_policy(Tensor[] weights, bool int8) -> Tensor",
              [](std::vector<Tensor> weights, bool int8) {
                return pack_policy(weights, int8);
              });
  library.def(
      "policy(Tensor x, Tensor[] weights, Tensor packed, Tensor places, bool int8) -> Tensor",
      [](const Tensor& x, std::vector<Tensor> weights, const Tensor& packed,
         const Tensor& places, bool int8) { return policy(x, weights, packed, places, int8); });
}

// Attention from squares to squares, promotions besides.
const std::string kPolicyInputs = R"(
graph(%x, %query, %query_bias, %key, %key_bias, %promotion, %places, %none, %scale, %one1,
      %two1, %one2, %first, %files1, %one3, %one4, %seventh, %files2, %two2, %eighth, %files3,
      %three1, %one5, %one6, %two3, %one7, %three2, %one8, %one9):)";

const std::string kPolicyGraph = kPolicyInputs + R"(
  %queries = aten::linear(%x, %query, %query_bias)
  %keys = aten::linear(%x, %key, %key_bias)
  %turned = aten::transpose(%keys, %one1, %two1)
  %products = aten::bmm(%queries, %turned)
  %pairs = aten::mul(%products, %scale)
  %last_keys = aten::narrow(%keys, %one2, %first, %files1)
  %pieces = aten::linear(%last_keys, %promotion, %none)
  %pieces_by_square = aten::unsqueeze(%pieces, %one3)
  %from = aten::narrow(%pairs, %one4, %seventh, %files2)
  %to = aten::narrow(%from, %two2, %eighth, %files3)
  %last_pairs = aten::unsqueeze(%to, %three1)
  %promotions = aten::add(%last_pairs, %pieces_by_square, %one5)
  %flat_pairs = aten::flatten(%pairs, %one6, %two3)
  %flat_promotions = aten::flatten(%promotions, %one7, %three2)
  %both : Tensor[] = prim::ListConstruct(%flat_pairs, %flat_promotions)
  %all = aten::cat(%both, %one8)
  %y = aten::index_select(%all, %one9, %places)
  return (%y))";

const std::string kFusedPolicy = kPolicyInputs + R"(
  %weights : Tensor[] = prim::ListConstruct(%query, %query_bias, %key, %key_bias, %promotion)
  %int8 : bool = prim::Constant[value=INT8]()
  %packed : Tensor = tessera::pack_policy(%weights, %int8)
  %y = tessera::policy(%x, %weights, %packed, %places, %int8)
  return (%y))";

bool is_policy(const Match& match, const Constants::Names& names) {
  const Constants constants(match, names);
  const Ints query = constants.sizes("query");
  const auto scale = constants["scale"], places = constants["places"];
  if (query.size() != 2 || !whole({query[0]}) || !scale || !scale->isDouble() || !places ||
      !places->isTensor()) {
    return false;
  }
  const int64_t width = query[0];
  const double off = scale->toDouble() * std::sqrt(static_cast<double>(width)) - 1.0;
  return std::abs(off) < 1e-6 && are_places(places->toTensor()) &&
         constants.are({{"none", c10::IValue()},
                        {"one1", 1},
                        {"two1", 2},
                        {"one2", 1},
                        {"first", 56},
                        {"files1", 8},
                        {"one3", 1},
                        {"one4", 1},
                        {"seventh", 48},
                        {"files2", 8},
                        {"two2", 2},
                        {"eighth", 56},
                        {"files3", 8},
                        {"three1", 3},
                        {"one5", 1},
                        {"one6", 1},
                        {"two3", 2},
                        {"one7", 1},
                        {"three2", 3},
                        {"one8", 1},
                        {"one9", 1}}) &&
         constants.have_sizes({{"query", {width, width}},
                               {"query_bias", {width}},
                               {"key", {width, width}},
                               {"key_bias", {width}},
                               {"promotion", {kPromotions, width}}});
}

// Whether this is mish of a dense layer of the encoder's tokens.
bool is_layer_of_tokens(const Node* node) {
  static const auto block = c10::Symbol::fromQualString("tessera::feed_forward");
  const Node* layer = node->kind() == c10::aten::mish ? node->input()->node() : nullptr;
  if (layer == nullptr || layer->kind() != c10::aten::linear ||
      layer->input(0)->node()->kind() != block) {
    return false;
  }
  const Ints weight = weight_sizes(tensor_of(layer->input(1)));
  return weight.size() == 2 && whole({weight[1]}) &&
         weight_sizes(tensor_of(layer->input(2))) == Ints{weight[0]};
}

// One operator for the layers that read the same tokens.
void fuse_layers(Graph& graph, at::ArrayRef<Node*> layers, const Numbers& numbers) {
  const torch::jit::WithInsertPoint here(layers[0]);
  std::vector<Value*> weights;
  for (const Node* mish : layers) {
    const Node* layer = mish->input()->node();
    // Constants of their own: those of a later layer may be defined after this place.
    weights.push_back(graph.insertConstant(tensor_of(layer->input(1))));
    weights.push_back(graph.insertConstant(tensor_of(layer->input(2))));
  }
  Node* list = graph.insertNode(graph.createList(c10::TensorType::get(), weights));
  Value* x = layers[0]->input()->node()->input(0);
  Value* int8 = graph.insertConstant(numbers.quantised);
  Node* packed = graph.create(c10::Symbol::fromQualString("tessera::pack_dense"),
                                {list->output(), int8});
  graph.insertNode(packed);
  Node* fused = graph.create(c10::Symbol::fromQualString("tessera::dense_mish"),
                             {x, list->output(), packed->output(), int8});
  fused->output()->setType(c10::ListType::ofTensors());
  graph.insertNode(fused);
  Node* outputs = graph.insertNode(graph.createListUnpack(fused->output(), layers.size()));
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    layers[layer]->output()->replaceAllUsesWith(outputs->output(layer));
  }
}

}  // namespace

void fuse_heads(const std::shared_ptr<Graph>& graph, const Numbers& numbers) {
  if (!has_kernels(numbers)) {
    return;
  }
  std::shared_ptr<Graph> rewritten = graph;
  torch::jit::SubgraphRewriter policies;
  policies.RegisterRewritePattern(kPolicyGraph, with_int8(kFusedPolicy, numbers));
  policies.runOnGraph(rewritten, is_policy);
  std::map<const Value*, std::vector<Node*>> layers;
  for (Node* node : rewritten->nodes()) {
    if (is_layer_of_tokens(node)) {
      auto& of = layers[node->input()->node()->input(0)];
      if (of.size() < kMostLayers) {
        of.push_back(node);
      }
    }
  }
  for (const auto& [tokens, of] : layers) {
    fuse_layers(*rewritten, of, numbers);
  }
  // Packed weights become constants.
  torch::jit::ConstantPropagation(rewritten);
  torch::jit::EliminateDeadCode(rewritten);
}

}  // namespace tessera::fused
