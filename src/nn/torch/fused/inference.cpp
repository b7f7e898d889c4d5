// Encoder blocks as operators for the graphs of frozen networks.
#include "inference.h"
#include "rewriting.h"

#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/library.h>

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

// Tokens [B, 64, width] to tokens. To the biases are added `more` [B · heads, 4096],
// or what `attacks`, bitboards i64 [B, 2, 64], are worth to each head, f32 [heads, 2].
// `split` is [B, 64, 2, heads, head width], the shape of queries and keys; the generator
// is by pair, [4096, generated].
Tensor attention(const Tensor& tokens, const std::optional<Tensor>& more,
                 const std::optional<Tensor>& attacks, const std::optional<Tensor>& worth,
                 const std::vector<Tensor>& weights, at::IntArrayRef split,
                 double gab_epsilon, double epsilon) {
  TORCH_CHECK(kernels(kType) != nullptr && weights.size() == kAttentionWeights &&
                  split.size() == 5 && weights[kSquareWeight].dim() == 2 &&
                  weights[kSummary].dim() == 2 && weights[kGenerator].dim() == 2,
              "weights of no attention");
  const std::vector<Tensor> w = contiguous(weights);
  const Tensor x = tokens.contiguous();
  Attention block{};
  block.heads = split[3];
  block.head_width = split[4];
  const int64_t compress = w[kSquareWeight].size(0), hidden = w[kSummary].size(0);
  const int64_t generated = w[kGenerator].size(1);
  TORCH_CHECK(whole({block.heads * block.head_width, block.head_width, hidden, generated}),
              "widths that have no kernels");
  const int64_t width = block.heads * block.head_width, asked = block.heads * generated;
  expect_tokens(x, width);
  expect(w[kQueryKey], {2 * width, width});
  expect(w[kValue], {width, width});
  expect(w[kSquareWeight], {compress, width});
  expect(w[kSummary], {hidden, kSquares * compress});
  for (const int weight : {kSummaryBias, kSummaryNormWeight, kSummaryNormBias}) {
    expect(w[weight], {hidden});
  }
  expect(w[kHeads], {asked, hidden});
  for (const int weight : {kHeadsBias, kHeadsNormWeight, kHeadsNormBias}) {
    expect(w[weight], {asked});
  }
  expect(w[kGenerator], {kPairs, generated});
  expect(w[kOutput], {width, width});
  for (const int weight : {kOutputBias, kNormWeight, kNormBias}) {
    expect(w[weight], {width});
  }
  block.width = width;
  block.boards = x.numel() / (kSquares * block.width);
  block.joint = 3 * block.width + whole_tiles(w[kSquareWeight].size(0));
  const Tensor biases = more ? more->contiguous() : Tensor();
  if (more) {
    expect(biases, {block.boards * block.heads, kPairs});
    block.more = data(biases);
  }
  const Tensor pairs = attacks ? attacks->contiguous() : Tensor();
  const Tensor worths = worth ? worth->contiguous() : Tensor();
  if (attacks) {
    TORCH_CHECK(worth && pairs.is_cpu() && pairs.scalar_type() == at::kLong &&
                    pairs.numel() == block.boards * 2 * kSquares && worths.is_cpu() &&
                    worths.scalar_type() == at::kFloat && worths.numel() == 2 * block.heads,
                "attacks of other boards");
    block.attacks = static_cast<const uint64_t*>(data(pairs));
    block.worth = worths.const_data_ptr<float>();
  }
  block.norm = norm_of(w[kNormWeight], w[kNormBias], epsilon);
  block.gab = gab_of(&w[kSquareWeight], gab_epsilon);
  block.x = data(x);
  block.query_key = data(w[kQueryKey]);
  block.value = data(w[kValue]);
  block.output = data(w[kOutput]);
  block.output_bias = data(w[kOutputBias]);
  Tensor y = like(x, x.sizes());
  block.y = y.mutable_data_ptr();
  on_boards(kType, block.boards, [&](const auto& run, auto first, auto last) {
    run.attention(block, first, last);
  });
  return y;
}

