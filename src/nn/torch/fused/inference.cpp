// Encoder blocks as operators for the graphs of frozen networks.
#include "inference.h"
#include "rewriting.h"

#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/library.h>

#include <map>

using at::Tensor;
using torch::jit::Graph;
using torch::jit::Match;

namespace tessera::fused {
namespace {

// Gains of residuals are folded into the weights by whoever froze the network.
NormEnd norm_of(const Tensor& weight, const Tensor& bias, double epsilon) {
  return {1.0f, static_cast<float>(epsilon), true, data(weight), data(bias)};
}

// What the weights of the attention operator are, in their order.
enum AttentionWeight {
  kQueryKey,
  kValue,
  kSquareWeight,
  kSummary,
  kSummaryBias,
  kSummaryNormWeight,
  kSummaryNormBias,
  kHeads,
  kHeadsBias,
  kHeadsNormWeight,
  kHeadsNormBias,
  kGenerator,
  kOutput,
  kOutputBias,
  kNormWeight,
  kNormBias,
  kAttentionWeights,
};

// The block of these weights, which are contiguous. `split` is [B, 64, 2, heads, head
// width], the shape of queries and keys; the generator is by pair, [4096, generated].
Attention attention_of(const std::vector<Tensor>& w, at::IntArrayRef split,
                       double gab_epsilon, double epsilon) {
  TORCH_CHECK(w.size() == kAttentionWeights && split.size() == 5 && w[kQueryKey].dim() == 2,
              "weights of no attention");
  Attention block{};
  block.heads = split[3];
  block.head_width = split[4];
  const int64_t width = w[kQueryKey].size(1);
  TORCH_CHECK(are_heads(block.heads, block.head_width, width) &&
                  whole({width, block.head_width}),
              "widths that have no kernels");
  const at::ScalarType type = w[kQueryKey].scalar_type();
  expect(w[kQueryKey], type, {2 * width, width});
  expect(w[kValue], type, {width, width});
  expect_gab(&w[kSquareWeight], type, width, block.heads);
  expect(w[kOutput], type, {width, width});
  for (const int weight : {kOutputBias, kNormWeight, kNormBias}) {
    expect(w[weight], type, {width});
  }
  block.width = width;
  block.joint = 3 * width + round_up_32(w[kSquareWeight].size(0));
  block.norm = norm_of(w[kNormWeight], w[kNormBias], epsilon);
  block.gab = gab_of(&w[kSquareWeight], gab_epsilon);
  block.query_key = data(w[kQueryKey]);
  block.value = data(w[kValue]);
  block.output = data(w[kOutput]);
  block.output_bias = data(w[kOutputBias]);
  return block;
}

Tensor pack_attention(const std::vector<Tensor>& weights, at::IntArrayRef split,
                      bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const Attention block = attention_of(w, split, 0.0, 0.0);
  return pack(kernels_of(w[0], quantised, {block.width}).pack_attention, block);
}

// Tokens [B, 64, width] to tokens. To the biases are added `more` [B · heads, 4096],
// or what `attacks`, bitboards i64 [B, 2, 64], are worth to each head, f32 [heads, 2].
Tensor attention(const Tensor& tokens, const std::optional<Tensor>& more,
                 const std::optional<Tensor>& attacks, const std::optional<Tensor>& worth,
                 const std::vector<Tensor>& weights, const Tensor& packed_weights,
                 at::IntArrayRef split, double gab_epsilon, double epsilon, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const Tensor x = tokens.contiguous();
  Attention block = attention_of(w, split, gab_epsilon, epsilon);
  expect_tokens(x, w[0].scalar_type(), block.width);
  block.boards = x.numel() / (kSquares * block.width);
  const Tensor biases = more ? more->contiguous() : Tensor();
  if (more) {
    expect(biases, x.scalar_type(), {block.boards * block.heads, kPairs});
    block.more = data(biases);
  }
  const Tensor pairs = attacks ? attacks->contiguous() : Tensor();
  const Tensor worths = worth ? worth->contiguous() : Tensor();
  if (attacks) {
    expect_attacks(pairs, worths, at::kFloat, block.boards, block.heads);
    block.attacks = static_cast<const uint64_t*>(data(pairs));
    block.worth = worths.const_data_ptr<float>();
  }
  block.x = data(x);
  Tensor y = like(x, x.sizes());
  block.y = y.mutable_data_ptr();
  const Kernels& by = kernels_of(x, quantised, {block.width});
  block.packed = packed(by.pack_attention, block, packed_weights);
  on_boards(by, block.boards, [&](const auto& run, auto first, auto last) {
    run.attention(block, first, last);
  });
  return y;
}

// The block of these weights, which are contiguous: of the wider layer and its bias, of
// the narrower one likewise, of the norm likewise.
FeedForward feed_forward_of(const std::vector<Tensor>& w, double epsilon) {
  TORCH_CHECK(w.size() == 6 && w[0].dim() == 2, "weights of no feed-forward");
  const int64_t hidden = w[0].size(0), width = w[0].size(1);
  TORCH_CHECK(whole({hidden, width}), "widths that have no kernels");
  const at::ScalarType type = w[0].scalar_type();
  expect(w[0], type, {hidden, width});
  expect(w[1], type, {hidden});
  expect(w[2], type, {width, hidden});
  for (const int weight : {3, 4, 5}) {
    expect(w[weight], type, {width});
  }
  FeedForward block{};
  block.width = width;
  block.hidden = hidden;
  block.norm = norm_of(w[4], w[5], epsilon);
  block.widen = data(w[0]);
  block.widen_bias = data(w[1]);
  block.narrow = data(w[2]);
  block.narrow_bias = data(w[3]);
  return block;
}

Tensor pack_feed_forward(const std::vector<Tensor>& weights, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const FeedForward block = feed_forward_of(w, 0.0);
  const Kernels& by = kernels_of(w[0], quantised, {block.width, block.hidden});
  return pack(by.pack_feed_forward, block);
}

// Tokens [B, 64, width] to tokens.
Tensor feed_forward(const Tensor& tokens, const std::vector<Tensor>& weights,
                    const Tensor& packed_weights, double epsilon, bool quantised) {
  const std::vector<Tensor> w = contiguous(weights);
  const Tensor x = tokens.contiguous();
  FeedForward block = feed_forward_of(w, epsilon);
  expect_tokens(x, w[0].scalar_type(), block.width);
  block.boards = x.numel() / (kSquares * block.width);
  block.x = data(x);
  Tensor y = like(x, x.sizes());
  block.y = y.mutable_data_ptr();
  const Kernels& by = kernels_of(x, quantised, {block.width, block.hidden});
  block.packed = packed(by.pack_feed_forward, block, packed_weights);
  on_boards(by, block.boards, [&](const auto& run, auto first, auto last) {
    run.feed_forward(block, first, last);
  });
  return y;
}

TORCH_LIBRARY_FRAGMENT(tessera, library) {
  library.def("pack_attention(Tensor[] weights, int[] split, bool int8) -> Tensor",
              [](std::vector<Tensor> weights, std::vector<int64_t> split, bool int8) {
                return pack_attention(weights, split, int8);
              });
  library.def(
      "attention(Tensor x, Tensor? more, Tensor? attacks, Tensor? worth, Tensor[] weights, "
      "Tensor packed, int[] split, float gab_epsilon, float epsilon, bool int8) -> Tensor",
      [](const Tensor& x, const std::optional<Tensor>& more,
         const std::optional<Tensor>& attacks, const std::optional<Tensor>& worth,
         std::vector<Tensor> weights, const Tensor& packed, std::vector<int64_t> split,
         double gab_epsilon, double epsilon, bool int8) {
        return attention(x, more, attacks, worth, weights, packed, split, gab_epsilon,
                         epsilon, int8);
      });
  library.def("pack_feed_forward(Tensor[] weights, bool int8) -> Tensor",
              [](std::vector<Tensor> weights, bool int8) {
                return pack_feed_forward(weights, int8);
              });
  library.def(
      "feed_forward(Tensor x, Tensor[] weights, Tensor packed, float epsilon, bool int8) "
      "-> Tensor",
      [](const Tensor& x, std::vector<Tensor> weights, const Tensor& packed,
         double epsilon, bool int8) {
        return feed_forward(x, weights, packed, epsilon, int8);
      });
}

// x + narrow(mish(widen(x))), normalised.
constexpr const char* kFeedForward = R"(
graph(%x, %widen, %widen_bias, %narrow, %narrow_bias, %weight, %bias, %one, %shape,
      %epsilon, %cudnn):
  %wide = aten::linear(%x, %widen, %widen_bias)
  %active = aten::mish(%wide)
  %narrowed = aten::linear(%active, %narrow, %narrow_bias)
  %sum = aten::add(%x, %narrowed, %one)
  %y = aten::layer_norm(%sum, %shape, %weight, %bias, %epsilon, %cudnn)
  return (%y))";

const std::string kFusedFeedForward = R"(
graph(%x, %widen, %widen_bias, %narrow, %narrow_bias, %weight, %bias, %one, %shape,
      %epsilon, %cudnn):
  %weights : Tensor[] = prim::ListConstruct(%widen, %widen_bias, %narrow, %narrow_bias,
      %weight, %bias)
  %int8 : bool = prim::Constant[value=INT8]()
  %packed : Tensor = tessera::pack_feed_forward(%weights, %int8)
  %y = tessera::feed_forward(%x, %weights, %packed, %epsilon, %int8)
  return (%y))";

