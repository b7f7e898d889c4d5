// The blocks of a network on the CPU, forward and backward, as kernels over chunks of boards
// whose activations stay in a core's cache. They are compiled for several instruction sets;
// tensors are plain memory here, in f32 or bf16, in both cases with sums in f32.
#pragma once

#include <cstdint>

namespace tessera::fused {

constexpr int64_t kSquares = 64;
constexpr int64_t kPairs = kSquares * kSquares;

// Boards processed together. For tessera-xs, the buffers of a chunk fill a megabyte.
constexpr int64_t kChunk = 8;

// Inputs of layers in int8 are a multiple of the first, so that vectors of all instruction
// sets fit, and no more than the second, so that sums fit in 32 bits.
constexpr int64_t kQuantisedMultiple = 64;
constexpr int64_t kQuantisedMost = 1 << 17;

// The norm at a block's end: y = norm(x + gain · f(x)).
struct NormEnd {
  float gain, epsilon;
  // Whether the mean is subtracted and a bias added.
  bool centred;
  const void* weight;
  // Null unless centred.
  const void* bias;
};

// A norm's values kept for backward; null in inference.
struct NormSaved {
  // x + gain · f(x) without mean and in units of its deviation, [tokens, width].
  void* normal;
  // One over the deviation, [tokens].
  float* inverse;
};

// Sums of gradients of a norm's parameters, [width].
struct NormSums {
  float *weight, *bias;
};

// Norms inside GAB: centred, with a bias.
struct GabNorm {
  float epsilon;
  const void *weight, *bias;
};

// The generator of a layer's attention biases from the board.
struct Gab {
  // Features kept per square and per board, and the width per head that the generator reads.
  int64_t compress, hidden, generated;
  // [compress, width].
  const void* squares;
  // [hidden, 64 · compress] and [hidden].
  const void *summary, *summary_bias;
  GabNorm summary_norm;
  // [heads · generated, hidden] and [heads · generated].
  const void *heads, *heads_bias;
  GabNorm heads_norm;
  // [4096, generated].
  const void* generator;
};

// Accumulated gradients, shaped like the parameters, except [generated, 4096] for the generator;
// the squares' gradients are with the projections.
struct GabSums {
  float *summary, *summary_bias, *heads, *heads_bias, *generator;
  NormSums summary_norm, heads_norm;
};

// x + gain · attention(x), normalised.
struct Attention {
  int64_t boards, width, heads, head_width;
  // Columns of all projections: 3 · width, plus `compress` padded to a multiple of 32.
  int64_t joint;
  NormEnd norm;
  Gab gab;

  // [boards · 64, width].
  const void* x;
  // [2 · width, width], then three times [width, width] and [width].
  const void *query_key, *value, *output, *output_bias;
  // The squares that each square attacks, then those that attack it, [boards, 2, 64], and each
  // head's weights of both, [heads, 2]; null without attacks.
  const uint64_t* attacks;
  const float* worth;

  // [boards · 64, width].
  void* y;
  // For backward: [boards · 64, joint], [boards · heads, 64, 64],
  // [boards · 64, width]; null in inference.
  void *projected, *probabilities, *attended;
  NormSaved saved;
  // Its weights packed for kernels of its kind; null if they pack at each call.
  const void* packed;
};

// [boards · 64, width].
struct AttentionGradients {
  const void* y;
  void* x;
};

// Accumulated gradients of the parameters.
struct AttentionSums {
  // [joint, width], [width, width], [width].
  float *projection, *output, *output_bias;
  // [heads, 2].
  float* worth;
  NormSums norm;
  GabSums gab;
};

// x + gain · narrow(mish(widen(x))), normalised.
struct FeedForward {
  int64_t boards, width, hidden;
  NormEnd norm;

  // [boards · 64, width].
  const void* x;
  // [hidden, width], [hidden], [width, hidden], [width].
  const void *widen, *widen_bias, *narrow, *narrow_bias;

  // [boards · 64, width].
  void* y;
  // Before mish, for backward: [boards · 64, hidden]; null in inference.
  void* widened;
  NormSaved saved;
  // Its weights packed for kernels of its kind; null if they pack at each call.
  const void* packed;
};

struct FeedForwardGradients {
  // [boards · 64, width].
  const void* y;
  void* x;
};

struct FeedForwardSums {
  // Shaped like the parameters.
  float *widen, *widen_bias, *narrow, *narrow_bias;
  NormSums norm;
};

// Dense layers with the same input tokens, each followed by mish.
constexpr int64_t kMostLayers = 8;
struct DenseLayers {
  int64_t boards, width, count;
  // Outputs of each layer, and of all, padded to a multiple of 32.
  int64_t outputs[kMostLayers], joint;

