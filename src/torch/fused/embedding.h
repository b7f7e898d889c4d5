// Embeds features as tokens: y = h ∘ multiply + add, where h = features · weightᵀ + bias. Each
// square has its own rows of `multiply` and `add`.
//
// Backward: dh = dy ∘ multiply; over boards, dmultiply = Σ dy ∘ h and dadd = Σ dy; over tokens,
// dbias = Σ dh; and dweight = dhᵀ · features. Features have no gradient.
#pragma once

#include "feed_forward.h"

namespace tessera::TESSERA_ISA {

using fused::Embedding;
using fused::EmbeddingGradients;
using fused::EmbeddingSums;
using fused::Inputs;
using fused::kBoards;
using fused::kRule50Scale;

TESSERA_INLINE void store_one(float x, float* out) { *out = x; }
TESSERA_INLINE void store_one(float x, uint16_t* out) {
  // All features are integers or hundredths, so the rounding mode hardly matters.
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  *out = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
void inputs(const Inputs& of, int64_t first_board, int64_t last_board) {
  T zero, one;
  store_one(0.0f, &zero);
  store_one(1.0f, &one);
  for (int64_t board = first_board; board < last_board; ++board) {
    const uint64_t* words = of.rows + board * of.row_width;
    const uint64_t* scalars = words + kBoards;
    for (int64_t square = 0; square < kSquares; ++square) {
      const int64_t token = board * kSquares + square;
      T* out = static_cast<T*>(of.out) + token * of.width;
      for (int64_t plane = 0; plane < kBoards; ++plane) {
        out[plane] = (words[plane] >> square) & 1 ? one : zero;
      }
      out += kBoards;
      for (int64_t i = 0; i < 4; ++i) {
        *out++ = scalars[i] != 0 ? one : zero;
      }
      *out++ = scalars[4] != 0 ? one : zero;
      store_one(static_cast<float>(scalars[5]) * kRule50Scale, out++);
      *out++ = zero;
      *out++ = one;
      for (int64_t i = 0; i < of.attacks_width; ++i) {
        store_one(of.attacks[token * of.attacks_width + i], out++);
      }
      for (T* end = static_cast<T*>(of.out) + (token + 1) * of.width; out != end;) {
        *out++ = zero;
      }
    }
  }
}

template <typename T>
struct EmbeddingWeights {
  uint32_t* panel;

  EmbeddingWeights(const Embedding& layer, Arena& arena)
      : panel(arena.take<uint32_t>(layer.inputs * layer.width)) {}

  void pack(const Embedding& layer) const {
    panel_of_transpose(static_cast<const T*>(layer.weight), layer.inputs, layer.inputs,
                       layer.width, panel);
  }
};

template <typename T>
void embedding(const Embedding& layer, int64_t first_board, int64_t last_board) {
  const int64_t width = layer.width, inputs = layer.inputs;
  thread_local Scratch scratch;
  using Weights = EmbeddingWeights<T>;
  scratch.begin();
  const uint32_t* weight = weights_of<Weights>(layer, scratch).panel;
  auto* buffer = scratch.take<float>(kRows * width);
  const T* bias = static_cast<const T*>(layer.bias);
  const int64_t begin = first_board * kSquares;
  const Tiles tiles;
  for_rows({(last_board - first_board) * kSquares, width, inputs},
           static_cast<const T*>(layer.features) + begin * inputs, inputs, weight, buffer,
           [&](int64_t row, const float* sums) {
             const int64_t square = row % kSquares * width, place = (begin + row) * width;
             const T* multiply = static_cast<const T*>(layer.multiply) + square;
             const T* add = static_cast<const T*>(layer.add) + square;
             T* projected = kept_at<T>(layer.projected, place);
             T* y = static_cast<T*>(layer.y) + place;
             for (int64_t i = 0; i < width; i += kLanes) {
               const Vector h = load(sums + i) + load(bias + i);
               if (projected != nullptr) {
                 store(h, projected + i);
               }
               store(h * load(multiply + i) + load(add + i), y + i);
             }
           });
}

template <typename T>
void embedding_backward(const Embedding& layer, const EmbeddingGradients& gradients,
                        const EmbeddingSums& sums, int64_t first_board,
                        int64_t last_board) {
  const int64_t width = layer.width, inputs = layer.inputs;
  constexpr int64_t most = kChunk * kSquares;
  thread_local Scratch scratch;
  scratch.begin();
  auto* slopes = scratch.take<T>(most * width);
  auto* transposed = scratch.take<T>(most * width);
  auto* packed = scratch.take<uint32_t>(most * inputs);
  const Tiles tiles;
  for (int64_t begin = first_board; begin < last_board; begin += kChunk) {
    const int64_t boards = last_board - begin < kChunk ? last_board - begin : kChunk;
    const int64_t tokens = boards * kSquares, token = begin * kSquares;
    for (int64_t row = 0; row < tokens; ++row) {
      const int64_t square = row % kSquares * width, place = (token + row) * width;
      const T* multiply = static_cast<const T*>(layer.multiply) + square;
      const T* projected = static_cast<const T*>(layer.projected) + place;
      const T* gradient = static_cast<const T*>(gradients.y) + place;
      float* of_multiply = sums.multiply + square;
      float* of_add = sums.add + square;
      for (int64_t i = 0; i < width; i += kLanes) {
        const Vector g = load(gradient + i);
        store(load(of_add + i) + g, of_add + i);
        store(load(of_multiply + i) + g * load(projected + i), of_multiply + i);
        const Vector slope = g * load(multiply + i);
        store(load(sums.bias + i) + slope, sums.bias + i);
        store(slope, slopes + row * width + i);
      }
    }
    add_outer({width, inputs, tokens}, slopes, width,
              static_cast<const T*>(layer.features) + token * inputs, inputs, sums.weight,
              transposed, packed);
  }
}

}  // namespace tessera::TESSERA_ISA