bool is_feed_forward(const Match& match, const Constants::Names& names) {
  const Constants constants(match, names);
  const Ints widen = constants.sizes("widen");
  if (widen.size() != 2) {
    return false;
  }
  const int64_t hidden = widen[0], width = widen[1];
  return whole({hidden, width}) && constants.are({{"one", 1}, {"shape", Ints{width}}}) &&
         constants.have_sizes({{"widen_bias", {hidden}},
                               {"narrow", {width, hidden}},
                               {"narrow_bias", {width}},
                               {"weight", {width}},
                               {"bias", {width}}});
}

// x + attention(x) with generated biases, normalised.
const std::string kAttentionInputs = R"(
graph(%x, %more, %query_key, %value, %squares, %summary, %summary_bias,
      %summary_norm_weight, %summary_norm_bias, %heads, %heads_bias, %heads_norm_weight,
      %heads_norm_bias, %generator, %output, %output_bias, %norm_weight, %norm_bias,
      %none, %split, %order, %zero, %split_value, %one1, %two1, %one2, %two2, %one3, %two3,
      %hidden, %gab_epsilon, %cudnn1, %asked, %gab_epsilon2, %cudnn2, %by_head, %one4,
      %one5, %by_square, %by_board, %dropout, %causal, %scale, %grouped, %joined, %one6,
      %shape, %epsilon, %cudnn3):)";

