// The blocks of a network on the CPU, forward and backward, as kernels over chunks of boards whose
// activations stay in a core's cache. The kernels are compiled for several instruction sets. They
// read and write tensors as plain memory, in f32 or bf16. Sums are always in f32.
#pragma once

#include <cstdint>

namespace tessera::fused {

constexpr int64_t kSquares = 64;
constexpr int64_t kPairs = kSquares * kSquares;

// Number of boards that are processed together. For tessera-xs, the buffers of a chunk take a
// megabyte.
constexpr int64_t kChunk = 8;

// The number of inputs of an int8 layer must be a multiple of the first constant, to fit the
// vectors of all instruction sets, and at most the second, so that sums fit in 32 bits.
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

// The values of a norm that backward needs. Null in inference.
struct NormSaved {
  // x + gain · f(x) after subtracting the mean and dividing by the standard deviation, [tokens,
  // width].
  void* normal;
  // The reciprocal of the standard deviation, [tokens].
  float* inverse;
};

// Gradient sums for a norm's parameters, [width].
struct NormSums {
  float *weight, *bias;
};

// A norm inside GAB, which is centred and has a bias.
struct GabNorm {
  float epsilon;
  const void *weight, *bias;
};

// The layers that generate a layer's attention biases from the board.
struct Gab {
  // The number of features per square, the number of features per board, and the number of features
  // per head that the generator reads.
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

// Accumulated gradients, in the shapes of the parameters, except that the generator's gradient is
// [generated, 4096]. The gradient for the compression of squares is part of that of the
// projections.
struct GabSums {
  float *summary, *summary_bias, *heads, *heads_bias, *generator;
  NormSums summary_norm, heads_norm;
};

// The block norm(x + gain · attention(x)).
struct Attention {
  int64_t boards, width, heads, head_width;
  // Total number of columns of the projections: 3 · width plus `compress`, padded to a multiple of
  // 32.
  int64_t joint;
  NormEnd norm;
  Gab gab;

  // [boards · 64, width].
  const void* x;
  // [2 · width, width], three times [width, width], and [width].
  const void *query_key, *value, *output, *output_bias;
  // For each square the squares that its piece attacks and the squares whose pieces attack it,
  // [boards, 2, 64], and each head's two attack weights, [heads, 2]. Null without attacks.
  const uint64_t* attacks;
  const float* worth;

  // [boards · 64, width].
  void* y;
  // For backward: [boards · 64, joint], [boards · heads, 64, 64], [boards · 64, width]. Null in
  // inference.
  void *projected, *probabilities, *attended;
  NormSaved saved;
  // The weights, packed for the kernel that reads them. Null if the kernel packs them in each call.
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

// The block norm(x + gain · narrow(mish(widen(x)))).
struct FeedForward {
  int64_t boards, width, hidden;
  NormEnd norm;

  // [boards · 64, width].
  const void* x;
  // [hidden, width], [hidden], [width, hidden], [width].
  const void *widen, *widen_bias, *narrow, *narrow_bias;

  // [boards · 64, width].
  void* y;
  // The values before mish, for backward: [boards · 64, hidden]. Null in inference.
  void* widened;
  NormSaved saved;
  // The weights, packed for the kernel that reads them. Null if the kernel packs them in each call.
  const void* packed;
};

struct FeedForwardGradients {
  // [boards · 64, width].
  const void* y;
  void* x;
};

struct FeedForwardSums {
  // In the shapes of the parameters.
  float *widen, *widen_bias, *narrow, *narrow_bias;
  NormSums norm;
};

// Dense layers that share their input tokens, each followed by mish.
constexpr int64_t kMostLayers = 8;
struct DenseLayers {
  int64_t boards, width, count;
  // The number of outputs of each layer, and of all layers together, the latter padded to a
  // multiple of 32.
  int64_t outputs[kMostLayers], joint;