// Tokens [B, 64, width] to tokens. The weights: of the wider layer and its bias, of
// the narrower one likewise, of the norm likewise.
Tensor feed_forward(const Tensor& tokens, const std::vector<Tensor>& weights,
                    double epsilon) {
  TORCH_CHECK(kernels(kType) != nullptr && weights.size() == 6 && weights[0].dim() == 2,
              "weights of no feed-forward");
  const std::vector<Tensor> w = contiguous(weights);
  const Tensor x = tokens.contiguous();
  FeedForward block{};
  const int64_t hidden = w[0].size(0), width = w[0].size(1);
  TORCH_CHECK(whole({hidden, width}), "widths that have no kernels");
  expect_tokens(x, width);
  expect(w[1], {hidden});
  expect(w[2], {width, hidden});
  for (const int weight : {3, 4, 5}) {
    expect(w[weight], {width});
  }
  block.width = width;
  block.boards = x.numel() / (kSquares * block.width);
  block.hidden = hidden;
  block.norm = norm_of(w[4], w[5], epsilon);
  block.x = data(x);
  block.widen = data(w[0]);
  block.widen_bias = data(w[1]);
  block.narrow = data(w[2]);
  block.narrow_bias = data(w[3]);
  Tensor y = like(x, x.sizes());
  block.y = y.mutable_data_ptr();
  on_boards(kType, block.boards, [&](const auto& run, auto first, auto last) {
    run.feed_forward(block, first, last);
  });
  return y;
}

TORCH_LIBRARY_FRAGMENT(tessera, library) {
  library.def(
      "attention(Tensor x, Tensor? more, Tensor? attacks, Tensor? worth, "
      "Tensor[] weights, int[] split, float gab_epsilon, float epsilon) -> Tensor",
      [](const Tensor& x, const std::optional<Tensor>& more,
         const std::optional<Tensor>& attacks, const std::optional<Tensor>& worth,
         std::vector<Tensor> weights, std::vector<int64_t> split, double gab_epsilon,
         double epsilon) {
        return attention(x, more, attacks, worth, weights, split, gab_epsilon, epsilon);
      });
  library.def(
      "feed_forward(Tensor x, Tensor[] weights, float epsilon) -> Tensor",
      [](const Tensor& x, std::vector<Tensor> weights, double epsilon) {
        return feed_forward(x, weights, epsilon);
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

constexpr const char* kFusedFeedForward = R"(
graph(%x, %widen, %widen_bias, %narrow, %narrow_bias, %weight, %bias, %one, %shape,
      %epsilon, %cudnn):
  %weights : Tensor[] = prim::ListConstruct(%widen, %widen_bias, %narrow, %narrow_bias,
      %weight, %bias)
  %y = tessera::feed_forward(%x, %weights, %epsilon)
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
  %y = tessera::attention(%x, %more, %none, %none, %weights, %split, %gab_epsilon, %epsilon)
  return (%y))";

bool is_attention(const Match& match, const Constants::Names& names) {
  const Constants constants(match, names);
  const auto split = constants["split"];
  const Ints summary = constants.sizes("summary"), generator = constants.sizes("generator");
  if (!split || !split->isIntList() || split->toIntVector().size() != 5 ||
      summary.size() != 2 || generator.size() != 2) {
    return false;
  }
  const int64_t heads = split->toIntVector()[3], head_width = split->toIntVector()[4];
  const int64_t width = heads * head_width, hidden = summary[0], generated = generator[0];
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
                        {"gab_epsilon2", *constants["gab_epsilon"]},
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

}  // namespace

void fuse_encoder(const std::shared_ptr<Graph>& graph) {
  if (kernels(kType) == nullptr) {
    return;
  }
  std::shared_ptr<Graph> rewritten = graph;
  torch::jit::SubgraphRewriter attentions;
  attentions.RegisterRewritePattern(kAttention, kFusedAttention);
  attentions.runOnGraph(rewritten, is_attention);
  torch::jit::SubgraphRewriter feed_forwards;
  feed_forwards.RegisterRewritePattern(kFeedForward, kFusedFeedForward);
  feed_forwards.runOnGraph(rewritten, is_feed_forward);
  // The generators' transposes become constants.
  torch::jit::ConstantPropagation(rewritten);
}

}  // namespace tessera::fused
