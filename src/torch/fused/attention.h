// The attention block, with biases that are generated from each board and attack biases. For a
// board's tokens x [64, width], each head computes
//
//     P = softmax(Q · Kᵀ / √head_width + B + A)   [64, 64]
//     attended = P · V                            [64, head_width]
//
// where Q, K and V are x times their weights, and B = generator · gen_from (see bias.h). A is the
// sum of worth₀ if the piece on the row's square attacks the column's square, and worth₁ if the
// reverse holds. The block is norm(x + gain · (attended of all heads · outputᵀ + bias)). See
// norm.h.
//
// Backward, where dX is the gradient of X and ∘ is the elementwise product:
//
//     dV = Pᵀ · dattended
//     dP = dattended · Vᵀ
//     dS = P ∘ (dP − Σ P ∘ dP), with the sum over a row; dS is also the gradient of B
//     dQ = dS · K / √head_width
//     dK = dSᵀ · Q / √head_width
//
// and the gradient of each worth is the sum of dS over the entries to which the worth was added.
#pragma once

#include "bias.h"

namespace tessera::TESSERA_ISA {

using fused::Attention;
using fused::AttentionGradients;
using fused::AttentionSums;
using fused::kPairs;

// The next multiple of sixteen.
TESSERA_INLINE int64_t round_up_16(int64_t rows) { return (rows + 15) / 16 * 16; }

// Number of vectors for a square's logits.
constexpr int64_t kParts = kSquares / kLanes;

// Returns the mask for a vector of columns, from `column` on, in a row of attacks.
TESSERA_INLINE uint16_t bits_from(uint64_t row, int64_t column) {
  return static_cast<uint16_t>(row >> column);
}

// Computes P = softmax(scale · S + bias + attacks) for one board and head.
template <typename T>
TESSERA_INLINE void probabilities(const float* products, const float* bias, float scale,
                                  const uint64_t* attacks, const float* worth, T* out) {
  for (int64_t row = 0; row < kSquares; ++row) {
    Vector logits[kParts];
    Vector most = splat(-INFINITY);
#pragma GCC unroll 8
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t place = row * kSquares + part * kLanes;
      Vector logit = load(products + place) * scale + load(bias + place);
      if (attacks != nullptr) {
        const int64_t column = part * kLanes;
        logit += where(bits_from(attacks[row], column), splat(worth[0]));
        logit += where(bits_from(attacks[kSquares + row], column), splat(worth[1]));
      }
      logits[part] = logit;
      most = larger(most, logit);
    }
    const float top = largest(most);
    Vector total{};
#pragma GCC unroll 8
    for (int64_t part = 0; part < kParts; ++part) {
      logits[part] = exponential(logits[part] - top);
      total += logits[part];
    }
    const float share = 1.0f / sum(total);
#pragma GCC unroll 8
    for (int64_t part = 0; part < kParts; ++part) {
      store(logits[part] * share, out + row * kSquares + part * kLanes);
    }
  }
}

// Writes the rows of all projections, [joint, width]: queries, keys, values and compressed squares.
// Zeros pad the number of rows to a multiple of 32.
template <typename T>
TESSERA_INLINE void join_projections(const Attention& block, T* out) {
  const int64_t square = block.width * block.width;
  const auto copy = [&](const void* rows, int64_t count, int64_t start) {
    std::memcpy(out + start, rows, static_cast<size_t>(count) * sizeof(T));
  };
  std::memset(out, 0, static_cast<size_t>(block.joint * block.width) * sizeof(T));
  copy(block.query_key, 2 * square, 0);
  copy(block.value, square, 2 * square);
  copy(block.gab.squares, block.gab.compress * block.width, 3 * square);
}

// Projections are multiplied in parts that are as wide as the input, so that a part stays in the
// first-level cache.
TESSERA_INLINE int64_t part_width(const Attention& block, int64_t start) {
  return block.joint - start < block.width ? block.joint - start : block.width;
}

template <typename Format>
struct AttentionWeights {
  using T = typename Format::Number;
  GabWeights<T> gab;
  typename Format::Weights project, output;
  uint32_t* generator;

  static int64_t gen_width(const Attention& block) {
    return block.heads * block.gab.generated;
  }

  AttentionWeights(const Attention& block, Arena& arena)
      : gab(block.gab, gen_width(block), arena),
        project(Format::take(block.joint, block.width, arena)),
        output(Format::take(block.width, block.width, arena)),
        generator(arena.take<uint32_t>(kPairs * block.gab.generated)) {}

