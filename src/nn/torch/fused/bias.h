// What the generator of biases is asked for (GAB, Lc0's smolgen): squares,
// compressed, make a summary of the board, and that what each head asks.
#pragma once

#include "feed_forward.h"

namespace tessera::TESSERA_ISA {

using fused::Gab;
using fused::GabNorm;
using fused::GabSums;

// Boards of a chunk as rows of tiles, and as columns of a transpose.
constexpr int64_t kBoardRows = 32;
static_assert(kChunk <= 16);

TESSERA_INLINE Vector sigmoid(Vector x) {
  return 1.0f / (1.0f + exponential(smaller(-x, splat(20.0f))));
}

// One row: the norm of silu(x).
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

// The gradient of x from that of the norm of silu(x), and its sum over rows.
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

// The weights of the summary and of what heads ask, as products read them; `asked` are
// numbers asked for a board.
template <typename T>
struct AskingWeights {
  uint32_t *summary, *heads;

  static size_t bytes(const Gab& gab, int64_t asked) {
    return Arena::bytes<uint32_t>(kSquares * gab.compress * gab.hidden) +
           Arena::bytes<uint32_t>(gab.hidden * asked);
  }

  AskingWeights(const Gab& gab, int64_t asked, Arena& arena)
      : summary(arena.take<uint32_t>(kSquares * gab.compress * gab.hidden)),
        heads(arena.take<uint32_t>(gab.hidden * asked)) {}

  void pack(const Gab& gab, int64_t asked) const {
    const int64_t squares = kSquares * gab.compress;
    panel_of_transpose(static_cast<const T*>(gab.summary), squares, squares, gab.hidden,
                       summary);
    panel_of_transpose(static_cast<const T*>(gab.heads), gab.hidden, gab.hidden, asked, heads);
  }
};

// What a chunk needs; backward needs more.
template <typename T>
class Asking {
 public:
  static size_t bytes(const Gab& gab, int64_t asked, bool is_backward) {
    const int64_t squares = kSquares * gab.compress;
    const size_t forward =
        Scratch::bytes<T>(kBoardRows * squares) + Scratch::bytes<T>(kBoardRows * gab.hidden) +
        Scratch::bytes<float>(kBoardRows * (squares + gab.hidden + asked));
    if (!is_backward) {
      return forward;
    }
    return forward + Scratch::bytes<uint32_t>(squares * gab.hidden) +
           Scratch::bytes<uint32_t>(gab.hidden * asked) +
           Scratch::bytes<T>(kBoardRows * squares) +
           Scratch::bytes<T>(kBoardRows * gab.hidden) +
           Scratch::bytes<T>(kBoardRows * asked) +
           Scratch::bytes<float>(kBoardRows * gab.hidden) +
           Scratch::bytes<T>(kBoardRows * (gab.hidden + asked)) +
           Scratch::bytes<uint32_t>(kBoardRows * (squares + gab.hidden));
  }

  Asking(const Gab& gab, int64_t asked, AskingWeights<T> weights, bool is_backward,
         Scratch& scratch)
      : gab_(gab),
        asked_(asked),
        squares_width_(kSquares * gab.compress),
        summary_(weights.summary),
        heads_(weights.heads) {
    const int64_t hidden = gab.hidden;
    squares_ = scratch.take<T>(kBoardRows * squares_width_);
    normed_ = scratch.take<T>(kBoardRows * hidden);
    products_ = scratch.take<float>(kBoardRows * (squares_width_ + hidden + asked));
    if (is_backward) {
      summary_back_ = scratch.take<uint32_t>(squares_width_ * hidden);
      heads_back_ = scratch.take<uint32_t>(hidden * asked);
      of_squares_ = scratch.take<T>(kBoardRows * squares_width_);
      of_summary_ = scratch.take<T>(kBoardRows * hidden);
      of_asked_ = scratch.take<T>(kBoardRows * asked);
      before_ = scratch.take<float>(kBoardRows * hidden);
      turned_ = scratch.take<T>(kBoardRows * (hidden + asked));
      panelled_ = scratch.take<uint32_t>(kBoardRows * (squares_width_ + hidden));
      panel(static_cast<const T*>(gab.summary), squares_width_, hidden, squares_width_,
            summary_back_);
      panel(static_cast<const T*>(gab.heads), hidden, asked, hidden, heads_back_);
    }
  }