  // [boards · 64, width].
  const void* x;
  // [outputs, width] and [outputs].
  const void *weights[kMostLayers], *biases[kMostLayers];
  // [boards · 64, outputs].
  void* y[kMostLayers];
  // Before mish, for backward: [boards · 64, joint]; null in inference.
  void* kept;
  // Its weights packed for kernels of its kind; null if they pack at each call.
  const void* packed;
};

struct DenseGradients {
  // As in DenseLayers.
  const void* y[kMostLayers];
  void* x;
};

struct DenseSums {
  // [joint, width] and [joint].
  float *weights, *biases;
};

// Number of policy moves, and of promotion pieces other than the knight.
constexpr int64_t kPolicy = 1858;
constexpr int64_t kPromotions = 3;
// Slots of move logits: pairs of squares, then promotions.
constexpr int64_t kPlaces = kPairs + 8 * 8 * kPromotions;

// Move logits by attention between squares.
struct Policy {
  int64_t boards, width;

  // [boards · 64, width].
  const void* x;
  // [width, width] and [width] each, and [3, width].
  const void *query, *query_bias, *key, *key_bias, *promotion;
  // The index of each move among 4096 pairs and 192 promotions, [1858].
  const int64_t* places;

  // [boards, 1858].
  float* logits;
  // For backward: queries and keys, [boards · 64, 2 · width]; null in inference.
  void* projected;
  // Its weights packed for kernels of its kind; null if they pack at each call.
  const void* packed;
};

struct PolicyGradients {
  // [boards, 1858].
  const float* logits;
  // [boards · 64, width].
  void* x;
};

struct PolicySums {
  // [2 · width, width], then shaped like the parameters.
  float *projection, *query_bias, *key_bias, *promotion;
};

// Words of a row that are bitboards; six scalars follow: castling rights (4), the side to move,
// and plies since the last capture or pawn move, which are scaled.
constexpr int64_t kBoards = 104;
constexpr int64_t kScalars = 6;
constexpr float kRule50Scale = 0.01f;

// The features of squares: bitboards, scalars, a zero and a one (112 in all, as in Lc0), attacker
// counts, and zero padding.
struct Inputs {
  // Words of a row, and features of a square including padding.
  int64_t row_width, width;
  // [boards, row_width].
  const uint64_t* rows;
  // [boards · 64, attacks_width]; null with a width of 0.
  const uint8_t* attacks;
  int64_t attacks_width;
  // [boards · 64, width].
  void* out;
};

// (features · weightᵀ + bias) · multiply + add, the last two by square.
struct Embedding {
  int64_t boards, width, inputs;
  // [boards · 64, inputs].
  const void* features;
  // [width, inputs], [width], and twice [64, width].
  const void *weight, *bias, *multiply, *add;
  // [boards · 64, width].
  void* y;
  // Before `multiply`, for backward: [boards · 64, width]; null in inference.
  void* projected;
  // Its weights packed for kernels of its kind; null if they pack at each call.
  const void* packed;
};

struct EmbeddingGradients {
  // [boards · 64, width].
  const void* y;
};

struct EmbeddingSums {
  // Shaped like the parameters.
  float *weight, *bias, *multiply, *add;
};

// A step of NAdam, always in f32; vectors `[count]`.
struct Nadam {
  int64_t count;
  const float* gradient;
  // The averages, and the output of the step.
  float *mean, *square, *direction;
  // 1 − β₁, β₂ and 1 − β₂: in f32 one cannot be derived from the other.
  float mean_share, beta2, square_share, epsilon;
  // The factor of the mean square; the shares of gradient and mean.
  float correction, fresh, kept;
};

// Kernels of one instruction set and one dtype; kernels over boards process the boards from
// `first` to before `last`. Functions that pack weights return their size in bytes and write to
// memory unless it is null.
struct Kernels {
  void (*attention)(const Attention&, int64_t first, int64_t last);
  int64_t (*pack_attention)(const Attention&, void* out);
  void (*attention_backward)(const Attention&, const AttentionGradients&,
                             const AttentionSums&, int64_t first, int64_t last);
  void (*feed_forward)(const FeedForward&, int64_t first, int64_t last);
  int64_t (*pack_feed_forward)(const FeedForward&, void* out);
  void (*feed_forward_backward)(const FeedForward&, const FeedForwardGradients&,
                                const FeedForwardSums&, int64_t first, int64_t last);
  void (*dense)(const DenseLayers&, int64_t first, int64_t last);
  int64_t (*pack_dense)(const DenseLayers&, void* out);
  void (*dense_backward)(const DenseLayers&, const DenseGradients&, const DenseSums&,
                         int64_t first, int64_t last);
  void (*policy)(const Policy&, int64_t first, int64_t last);
  int64_t (*pack_policy)(const Policy&, void* out);
  void (*policy_backward)(const Policy&, const PolicyGradients&, const PolicySums&,
                          int64_t first, int64_t last);
  void (*inputs)(const Inputs&, int64_t first, int64_t last);
  void (*embedding)(const Embedding&, int64_t first, int64_t last);
  int64_t (*pack_embedding)(const Embedding&, void* out);
  void (*embedding_backward)(const Embedding&, const EmbeddingGradients&,
                             const EmbeddingSums&, int64_t first, int64_t last);
  void (*nadam)(const Nadam&);
};

}  // namespace tessera::fused