  // [boards · 64, width].
  const void* x;
  // [outputs, width] and [outputs].
  const void *weights[kMostLayers], *biases[kMostLayers];
  // [boards · 64, outputs].
  void* y[kMostLayers];
  // The values before mish, for backward: [boards · 64, joint]. Null in inference.
  void* kept;
  // The weights, packed for the kernel that reads them. Null if the kernel packs them in each call.
  const void* packed;
};

struct DenseGradients {
  // The gradients of DenseLayers::y.
  const void* y[kMostLayers];
  void* x;
};

struct DenseSums {
  // [joint, width] and [joint].
  float *weights, *biases;
};

// Number of policy entries, and of promotion pieces other than the knight.
constexpr int64_t kPolicy = 1858;
constexpr int64_t kPromotions = 3;
// Number of logits of a board: pairs of squares, then promotions.
constexpr int64_t kPlaces = kPairs + 8 * 8 * kPromotions;

// A policy head: move logits from attention between squares.
struct Policy {
  int64_t boards, width;

  // [boards · 64, width].
  const void* x;
  // Twice [width, width] and [width], then [3, width].
  const void *query, *query_bias, *key, *key_bias, *promotion;
  // The index of each move's logit among those of 4096 pairs of squares and 192 promotions, [1858].
  const int64_t* places;

  // [boards, 1858].
  float* logits;
  // Queries and keys, for backward: [boards · 64, 2 · width]. Null in inference.
  void* projected;
  // The weights, packed for the kernel that reads them. Null if the kernel packs them in each call.
  const void* packed;
};

struct PolicyGradients {
  // [boards, 1858].
  const float* logits;
  // [boards · 64, width].
  void* x;
};

struct PolicySums {
  // [2 · width, width], then in the shapes of the parameters.
  float *projection, *query_bias, *key_bias, *promotion;
};

// Number of words in a row that are bitboards. Six scalars follow them: four castling rights, the
// side to move, and the plies since the last capture or pawn move. The plies are scaled.
constexpr int64_t kBoards = 104;
constexpr int64_t kScalars = 6;
constexpr float kRule50Scale = 0.01f;

// The features of squares: bitboards, scalars, a zero and a one (112 in total, as in Lc0), then
// attack features, and zeros as padding.
struct Inputs {
  // Number of words per row, and of features per square including padding.
  int64_t row_width, width;
  // [boards, row_width].
  const uint64_t* rows;
  // [boards · 64, attacks_width]. Null if the width is 0.
  const uint8_t* attacks;
  int64_t attacks_width;
  // [boards · 64, width].
  void* out;
};

// (features · weightᵀ + bias) · multiply + add, where `multiply` and `add` depend on the square.
struct Embedding {
  int64_t boards, width, inputs;
  // [boards · 64, inputs].
  const void* features;
  // [width, inputs], [width], then twice [64, width].
  const void *weight, *bias, *multiply, *add;
  // [boards · 64, width].
  void* y;
  // The values before `multiply`, for backward: [boards · 64, width]. Null in inference.
  void* projected;
  // The weights, packed for the kernel that reads them. Null if the kernel packs them in each call.
  const void* packed;
};

struct EmbeddingGradients {
  // [boards · 64, width].
  const void* y;
};

struct EmbeddingSums {
  // In the shapes of the parameters.
  float *weight, *bias, *multiply, *add;
};

// A NAdam step, always in f32. Each vector is [count].
struct Nadam {
  int64_t count;
  const float* gradient;
  // The running means of the gradient and of its square, and the output of the step.
  float *mean, *square, *direction;
  // 1 − β₁, β₂ and 1 − β₂. In f32, 1 − β₂ cannot be derived exactly from β₂.
  float mean_share, beta2, square_share, epsilon;
  // The factor that corrects `square`, and the factors of the gradient and of the mean in the step.
  float correction, fresh, kept;
};

// The kernels of one instruction set and one dtype. Kernels over boards process the boards from
// `first` up to but not including `last`. Functions that pack weights return the packed size in
// bytes, and write the packed weights to `memory` unless it is null.
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