  void pack(const Attention& block) const {
    const int64_t width = block.width, generated = block.gab.generated;
    gab.pack(block.gab, gen_width(block));
    thread_local Scratch scratch;
    scratch.begin();
    T* joined = scratch.take<T>(block.joint * width);
    join_projections(block, joined);
    for (int64_t start = 0; start < block.joint; start += width) {
      Format::pack(joined + start * width, part_width(block, start), project.from(start));
    }
    Format::pack(static_cast<const T*>(block.output), width, output);
    panel_of_transpose(static_cast<const T*>(block.gab.generator), generated, generated,
                       kPairs, generator);
  }
};

template <typename Format>
void attention(const Attention& block, int64_t first, int64_t last) {
  using T = typename Format::Number;
  const int64_t width = block.width, heads = block.heads, head_width = block.head_width;
  const int64_t generated = block.gab.generated, joint = block.joint;
  const int64_t most_rows = round_up_16(kChunk * heads);
  // Without backward, the next chunk or head overwrites these buffers.
  constexpr int64_t most = kChunk * kSquares;
  const bool keeps = block.projected != nullptr;
  thread_local Scratch scratch;
  using Weights = AttentionWeights<Format>;
  scratch.begin();
  const auto weights = weights_of<Weights>(block, scratch);
  GenFrom<T> bias_input(block.gab, heads * generated, weights.gab, false, scratch);
  const auto token_buffer = Format::token_buffer(most, width, scratch);
  auto* gen_from = scratch.take<T>(most_rows * generated);
  auto* bias = scratch.take<float>(most_rows * kPairs);
  auto* buffer = scratch.take<float>(kRows * joint);
  auto* row_buffer = scratch.take<float>(width);
  auto* products = scratch.take<float>(kPairs);
  auto* packed = scratch.take<uint32_t>(kSquares * head_width);
  auto* projected_room = scratch.take<T>(most * joint);
  auto* attended_room = scratch.take<T>(most * width);
  auto* shares_room = scratch.take<T>(kPairs);
  const T* output_bias = static_cast<const T*>(block.output_bias);
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_width));
  const Tiles tiles;
  for (int64_t begin = first; begin < last; begin += kChunk) {
    const int64_t boards = last - begin < kChunk ? last - begin : kChunk;
    const int64_t tokens = boards * kSquares, token = begin * kSquares;
    const T* x = static_cast<const T*>(block.x) + token * width;
    T* projected =
        keeps ? static_cast<T*>(block.projected) + token * joint : projected_room;
    const auto rows = token_buffer.read(x, width, tokens);
    for (int64_t start = 0; start < joint; start += width) {
      const int64_t columns = part_width(block, start);
      for_tokens<Format>(tokens, columns, rows, weights.project.from(start), buffer,
                         [&](int64_t row, const float* sums) {
                           T* out = projected + row * joint + start;
                           for (int64_t i = 0; i < columns; i += kLanes) {
                             store(load(sums + i), out + i);
                           }
                         });
    }
    std::memset(gen_from, 0, static_cast<size_t>(most_rows * generated) * sizeof(T));
    bias_input.forward(projected + 3 * width, joint, boards, gen_from);
    product<T>({round_up_16(boards * heads), kPairs, generated}, gen_from, generated,
               weights.generator, kPairs, bias, kPairs, false);
    T* attended = keeps ? static_cast<T*>(block.attended) + token * width : attended_room;
    for (int64_t pair = 0; pair < boards * heads; ++pair) {
      const int64_t board = pair / heads, head = pair % heads;
      const T* query = projected + board * kSquares * joint + head * head_width;
      const T* key = query + width;
      const T* value = key + width;
      panel_of_transpose(key, joint, head_width, kSquares, packed);
      product<T>({kSquares, kSquares, head_width}, query, joint, packed, kSquares,
                 products, kSquares, false);
      const int64_t place = (begin * heads + pair) * kPairs;
      T* shares = keeps ? static_cast<T*>(block.probabilities) + place : shares_room;
      const uint64_t* attacks =
          block.attacks ? block.attacks + (begin + board) * 2 * kSquares : nullptr;
      probabilities(products, bias + pair * kPairs, scale, attacks, block.worth + 2 * head,
                    shares);
      panel(value, joint, kSquares, head_width, packed);
      T* out = attended + board * kSquares * width + head * head_width;
      for_rows({kSquares, head_width, kSquares}, shares, kSquares, packed, buffer,
               [&](int64_t row, const float* sums) {
                 for (int64_t i = 0; i < head_width; i += kLanes) {
                   store(load(sums + i), out + row * width + i);
                 }
               });
    }
    for_tokens<Format>(tokens, width, token_buffer.read(attended, width, tokens),
                       weights.output, buffer, [&](int64_t row, const float* sums) {
                         const int64_t place = (token + row) * width;
                         norm_forward(block.norm, width, x + row * width, sums, output_bias,
                                      row_buffer, static_cast<T*>(block.y) + place,
                                      kept_at<T>(block.saved.normal, place),
                                      kept_at<float>(block.saved.inverse, token + row));
                       });
  }
}

