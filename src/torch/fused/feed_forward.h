// The feed-forward block, norm(x + gain · (mish(x · widenᵀ + b) · narrowᵀ + c)). See norm.h.
//
// Backward, where g is the gradient of the norm's input and h = x · widenᵀ + b:
//
//     dh = gain · (g · narrow) ∘ mish'(h)
//     dx = dh · widen + g
//     dnarrow = gain · gᵀ · mish(h)
//     dwiden = dhᵀ · x
#pragma once

#include "norm.h"

namespace tessera::TESSERA_ISA {

using fused::FeedForward;
using fused::FeedForwardGradients;
using fused::FeedForwardSums;
using fused::kChunk;
using fused::kSquares;

// Adds Aᵀ · B to C [m, n], where A [k, m] and B [k, n] are stored by rows. The buffers must have
// space for A and for B.
template <typename T>
TESSERA_INLINE void add_outer(Sizes sizes, const T* a, int64_t a_stride, const T* b,
                              int64_t b_stride, float* c, T* transposed, uint32_t* packed) {
  transpose(a, a_stride, sizes.k, sizes.m, transposed);
  panel(b, b_stride, sizes.k, sizes.n, packed);
  product<T>(sizes, transposed, sizes.k, packed, sizes.n, c, sizes.n, true);
}

template <typename Format>
struct FeedForwardWeights {
  typename Format::Weights widen, narrow;

  FeedForwardWeights(const FeedForward& block, Arena& arena)
      : widen(Format::take(block.hidden, block.width, arena)),
        narrow(Format::take(block.width, block.hidden, arena)) {}

  void pack(const FeedForward& block) const {
    using T = typename Format::Number;
    Format::pack(static_cast<const T*>(block.widen), block.hidden, widen);
    Format::pack(static_cast<const T*>(block.narrow), block.width, narrow);
  }
};

template <typename Format>
void feed_forward(const FeedForward& block, int64_t first, int64_t last) {
  using T = typename Format::Number;
  const int64_t width = block.width, hidden = block.hidden;
  const int64_t wider = width > hidden ? width : hidden;
  thread_local Scratch scratch;
  using Weights = FeedForwardWeights<Format>;
  scratch.begin();
  const auto weights = weights_of<Weights>(block, scratch);
  const auto tokens = Format::token_buffer(kSquares, width, scratch);
  const auto wide_tokens = Format::token_buffer(kSquares, hidden, scratch);
  auto* buffer = scratch.take<float>(kRows * wider);
  auto* row_buffer = scratch.take<float>(wider);
  auto* active = scratch.take<T>(kSquares * hidden);
  const T* widen_bias = static_cast<const T*>(block.widen_bias);
  const T* narrow_bias = static_cast<const T*>(block.narrow_bias);
  const Tiles tiles;
  for (int64_t token = first * kSquares; token < last * kSquares; token += kSquares) {
    const T* x = static_cast<const T*>(block.x) + token * width;
    T* widened = kept_at<T>(block.widened, token * hidden);
    for_tokens<Format>(kSquares, hidden, tokens.read(x, width, kSquares), weights.widen,
                       buffer,
                       [&](int64_t row, const float* sums) {
                         for (int64_t i = 0; i < hidden; i += kLanes) {
                           const Vector h = load(sums + i) + load(widen_bias + i);
                           if (widened != nullptr) {
                             store(h, widened + row * hidden + i);
                           }
                           store(mish(h).value, active + row * hidden + i);
                         }
                       });
    for_tokens<Format>(kSquares, width, wide_tokens.read(active, hidden, kSquares),
                       weights.narrow, buffer, [&](int64_t row, const float* sums) {
                         const int64_t place = (token + row) * width;
                         norm_forward(block.norm, width, x + row * width, sums, narrow_bias,
                                      row_buffer, static_cast<T*>(block.y) + place,
                                      kept_at<T>(block.saved.normal, place),
                                      kept_at<float>(block.saved.inverse, token + row));
                       });
  }
}

template <typename T>
void feed_forward_backward(const FeedForward& block, const FeedForwardGradients& gradients,
                           const FeedForwardSums& sums, int64_t first, int64_t last) {
  const int64_t width = block.width, hidden = block.hidden;
  const int64_t wider = width > hidden ? width : hidden;
  constexpr int64_t most = kChunk * kSquares;
  thread_local Scratch scratch;
  scratch.begin();
  auto* widen = scratch.take<uint32_t>(width * hidden);
  auto* narrow = scratch.take<uint32_t>(width * hidden);
  auto* buffer = scratch.take<float>(kRows * wider);
  auto* inner = scratch.take<T>(most * width);
  auto* active = scratch.take<T>(most * hidden);
  auto* widened = scratch.take<T>(most * hidden);
  auto* transposed = scratch.take<T>(most * wider);
  auto* packed = scratch.take<uint32_t>(most * wider);
  panel(static_cast<const T*>(block.widen), width, hidden, width, widen);
  panel(static_cast<const T*>(block.narrow), hidden, width, hidden, narrow);
  const Tiles tiles;
  for (int64_t begin = first; begin < last; begin += kChunk) {
    const int64_t boards = last - begin < kChunk ? last - begin : kChunk;
    const int64_t tokens = boards * kSquares, token = begin * kSquares;
    const T* x = static_cast<const T*>(block.x) + token * width;
    for (int64_t row = 0; row < tokens; ++row) {
      const int64_t place = (token + row) * width;
      norm_backward(block.norm, width, static_cast<const T*>(gradients.y) + place,
                    static_cast<const T*>(block.saved.normal) + place,
                    block.saved.inverse[token + row], inner + row * width, sums.norm,
                    sums.narrow_bias);
    }
    const T* kept = static_cast<const T*>(block.widened) + token * hidden;
    for_rows({tokens, hidden, width}, inner, width, narrow, buffer,
             [&](int64_t row, const float* products) {
               for (int64_t i = 0; i < hidden; i += kLanes) {
                 const Mish at = mish(load(kept + row * hidden + i));
                 const Vector g = block.norm.gain * load(products + i) * at.slope;
                 store(at.value, active + row * hidden + i);
                 store(g, widened + row * hidden + i);
                 store(load(sums.widen_bias + i) + g, sums.widen_bias + i);
               }
             });
    add_outer({width, hidden, tokens}, inner, width, active, hidden, sums.narrow, transposed,
              packed);
    T* out = static_cast<T*>(gradients.x) + token * width;
    for_rows({tokens, width, hidden}, widened, hidden, widen, buffer,
             [&](int64_t row, const float* products) {
               for (int64_t i = 0; i < width; i += kLanes) {
                 store(load(products + i) + load(inner + row * width + i),
                       out + row * width + i);
               }
             });
    add_outer({hidden, width, tokens}, widened, hidden, x, width, sums.widen, transposed,
              packed);
  }
}

}  // namespace tessera::TESSERA_ISA