const std::string kAttention = kAttentionInputs + R"(
  %query_keys = aten::linear(%x, %query_key, %none)
  %split_query_keys = aten::view(%query_keys, %split)
  %ordered = aten::permute(%split_query_keys, %order)
  %both : Tensor[] = aten::unbind(%ordered, %zero)
  %query : Tensor, %key : Tensor = prim::ListUnpack(%both)
  %values = aten::linear(%x, %value, %none)
  %split_values = aten::view(%values, %split_value)
  %values_by_head = aten::transpose(%split_values, %one1, %two1)
  %compressed = aten::linear(%x, %squares, %none)
  %board = aten::flatten(%compressed, %one2, %two2)
  %summary_sum = aten::linear(%board, %summary, %summary_bias)
  %summary_active = aten::silu(%summary_sum)
  %summarised = aten::layer_norm(%summary_active, %hidden, %summary_norm_weight,
      %summary_norm_bias, %gab_epsilon, %cudnn1)
  %heads_sum = aten::linear(%summarised, %heads, %heads_bias)
  %heads_active = aten::silu(%heads_sum)
  %asked_for = aten::layer_norm(%heads_active, %asked, %heads_norm_weight,
      %heads_norm_bias, %gab_epsilon2, %cudnn2)
  %asked_by_head = aten::view(%asked_for, %by_head)
  %biases = aten::addmm(%more, %asked_by_head, %generator, %one4, %one5)
  %biases_by_square = aten::view(%biases, %by_square)
  %biases_by_board = aten::view(%biases_by_square, %by_board)
  %seen = aten::scaled_dot_product_attention(%query, %key, %values_by_head,
      %biases_by_board, %dropout, %causal, %scale, %grouped)
  %seen_by_square = aten::transpose(%seen, %one3, %two3)
  %seen_joined = aten::reshape(%seen_by_square, %joined)
  %out = aten::linear(%seen_joined, %output, %output_bias)
  %sum = aten::add(%x, %out, %one6)
  %y = aten::layer_norm(%sum, %shape, %norm_weight, %norm_bias, %epsilon, %cudnn3)
  return (%y))";

const std::string kFusedAttention = kAttentionInputs + R"(
  %generator_view : Tensor = aten::t(%generator)
  %generator_by_pair : Tensor = aten::contiguous(%generator_view, %zero)
  %weights : Tensor[] = prim::ListConstruct(%query_key, %value, %squares, %summary,
      %summary_bias, %summary_norm_weight, %summary_norm_bias, %heads, %heads_bias,
      %heads_norm_weight, %heads_norm_bias, %generator_by_pair, %output, %output_bias,
      %norm_weight, %norm_bias)
  %int8 : bool = prim::Constant[value=INT8]()
  %packed : Tensor = tessera::pack_attention(%weights, %split, %int8)
  %y = tessera::attention(%x, %more, %none, %none, %weights, %packed, %split,
      %gab_epsilon, %epsilon, %int8)
  return (%y))";