  // What is asked for of boards whose compressed squares are rows `stride` apart,
  // [boards, asked].
  void forward(const T* compressed, int64_t stride, int64_t boards, T* out) {
    summarise(compressed, stride, boards);
    ask(boards);
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm(gab_.heads_norm, asked_, products_ + board * asked_, out + board * asked_);
    }
  }

  // To `of_compressed`, as far apart, goes the gradient of the compressed squares.
  // Forward is computed anew: next to everything else it costs nothing.
  void backward(const T* compressed, int64_t stride, int64_t boards, const float* gradient,
                const GabSums& sums, T* of_compressed) {
    const int64_t hidden = gab_.hidden;
    summarise(compressed, stride, boards);
    std::memcpy(before_, products_, static_cast<size_t>(boards * hidden) * sizeof(float));
    ask(boards);
    std::memset(of_asked_, 0, static_cast<size_t>(kBoardRows * asked_) * sizeof(T));
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm_backward(gab_.heads_norm, asked_, products_ + board * asked_,
                         gradient + board * asked_, of_asked_ + board * asked_,
                         sums.heads_norm, sums.heads_bias);
    }
    add_outer({asked_, hidden, kBoardRows}, of_asked_, asked_, normed_, hidden, sums.heads,
              turned_, panelled_);
    product<T>({16, hidden, asked_}, of_asked_, asked_, heads_back_, hidden, products_,
               hidden, false);
    std::memset(of_summary_, 0, static_cast<size_t>(kBoardRows * hidden) * sizeof(T));
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm_backward(gab_.summary_norm, hidden, before_ + board * hidden,
                         products_ + board * hidden, of_summary_ + board * hidden,
                         sums.summary_norm, sums.summary_bias);
    }
    add_outer({hidden, squares_width_, kBoardRows}, of_summary_, hidden, squares_,
              squares_width_, sums.summary, turned_, panelled_);
    product<T>({16, squares_width_, hidden}, of_summary_, hidden, summary_back_,
               squares_width_, products_, squares_width_, false);
    for (int64_t i = 0; i < boards * squares_width_; i += kLanes) {
      store(load(products_ + i), of_squares_ + i);
    }
    for (int64_t token = 0; token < boards * kSquares; ++token) {
      std::memcpy(of_compressed + token * stride, of_squares_ + token * gab_.compress,
                  static_cast<size_t>(gab_.compress) * sizeof(T));
    }
  }

 private:
  // Of the boards' squares to the summary before silu, in `products_`.
  void summarise(const T* compressed, int64_t stride, int64_t boards) {
    std::memset(squares_ + boards * squares_width_, 0,
                static_cast<size_t>((kBoardRows - boards) * squares_width_) * sizeof(T));
    for (int64_t token = 0; token < boards * kSquares; ++token) {
      std::memcpy(squares_ + token * gab_.compress, compressed + token * stride,
                  static_cast<size_t>(gab_.compress) * sizeof(T));
    }
    product<T>({16, gab_.hidden, squares_width_}, squares_, squares_width_, summary_,
               gab_.hidden, products_, gab_.hidden, false);
    add_bias(static_cast<const T*>(gab_.summary_bias), gab_.hidden, boards);
  }

  // From there to what the heads ask before silu, in `products_`.
  void ask(int64_t boards) {
    const int64_t hidden = gab_.hidden;
    std::memset(normed_, 0, static_cast<size_t>(kBoardRows * hidden) * sizeof(T));
    for (int64_t board = 0; board < boards; ++board) {
      silu_norm(gab_.summary_norm, hidden, products_ + board * hidden,
                normed_ + board * hidden);
    }
    product<T>({16, asked_, hidden}, normed_, hidden, heads_, asked_, products_, asked_,
               false);
    add_bias(static_cast<const T*>(gab_.heads_bias), asked_, boards);
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
  int64_t asked_, squares_width_;
  const uint32_t *summary_, *heads_;
  T *squares_, *normed_;
  float* products_;
  // For backward alone.
  uint32_t *summary_back_ = nullptr, *heads_back_ = nullptr, *panelled_ = nullptr;
  T *of_squares_ = nullptr, *of_summary_ = nullptr, *of_asked_ = nullptr, *turned_ = nullptr;
  float* before_ = nullptr;
};

}  // namespace tessera::TESSERA_ISA
