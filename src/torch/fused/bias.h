// Computes the input of the bias generator (GAB, Lc0's smolgen), with Lc0's names. For a board
// whose compressed squares are concatenated to c [64 · compress],
//
//     d = norm(silu(c · dense1ᵀ + b₁))          [hidden]
//     gen_from = norm(silu(d · dense2ᵀ + b₂))   [heads · generated]
//
// where norm(x) = (x − mean) / √(variance + ε) · weight + bias and silu(x) = x · σ(x). In the names
// of parameters, dense1 is `summary` and dense2 is `heads`.
#pragma once

#include "feed_forward.h"

namespace tessera::TESSERA_ISA {

using fused::Gab;
using fused::GabNorm;
using fused::GabSums;

// Number of boards in a chunk, padded to full tiles and transposable blocks.
constexpr int64_t kBoardRows = 32;
static_assert(kChunk <= 16);

TESSERA_INLINE Vector sigmoid(Vector x) {
  return 1.0f / (1.0f + exponential(smaller(-x, splat(20.0f))));
}

// Computes the norm of silu(x) for one row.
template <typename T>
TESSERA_INLINE void silu_norm(const GabNorm& norm, int64_t width, const float* x, T* out) {
  Vector total{}, squares{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i);
    total += h * sigmoid(h);
  }
  const float mean = sum(total) / static_cast<float>(width);
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i);
    const Vector off = h * sigmoid(h) - mean;
    squares += off * off;
  }
  const float variance = sum(squares) / static_cast<float>(width);
  const float scale = 1.0f / std::sqrt(variance + norm.epsilon);
  const T* weight = static_cast<const T*>(norm.weight);
  const T* bias = static_cast<const T*>(norm.bias);
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i);
    store((h * sigmoid(h) - mean) * scale * load(weight + i) + load(bias + i), out + i);
  }
}

// Computes the gradient of x from the gradient of norm(silu(x)), and adds it to `sum_of_x`.
template <typename T>
TESSERA_INLINE void silu_norm_backward(const GabNorm& norm, int64_t width, const float* x,
                                       const float* gradient, T* out, const NormSums& sums,
                                       float* sum_of_x) {
  Vector total{}, squares{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i);
    total += h * sigmoid(h);
  }
  const float share = 1.0f / static_cast<float>(width);
  const float mean = sum(total) * share;
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i);
    const Vector off = h * sigmoid(h) - mean;
    squares += off * off;
  }
  const float scale = 1.0f / std::sqrt(sum(squares) * share + norm.epsilon);
  const T* weight = static_cast<const T*>(norm.weight);
  Vector plain{}, along{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i), g = load(gradient + i);
    const Vector normal = (h * sigmoid(h) - mean) * scale;
    plain += g * load(weight + i);
    along += g * load(weight + i) * normal;
    store(load(sums.weight + i) + g * normal, sums.weight + i);
    store(load(sums.bias + i) + g, sums.bias + i);
  }
  const float level = sum(plain) * share, pull = sum(along) * share;
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector h = load(x + i), s = sigmoid(h);
    const Vector normal = (h * s - mean) * scale;
    const Vector g = load(gradient + i) * load(weight + i);
    const Vector slope = s * (1.0f + h * (1.0f - s));
    const Vector of_x = scale * (g - level - normal * pull) * slope;
    store(of_x, out + i);
    store(load(sum_of_x + i) + of_x, sum_of_x + i);
  }
}

// The packed weights of both layers for matrix products. `gen_width` is heads · generated.
template <typename T>
struct GabWeights {
  uint32_t *dense1, *dense2;

  GabWeights(const Gab& gab, int64_t gen_width, Arena& arena)
      : dense1(arena.take<uint32_t>(kSquares * gab.compress * gab.hidden)),
        dense2(arena.take<uint32_t>(gab.hidden * gen_width)) {}

  void pack(const Gab& gab, int64_t gen_width) const {
    const int64_t squares = kSquares * gab.compress;
    panel_of_transpose(static_cast<const T*>(gab.summary), squares, squares, gab.hidden,
                       dense1);
    panel_of_transpose(static_cast<const T*>(gab.heads), gab.hidden, gab.hidden, gen_width,
                       dense2);
  }
};

// Computes the input for one chunk at a time, and owns the buffers. Backward needs more buffers.
template <typename T>
class GenFrom {
 public:
  GenFrom(const Gab& gab, int64_t gen_width, GabWeights<T> weights, bool is_backward,
          Scratch& scratch)
      : gab_(gab),
        gen_width_(gen_width),
        inputs_(kSquares * gab.compress),
        dense1_(weights.dense1),
        dense2_(weights.dense2) {
    const int64_t hidden = gab.hidden;
    squares_ = scratch.take<T>(kBoardRows * inputs_);
    normed_ = scratch.take<T>(kBoardRows * hidden);
    products_ = scratch.take<float>(kBoardRows * (inputs_ + hidden + gen_width));
    if (is_backward) {
      dense1_back_ = scratch.take<uint32_t>(inputs_ * hidden);
      dense2_back_ = scratch.take<uint32_t>(hidden * gen_width);
      of_squares_ = scratch.take<T>(kBoardRows * inputs_);
      of_dense1_ = scratch.take<T>(kBoardRows * hidden);
      of_gen_from_ = scratch.take<T>(kBoardRows * gen_width);
      before_ = scratch.take<float>(kBoardRows * hidden);
      transposed_ = scratch.take<T>(kBoardRows * (hidden + gen_width));
      packed_ = scratch.take<uint32_t>(kBoardRows * (inputs_ + hidden));
      panel(static_cast<const T*>(gab.summary), inputs_, hidden, inputs_, dense1_back_);
      panel(static_cast<const T*>(gab.heads), hidden, gen_width, hidden, dense2_back_);
    }
  }