// Computes the gradient of the logits, dS = P ∘ (dP − Σ P ∘ dP), from the gradient of P for one
// board and head. Adds the gradients of the attack weights to their sums.
template <typename T>
TESSERA_INLINE void logits_backward(const float* gradient, const T* weights,
                                    const uint64_t* attacks, float* worth, T* out) {
  Vector worths[2] = {};
  for (int64_t row = 0; row < kSquares; ++row) {
    Vector shares[kParts], slopes[kParts];
    Vector total{};
#pragma GCC unroll 8
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t place = row * kSquares + part * kLanes;
      const Vector p = load(weights + place);
      shares[part] = p;
      slopes[part] = p * load(gradient + place);
      total += slopes[part];
    }
    const float mean = sum(total);
#pragma GCC unroll 8
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t column = part * kLanes;
      const Vector slope = slopes[part] - shares[part] * mean;
      if (attacks != nullptr) {
        worths[0] += where(bits_from(attacks[row], column), slope);
        worths[1] += where(bits_from(attacks[kSquares + row], column), slope);
      }
      store(slope, out + row * kSquares + column);
    }
  }
  if (attacks != nullptr) {
    worth[0] += sum(worths[0]);
    worth[1] += sum(worths[1]);
  }
}

template <typename T>
void attention_backward(const Attention& block, const AttentionGradients& gradients,
                        const AttentionSums& sums, int64_t first, int64_t last) {
  const int64_t width = block.width, heads = block.heads, head_width = block.head_width;
  const int64_t generated = block.gab.generated, joint = block.joint;
  // The gradient of the generator is a matrix product with one row per board and head. The number
  // of rows is padded to two tiles.
  const int64_t most_rows = (kChunk * heads + 31) / 32 * 32;
  constexpr int64_t most = kChunk * kSquares;
  thread_local Scratch scratch;
  scratch.begin();
  const GabWeights<T> gab_weights(block.gab, heads * generated, scratch);
  gab_weights.pack(block.gab, heads * generated);
  GenFrom<T> bias_input(block.gab, heads * generated, gab_weights, true, scratch);
  auto* joined = scratch.take<T>(joint * width);
  auto* project = scratch.take<uint32_t>(joint * width);
  auto* output = scratch.take<uint32_t>(width * width);
  auto* generator = scratch.take<uint32_t>(kPairs * generated);
  auto* gen_from = scratch.take<T>(most_rows * generated);
  auto* transposed_gen_from = scratch.take<T>(most_rows * generated);
  auto* slopes = scratch.take<T>(most_rows * kPairs);
  auto* buffer = scratch.take<float>(kRows * joint);
  auto* products = scratch.take<float>(kPairs);
  auto* of_gen_from = scratch.take<float>(most_rows * generated);
  auto* small_panel = scratch.take<uint32_t>(kPairs);
  auto* small_panel_2 = scratch.take<uint32_t>(kPairs);
  auto* small_transposed = reinterpret_cast<T*>(scratch.take<uint32_t>(kPairs));
  auto* inner = scratch.take<T>(most * width);
  auto* attended_slopes = scratch.take<T>(most * width);
  auto* projected_slopes = scratch.take<T>(most * joint);
  auto* transposed = scratch.take<T>(most * joint);
  auto* packed = scratch.take<uint32_t>(most * width + most_rows * kPairs);
  join_projections(block, joined);
  panel(joined, width, joint, width, project);
  // The columns after the compressed squares must be zero.
  std::memset(projected_slopes, 0, static_cast<size_t>(most * joint) * sizeof(T));
  panel(static_cast<const T*>(block.output), width, width, width, output);
  panel(static_cast<const T*>(block.gab.generator), generated, kPairs, generated, generator);
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_width));
  const Tiles tiles;
  for (int64_t begin = first; begin < last; begin += kChunk) {
    const int64_t boards = last - begin < kChunk ? last - begin : kChunk;
    const int64_t tokens = boards * kSquares, token = begin * kSquares;
    for (int64_t row = 0; row < tokens; ++row) {
      const int64_t place = (token + row) * width;
      norm_backward(block.norm, width, static_cast<const T*>(gradients.y) + place,
                    static_cast<const T*>(block.saved.normal) + place,
                    block.saved.inverse[token + row], inner + row * width, sums.norm,
                    sums.output_bias);
    }
    for_rows({tokens, width, width}, inner, width, output, buffer,
             [&](int64_t row, const float* products) {
               for (int64_t i = 0; i < width; i += kLanes) {
                 store(block.norm.gain * load(products + i),
                       attended_slopes + row * width + i);
               }
             });
    const T* attended = static_cast<const T*>(block.attended) + token * width;
    add_outer({width, width, tokens}, inner, width, attended, width, sums.output, transposed,
              packed);

    const T* projected = static_cast<const T*>(block.projected) + token * joint;
    for (int64_t pair = 0; pair < boards * heads; ++pair) {
      const int64_t board = pair / heads, head = pair % heads;
      const int64_t place = board * kSquares * joint + head * head_width;
      const T* query = projected + place;
      const T* key = query + width;
      const T* value = key + width;
      const T* of_attended = attended_slopes + board * kSquares * width + head * head_width;
      const T* weights =
          static_cast<const T*>(block.probabilities) + (begin * heads + pair) * kPairs;
      T* logit_slopes = slopes + pair * kPairs;
      T* of_query = projected_slopes + place;
      T* of_key = of_query + width;
      T* of_value = of_key + width;
      const auto store_to = [&](T* out, float factor) {
        return [=](int64_t row, const float* products) {
          for (int64_t i = 0; i < head_width; i += kLanes) {
            store(factor * load(products + i), out + row * joint + i);
          }
        };
      };
      const Sizes back{kSquares, head_width, kSquares};

      panel_of_transpose(value, joint, head_width, kSquares, small_panel);
      product<T>({kSquares, kSquares, head_width}, of_attended, width, small_panel, kSquares,
                 products, kSquares, false);
      transpose(weights, kSquares, kSquares, kSquares, small_transposed);
      panel(of_attended, width, kSquares, head_width, small_panel_2);
      for_rows(back, small_transposed, kSquares, small_panel_2, buffer,
               store_to(of_value, 1.0f));
      const uint64_t* attacks =
          block.attacks ? block.attacks + (begin + board) * 2 * kSquares : nullptr;
      logits_backward(products, weights, attacks, sums.worth + 2 * head, logit_slopes);
      panel(key, joint, kSquares, head_width, small_panel);
      for_rows(back, logit_slopes, kSquares, small_panel, buffer, store_to(of_query, scale));
      transpose(logit_slopes, kSquares, kSquares, kSquares, small_transposed);
      panel(query, joint, kSquares, head_width, small_panel);
      for_rows(back, small_transposed, kSquares, small_panel, buffer, store_to(of_key, scale));
    }

    // Gradients of the generator and of its input.
    const int64_t rows = boards * heads, padded = (rows + 31) / 32 * 32;
    std::memset(slopes + rows * kPairs, 0,
                static_cast<size_t>((padded - rows) * kPairs) * sizeof(T));
    const T* compressed = projected + 3 * width;
    std::memset(gen_from, 0, static_cast<size_t>(padded * generated) * sizeof(T));
    bias_input.forward(compressed, joint, boards, gen_from);
    product<T>({padded, generated, kPairs}, slopes, kPairs, generator, generated,
               of_gen_from, generated, false);
    add_outer({generated, kPairs, padded}, gen_from, generated, slopes, kPairs,
              sums.gab.generator, transposed_gen_from, packed);
    bias_input.backward(compressed, joint, boards, of_gen_from, sums.gab,
                    projected_slopes + 3 * width);

    T* out = static_cast<T*>(gradients.x) + token * width;
    for_rows({tokens, width, joint}, projected_slopes, joint, project, buffer,
             [&](int64_t row, const float* products) {
               for (int64_t i = 0; i < width; i += kLanes) {
                 store(load(products + i) + load(inner + row * width + i),
                       out + row * width + i);
               }
             });
    const T* x = static_cast<const T*>(block.x) + token * width;
    add_outer({joint, width, tokens}, projected_slopes, joint, x, width, sums.projection,
              transposed, packed);
  }
}

}  // namespace tessera::TESSERA_ISA
