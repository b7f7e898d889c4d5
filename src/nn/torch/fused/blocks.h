// The blocks of an encoder layer on the CPU, forward and backward, as kernels
// over chunks of boards whose activations stay in a core's cache. They are
// compiled for several instruction sets; tensors are plain memory here, of f32
// or of bf16, in both cases with sums in f32.
#pragma once

#include <cstdint>

namespace tessera::fused {

constexpr int64_t kSquares = 64;
constexpr int64_t kPairs = kSquares * kSquares;

// Boards that are worked on together. Those of tessera-xs fill a megabyte with
// all that a chunk needs.
constexpr int64_t kChunk = 8;

// The norm at a block's end: y = norm(x + gain · f(x)).
struct NormEnd {
  float gain, epsilon;
  // Whether the mean is taken off and a bias added.
  bool centred;
  const void* weight;
  // Null unless centred.
  const void* bias;
};

// What a norm keeps for backward.
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

// x + gain · attention(x), normalised.
struct Attention {
  int64_t boards, width, heads, head_width;
  // Numbers a head from which its biases are generated.
  int64_t generated;
  NormEnd norm;

  // [boards · 64, width].
  const void* x;
  // [boards · heads, generated].
  const void* queries_of_bias;
  // [4096, generated].
  const void* generator;
  // [2 · width, width], then three times [width, width] and [width].
  const void *query_key, *value, *output, *output_bias;
  // Squares that each square attacks, then those that attack it, [boards, 2, 64],
  // and what both are worth to each head, [heads, 2]; null without attacks.
  const uint64_t* attacks;
  const float* worth;

  // [boards · 64, width].
  void* y;
  // For backward: [boards · 64, 3 · width], [boards · heads, 64, 64],
  // [boards · 64, width].
  void *projected, *probabilities, *seen;
  NormSaved saved;
};

struct AttentionGradients {
  // [boards · 64, width].
  const void* y;
  void* x;
  // [boards · heads, generated].
  void* queries_of_bias;
};

// To which the gradients of the parameters are added.
struct AttentionSums {
  // [3 · width, width], [width, width], [width].
  float *projection, *output, *output_bias;
  // [generated, 4096], [heads, 2].
  float *generator, *worth;
  NormSums norm;
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
  // Before mish, for backward: [boards · 64, hidden].
  void* widened;
  NormSaved saved;
};

struct FeedForwardGradients {
  // [boards · 64, width].
  const void* y;
  void* x;
};

struct FeedForwardSums {
  // As the parameters.
  float *widen, *widen_bias, *narrow, *narrow_bias;
  NormSums norm;
};

// Kernels of one instruction set and one type of numbers; each works on the
// boards from `first` to before `last`.
struct Kernels {
  void (*attention)(const Attention&, int64_t first, int64_t last);
  void (*attention_backward)(const Attention&, const AttentionGradients&,
                             const AttentionSums&, int64_t first, int64_t last);
  void (*feed_forward)(const FeedForward&, int64_t first, int64_t last);
  void (*feed_forward_backward)(const FeedForward&, const FeedForwardGradients&,
                                const FeedForwardSums&, int64_t first, int64_t last);
};

}  // namespace tessera::fused