  // Computes the generator's input [boards, gen_width]. The boards' rows of compressed squares are
  // `stride` elements apart.
  void forward(const T* compressed, int64_t stride, int64_t boards, T* out) {
    dense1(compressed, stride, boards);
    dense2(boards);
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm(gab_.heads_norm, gen_width_, products_ + board * gen_width_,
                out + board * gen_width_);
    }
  }

  // Writes the gradient of the compressed squares to `of_compressed`, whose rows are also `stride`
  // elements apart. Recomputes forward, at negligible cost.
  void backward(const T* compressed, int64_t stride, int64_t boards, const float* gradient,
                const GabSums& sums, T* of_compressed) {
    const int64_t hidden = gab_.hidden;
    dense1(compressed, stride, boards);
    std::memcpy(before_, products_, static_cast<size_t>(boards * hidden) * sizeof(float));
    dense2(boards);
    std::memset(of_gen_from_, 0, static_cast<size_t>(kBoardRows * gen_width_) * sizeof(T));
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm_backward(gab_.heads_norm, gen_width_, products_ + board * gen_width_,
                         gradient + board * gen_width_, of_gen_from_ + board * gen_width_,
                         sums.heads_norm, sums.heads_bias);
    }
    add_outer({gen_width_, hidden, kBoardRows}, of_gen_from_, gen_width_, normed_, hidden,
              sums.heads, transposed_, packed_);
    product<T>({16, hidden, gen_width_}, of_gen_from_, gen_width_, dense2_back_, hidden,
               products_, hidden, false);
    std::memset(of_dense1_, 0, static_cast<size_t>(kBoardRows * hidden) * sizeof(T));
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm_backward(gab_.summary_norm, hidden, before_ + board * hidden,
                         products_ + board * hidden, of_dense1_ + board * hidden,
                         sums.summary_norm, sums.summary_bias);
    }
    add_outer({hidden, inputs_, kBoardRows}, of_dense1_, hidden, squares_, inputs_,
              sums.summary, transposed_, packed_);
    product<T>({16, inputs_, hidden}, of_dense1_, hidden, dense1_back_, inputs_, products_,
               inputs_, false);
    for (int64_t i = 0; i < boards * inputs_; i += kLanes) {
      store(load(products_ + i), of_squares_ + i);
    }
    for (int64_t token = 0; token < boards * kSquares; ++token) {
      std::memcpy(of_compressed + token * stride, of_squares_ + token * gab_.compress,
                  static_cast<size_t>(gab_.compress) * sizeof(T));
    }
  }

 private:
  // Writes c · dense1ᵀ + b₁ for the boards to `products_`.
  void dense1(const T* compressed, int64_t stride, int64_t boards) {
    std::memset(squares_ + boards * inputs_, 0,
                static_cast<size_t>((kBoardRows - boards) * inputs_) * sizeof(T));
    for (int64_t token = 0; token < boards * kSquares; ++token) {
      std::memcpy(squares_ + token * gab_.compress, compressed + token * stride,
                  static_cast<size_t>(gab_.compress) * sizeof(T));
    }
    product<T>({16, gab_.hidden, inputs_}, squares_, inputs_, dense1_, gab_.hidden, products_,
               gab_.hidden, false);
    add_bias(static_cast<const T*>(gab_.summary_bias), gab_.hidden, boards);
  }

  // Computes d from the result of dense1, and writes d · dense2ᵀ + b₂ to `products_`.
  void dense2(int64_t boards) {
    const int64_t hidden = gab_.hidden;
    std::memset(normed_, 0, static_cast<size_t>(kBoardRows * hidden) * sizeof(T));
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm(gab_.summary_norm, hidden, products_ + board * hidden,
                normed_ + board * hidden);
    }
    product<T>({16, gen_width_, hidden}, normed_, hidden, dense2_, gen_width_, products_,
               gen_width_, false);
    add_bias(static_cast<const T*>(gab_.heads_bias), gen_width_, boards);
  }

  void add_bias(const T* bias, int64_t width, int64_t boards) {
    for (int64_t board = 0; board < boards; ++board) {
      float* row = products_ + board * width;
      for (int64_t i = 0; i < width; i += kLanes) {
        store(load(row + i) + load(bias + i), row + i);
      }
    }
  }

  const Gab& gab_;
  int64_t gen_width_, inputs_;
  const uint32_t *dense1_, *dense2_;
  T *squares_, *normed_;
  float* products_;
  // Used only in backward.
  uint32_t *dense1_back_ = nullptr, *dense2_back_ = nullptr, *packed_ = nullptr;
  T *of_squares_ = nullptr, *of_dense1_ = nullptr, *of_gen_from_ = nullptr;
  T* transposed_ = nullptr;
  float* before_ = nullptr;
};

}  // namespace tessera::TESSERA_ISA