bool is_attention(const Match& match, const Constants::Names& names) {
  const Constants constants(match, names);
  const auto split = constants["split"], gab_epsilon = constants["gab_epsilon"];
  const Ints query_key = constants.sizes("query_key");
  const Ints summary = constants.sizes("summary"), generator = constants.sizes("generator");
  if (!split || !split->isIntList() || split->toIntVector().size() != 5 ||
      !gab_epsilon || query_key.size() != 2 || summary.size() != 2 || generator.size() != 2) {
    return false;
  }
  const int64_t heads = split->toIntVector()[3], head_width = split->toIntVector()[4];
  const int64_t width = query_key[1], hidden = summary[0], generated = generator[0];
  if (!are_heads(heads, head_width, width)) {
    return false;
  }
  const int64_t compress = summary[1] / kSquares, asked = heads * generated;
  const c10::IValue none;
  return whole({width, head_width, hidden, generated}) &&
         constants.are({{"split", Ints{-1, kSquares, 2, heads, head_width}},
                        {"order", Ints{2, 0, 3, 1, 4}},
                        {"split_value", Ints{-1, kSquares, heads, head_width}},
                        {"hidden", Ints{hidden}},
                        {"asked", Ints{asked}},
                        {"by_head", Ints{-1, generated}},
                        {"by_square", Ints{-1, kSquares, kSquares}},
                        {"by_board", Ints{-1, heads, kSquares, kSquares}},
                        {"joined", Ints{-1, kSquares, width}},
                        {"shape", Ints{width}},
                        {"gab_epsilon2", *gab_epsilon},
                        {"none", none},
                        {"scale", none},
                        {"dropout", 0.0},
                        {"causal", false},
                        {"zero", 0},
                        {"one1", 1},
                        {"two1", 2},
                        {"one2", 1},
                        {"two2", 2},
                        {"one3", 1},
                        {"two3", 2},
                        {"one4", 1},
                        {"one5", 1},
                        {"one6", 1}}) &&
         constants.have_sizes({{"query_key", {2 * width, width}},
                               {"value", {width, width}},
                               {"squares", {compress, width}},
                               {"summary", {hidden, kSquares * compress}},
                               {"summary_bias", {hidden}},
                               {"summary_norm_weight", {hidden}},
                               {"summary_norm_bias", {hidden}},
                               {"heads", {asked, hidden}},
                               {"heads_bias", {asked}},
                               {"heads_norm_weight", {asked}},
                               {"heads_norm_bias", {asked}},
                               {"generator", {generated, kPairs}},
                               {"output", {width, width}},
                               {"output_bias", {width}},
                               {"norm_weight", {width}},
                               {"norm_bias", {width}}});
}

// The first tensor of a list that is constant; undefined for all else.
Tensor first_of(const torch::jit::Value* list) {
  if (list->node()->kind() == c10::prim::ListConstruct && !list->node()->inputs().empty()) {
    return tensor_of(list->node()->input(0));
  }
  const auto constant = torch::jit::toIValue(list);
  const bool is_list = constant && constant->isTensorList() && !constant->toTensorList().empty();
  return is_list ? constant->toTensorVector().front() : Tensor();
}

}  // namespace

bool multiplies_in_int8(const Graph& graph) {
  // Operators whose last input says so, and where their weights are.
  static const std::map<c10::Symbol, size_t> operators = {
      {c10::Symbol::fromQualString("tessera::attention"), 4},
      {c10::Symbol::fromQualString("tessera::feed_forward"), 1},
      {c10::Symbol::fromQualString("tessera::dense_mish"), 1},
      {c10::Symbol::fromQualString("tessera::policy"), 1},
  };
  const auto does = [](const torch::jit::Node* node) {
    const auto found = operators.find(node->kind());
    if (found == operators.end() || torch::jit::toIValue(node->inputs().back()) != true) {
      return false;
    }
    const Ints first = weight_sizes(first_of(node->input(found->second)));
    const bool is_pair = node->kind() == c10::Symbol::fromQualString("tessera::feed_forward");
    return first.size() == 2 && fit_int8({first[1], is_pair ? first[0] : first[1]});
  };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), does);
}

void fuse_encoder(const std::shared_ptr<Graph>& graph, const Numbers& numbers) {
  if (!has_kernels(numbers)) {
    return;
  }
  std::shared_ptr<Graph> rewritten = graph;
  torch::jit::SubgraphRewriter attentions;
  attentions.RegisterRewritePattern(kAttention, with_int8(kFusedAttention, numbers));
  attentions.runOnGraph(rewritten, is_attention);
  torch::jit::SubgraphRewriter feed_forwards;
  feed_forwards.RegisterRewritePattern(kFeedForward, with_int8(kFusedFeedForward, numbers));
  feed_forwards.runOnGraph(rewritten, is_feed_forward);
  // The generators' transposes and packed weights become constants.
  torch::jit::ConstantPropagation(rewritten);
}

}  // namespace tessera::fused
