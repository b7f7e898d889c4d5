// Dense layers that share their input tokens, each followed by mish: mish(x · weightᵀ + bias). They
// are computed as one layer with concatenated weights.
//
// Backward, where h = x · weightᵀ + bias: dh = dy ∘ mish'(h), dx = dh · weight and dweight = dhᵀ ·
// x.
#pragma once

#include "feed_forward.h"

namespace tessera::TESSERA_ISA {

using fused::DenseGradients;
using fused::DenseLayers;
using fused::DenseSums;

// Concatenates the rows of all layers into one layer, and pads them with zeros to a multiple of 32.
template <typename T>
TESSERA_INLINE void join_rows(const DenseLayers& layers, T* weights, float* biases) {
  std::memset(weights, 0, static_cast<size_t>(layers.joint * layers.width) * sizeof(T));
  std::memset(biases, 0, static_cast<size_t>(layers.joint) * sizeof(float));
  for (int64_t layer = 0, start = 0; layer < layers.count; ++layer) {
    const int64_t outputs = layers.outputs[layer];
    std::memcpy(weights + start * layers.width, layers.weights[layer],
                static_cast<size_t>(outputs * layers.width) * sizeof(T));
    for (int64_t i = 0; i < outputs; ++i) {
      biases[start + i] = first(static_cast<const T*>(layers.biases[layer]) + i);
    }
    start += outputs;
  }
}

template <typename Format>
struct DenseWeights {
  using T = typename Format::Number;
  float* biases;
  typename Format::Weights joint;

  DenseWeights(const DenseLayers& layers, Arena& arena)
      : biases(arena.take<float>(layers.joint)),
        joint(Format::take(layers.joint, layers.width, arena)) {}

  void pack(const DenseLayers& layers) const {
    thread_local Scratch scratch;
    scratch.begin();
    T* rows = scratch.take<T>(layers.joint * layers.width);
    join_rows(layers, rows, biases);
    Format::pack(rows, layers.joint, joint);
  }
};

template <typename Format>
void dense(const DenseLayers& layers, int64_t first_board, int64_t last_board) {
  using T = typename Format::Number;
  const int64_t width = layers.width, joint = layers.joint;
  thread_local Scratch scratch;
  using Weights = DenseWeights<Format>;
  scratch.begin();
  const auto weights = weights_of<Weights>(layers, scratch);
  const float* biases = weights.biases;
  const auto tokens = Format::token_buffer(kSquares, width, scratch);
  auto* buffer = scratch.take<float>(kRows * joint);
  auto* active = scratch.take<T>(joint);
  const Tiles tiles;
  for (int64_t begin = first_board * kSquares; begin < last_board * kSquares;
       begin += kSquares) {
    const T* x = static_cast<const T*>(layers.x) + begin * width;
    for_tokens<Format>(
        kSquares, joint, tokens.read(x, width, kSquares), weights.joint, buffer,
        [&](int64_t row, const float* sums) {
          const int64_t token = begin + row;
          T* kept = kept_at<T>(layers.kept, token * joint);
          for (int64_t i = 0; i < joint; i += kLanes) {
            const Vector h = load(sums + i) + load(biases + i);
            if (kept != nullptr) {
              store(h, kept + i);
            }
            store(mish(h).value, active + i);
          }
          const T* from = active;
          for (int64_t layer = 0; layer < layers.count; ++layer) {
            const int64_t outputs = layers.outputs[layer];
            std::memcpy(static_cast<T*>(layers.y[layer]) + token * outputs, from,
                        static_cast<size_t>(outputs) * sizeof(T));
            from += outputs;
          }
        });
  }
}

template <typename T>
void dense_backward(const DenseLayers& layers, const DenseGradients& gradients,
                    const DenseSums& sums, int64_t first_board, int64_t last_board) {
  const int64_t width = layers.width, joint = layers.joint;
  const int64_t wider = width > joint ? width : joint;
  constexpr int64_t most = kChunk * kSquares;
  thread_local Scratch scratch;
  scratch.begin();
  auto* weights = scratch.take<T>(joint * width);
  auto* biases = scratch.take<float>(joint);
  auto* packed = scratch.take<uint32_t>(joint * width);
  auto* buffer = scratch.take<float>(kRows * wider);
  auto* slopes = scratch.take<T>(most * joint);
  auto* transposed = scratch.take<T>(most * joint);
  auto* tokens_panel = scratch.take<uint32_t>(most * width);
  join_rows(layers, weights, biases);
  panel(weights, width, joint, width, packed);
  std::memset(slopes, 0, static_cast<size_t>(most * joint) * sizeof(T));
  const Tiles tiles;
  for (int64_t begin = first_board; begin < last_board; begin += kChunk) {
    const int64_t boards = last_board - begin < kChunk ? last_board - begin : kChunk;
    const int64_t tokens = boards * kSquares, token = begin * kSquares;
    for (int64_t row = 0; row < tokens; ++row) {
      T* out = slopes + row * joint;
      T* to = out;
      for (int64_t layer = 0; layer < layers.count; ++layer) {
        const int64_t outputs = layers.outputs[layer];
        std::memcpy(to, static_cast<const T*>(gradients.y[layer]) + (token + row) * outputs,
                    static_cast<size_t>(outputs) * sizeof(T));
        to += outputs;
      }
      const T* kept = static_cast<const T*>(layers.kept) + (token + row) * joint;
      for (int64_t i = 0; i < joint; i += kLanes) {
        const Vector g = load(out + i) * mish(load(kept + i)).slope;
        store(g, out + i);
        store(load(sums.biases + i) + g, sums.biases + i);
      }
    }
    T* of_x = static_cast<T*>(gradients.x) + token * width;
    for_rows({tokens, width, joint}, slopes, joint, packed, buffer,
             [&](int64_t row, const float* products) {
               for (int64_t i = 0; i < width; i += kLanes) {
                 store(load(products + i), of_x + row * width + i);
               }
             });
    add_outer({joint, width, tokens}, slopes, joint,
              static_cast<const T*>(layers.x) + token * width, width, sums.weights, transposed,
              tokens_panel);
  }
}

}  // namespace tessera::TESSERA_ISA
