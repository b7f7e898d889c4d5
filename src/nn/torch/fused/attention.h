// The attention block, with biases that are generated from each board and that
// attacks add to.
#pragma once

#include "bias.h"

namespace tessera::TESSERA_ISA {

using fused::Attention;
using fused::AttentionGradients;
using fused::AttentionSums;
using fused::kPairs;

// The next multiple of sixteen.
TESSERA_INLINE int64_t round_up_16(int64_t rows) { return (rows + 15) / 16 * 16; }

// Vectors that a square's logits take.
constexpr int64_t kParts = kSquares / kLanes;

// Some columns of a row of attacks.
TESSERA_INLINE uint16_t bits_from(uint64_t row, int64_t column) {
  return static_cast<uint16_t>(row >> column);
}

// One board and head: P = softmax(scale · S + bias + attacks).
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

// The rows of all projections end to end, [joint, width]: queries, keys, values,
// and compressed squares with zeros to a multiple of 32.
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

// In parts of as many outputs as there are inputs, which stay in the first cache.
TESSERA_INLINE int64_t part_width(const Attention& block, int64_t start) {
  return block.joint - start < block.width ? block.joint - start : block.width;
}

template <typename Format>
struct AttentionWeights {
  using T = typename Format::Number;
  AskingWeights<T> asking;
  typename Format::Weights project, output;
  uint32_t* generator;

  static int64_t asked(const Attention& block) { return block.heads * block.gab.generated; }

  static size_t bytes(const Attention& block) {
    return AskingWeights<T>::bytes(block.gab, asked(block)) +
           Format::bytes(block.joint, block.width) + Format::bytes(block.width, block.width) +
           Arena::bytes<uint32_t>(kPairs * block.gab.generated);
  }

  AttentionWeights(const Attention& block, Arena& arena)
      : asking(block.gab, asked(block), arena),
        project(Format::take(block.joint, block.width, arena)),
        output(Format::take(block.width, block.width, arena)),
        generator(arena.take<uint32_t>(kPairs * block.gab.generated)) {}

  void pack(const Attention& block) const {
    const int64_t width = block.width, generated = block.gab.generated;
    asking.pack(block.gab, asked(block));
    thread_local Scratch scratch;
    scratch.begin(Scratch::bytes<T>(block.joint * width));
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
  // What backward does not need is overwritten by the next chunk, or head.
  constexpr int64_t most = kChunk * kSquares;
  const bool keeps = block.projected != nullptr;
  thread_local Scratch scratch;
  using Weights = AttentionWeights<Format>;
  scratch.begin(bytes_for<Weights>(block) +
                Asking<T>::bytes(block.gab, heads * generated, false) +
                Format::token_bytes(most, width) +
                Scratch::bytes<T>(most_rows * generated) +
                Scratch::bytes<float>(most_rows * kPairs) +
                Scratch::bytes<float>(kRows * joint) + Scratch::bytes<float>(width) +
                Scratch::bytes<float>(kPairs) +
                Scratch::bytes<uint32_t>(kSquares * head_width) +
                Scratch::bytes<T>(most * joint) + Scratch::bytes<T>(most * width) +
                Scratch::bytes<T>(kPairs));
  const auto weights = weights_of<Weights>(block, scratch);
  Asking<T> asking(block.gab, heads * generated, weights.asking, false, scratch);
  const auto token_buffer = Format::token_buffer(most, width, scratch);
  auto* asked = scratch.take<T>(most_rows * generated);
  auto* bias = scratch.take<float>(most_rows * kPairs);
  auto* buffer = scratch.take<float>(kRows * joint);
  auto* row_buffer = scratch.take<float>(width);
  auto* products = scratch.take<float>(kPairs);
  auto* panelled = scratch.take<uint32_t>(kSquares * head_width);
  auto* projected_room = scratch.take<T>(most * joint);
  auto* seen_room = scratch.take<T>(most * width);
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
    std::memset(asked, 0, static_cast<size_t>(most_rows * generated) * sizeof(T));
    asking.forward(projected + 3 * width, joint, boards, asked);
    product<T>({round_up_16(boards * heads), kPairs, generated}, asked, generated,
               weights.generator, kPairs, bias, kPairs, false);
    T* seen = keeps ? static_cast<T*>(block.seen) + token * width : seen_room;
    for (int64_t pair = 0; pair < boards * heads; ++pair) {
      const int64_t board = pair / heads, head = pair % heads;
      const T* query = projected + board * kSquares * joint + head * head_width;
      const T* key = query + width;
      const T* value = key + width;
      panel_of_transpose(key, joint, head_width, kSquares, panelled);
      product<T>({kSquares, kSquares, head_width}, query, joint, panelled, kSquares,
                 products, kSquares, false);
      const int64_t place = (begin * heads + pair) * kPairs;
      T* shares = keeps ? static_cast<T*>(block.probabilities) + place : shares_room;
      const uint64_t* attacks =
          block.attacks ? block.attacks + (begin + board) * 2 * kSquares : nullptr;
      probabilities(products, bias + pair * kPairs, scale, attacks, block.worth + 2 * head,
                    shares);
      panel(value, joint, kSquares, head_width, panelled);
      T* out = seen + board * kSquares * width + head * head_width;
      for_rows({kSquares, head_width, kSquares}, shares, kSquares, panelled, buffer,
               [&](int64_t row, const float* sums) {
                 for (int64_t i = 0; i < head_width; i += kLanes) {
                   store(load(sums + i), out + row * width + i);
                 }
               });
    }
    for_tokens<Format>(tokens, width, token_buffer.read(seen, width, tokens),
                       weights.output, buffer, [&](int64_t row, const float* sums) {
                         const int64_t place = (token + row) * width;
                         norm_forward(block.norm, width, x + row * width, sums, output_bias,
                                      row_buffer, static_cast<T*>(block.y) + place,
                                      kept_at<T>(block.saved.normal, place),
                                      kept_at<float>(block.saved.inverse, token + row));
                       });
  }
}

// One board and head: the gradient of the logits, dS = P ∘ (dP − Σ P ∘ dP), from
// that of P. To the sums are added what attacks would have been worth.
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
  // The generator's gradient is a product over these: two tiles' worth.
  const int64_t most_rows = (kChunk * heads + 31) / 32 * 32;
  constexpr int64_t most = kChunk * kSquares;
  thread_local Scratch scratch;
  scratch.begin(AskingWeights<T>::bytes(block.gab, heads * generated) +
                Asking<T>::bytes(block.gab, heads * generated, true) +
                Scratch::bytes<T>(joint * width) + Scratch::bytes<uint32_t>(joint * width) +
                Scratch::bytes<uint32_t>(width * width) +
                Scratch::bytes<uint32_t>(kPairs * generated) +
                2 * Scratch::bytes<T>(most_rows * generated) +
                Scratch::bytes<T>(most_rows * kPairs) +
                Scratch::bytes<float>(kRows * joint) + Scratch::bytes<float>(kPairs) +
                Scratch::bytes<float>(most_rows * generated) +
                3 * Scratch::bytes<uint32_t>(kPairs) + 2 * Scratch::bytes<T>(most * width) +
                2 * Scratch::bytes<T>(most * joint) +
                Scratch::bytes<uint32_t>(most * width + most_rows * kPairs));
  const AskingWeights<T> asking_weights(block.gab, heads * generated, scratch);
  asking_weights.pack(block.gab, heads * generated);
  Asking<T> asking(block.gab, heads * generated, asking_weights, true, scratch);
  auto* joined = scratch.take<T>(joint * width);
  auto* project = scratch.take<uint32_t>(joint * width);
  auto* output = scratch.take<uint32_t>(width * width);
  auto* generator = scratch.take<uint32_t>(kPairs * generated);
  auto* asked = scratch.take<T>(most_rows * generated);
  auto* turned_asked = scratch.take<T>(most_rows * generated);
  auto* slopes = scratch.take<T>(most_rows * kPairs);
  auto* buffer = scratch.take<float>(kRows * joint);
  auto* products = scratch.take<float>(kPairs);
  auto* of_asked = scratch.take<float>(most_rows * generated);
  auto* small_panel = scratch.take<uint32_t>(kPairs);
  auto* small_panel_2 = scratch.take<uint32_t>(kPairs);
  auto* small_turned = reinterpret_cast<T*>(scratch.take<uint32_t>(kPairs));
  auto* inner = scratch.take<T>(most * width);
  auto* seen_slopes = scratch.take<T>(most * width);
  auto* projected_slopes = scratch.take<T>(most * joint);
  auto* turned = scratch.take<T>(most * joint);
  auto* panelled = scratch.take<uint32_t>(most * width + most_rows * kPairs);
  join_projections(block, joined);
  panel(joined, width, joint, width, project);
  // The columns beyond the compressed squares.
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
                 store(block.norm.gain * load(products + i), seen_slopes + row * width + i);
               }
             });
    const T* seen = static_cast<const T*>(block.seen) + token * width;
    add_outer({width, width, tokens}, inner, width, seen, width, sums.output, turned,
              panelled);

    const T* projected = static_cast<const T*>(block.projected) + token * joint;
    for (int64_t pair = 0; pair < boards * heads; ++pair) {
      const int64_t board = pair / heads, head = pair % heads;
      const int64_t place = board * kSquares * joint + head * head_width;
      const T* query = projected + place;
      const T* key = query + width;
      const T* value = key + width;
      const T* of_seen = seen_slopes + board * kSquares * width + head * head_width;
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
      product<T>({kSquares, kSquares, head_width}, of_seen, width, small_panel, kSquares,
                 products, kSquares, false);
      transpose(weights, kSquares, kSquares, kSquares, small_turned);
      panel(of_seen, width, kSquares, head_width, small_panel_2);
      for_rows(back, small_turned, kSquares, small_panel_2, buffer,
               store_to(of_value, 1.0f));
      const uint64_t* attacks =
          block.attacks ? block.attacks + (begin + board) * 2 * kSquares : nullptr;
      logits_backward(products, weights, attacks, sums.worth + 2 * head, logit_slopes);
      panel(key, joint, kSquares, head_width, small_panel);
      for_rows(back, logit_slopes, kSquares, small_panel, buffer, store_to(of_query, scale));
      transpose(logit_slopes, kSquares, kSquares, kSquares, small_turned);
      panel(query, joint, kSquares, head_width, small_panel);
      for_rows(back, small_turned, kSquares, small_panel, buffer, store_to(of_key, scale));
    }

    // The generator and what it was asked for.
    const int64_t rows = boards * heads, padded = (rows + 31) / 32 * 32;
    std::memset(slopes + rows * kPairs, 0,
                static_cast<size_t>((padded - rows) * kPairs) * sizeof(T));
    const T* compressed = projected + 3 * width;
    std::memset(asked, 0, static_cast<size_t>(padded * generated) * sizeof(T));
    asking.forward(compressed, joint, boards, asked);
    product<T>({padded, generated, kPairs}, slopes, kPairs, generator, generated, of_asked,
               generated, false);
    add_outer({generated, kPairs, padded}, asked, generated, slopes, kPairs,
              sums.gab.generator, turned_asked, panelled);
    asking.backward(compressed, joint, boards, of_asked, sums.gab,
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
              turned, panelled);
  }
}

}  // namespace tessera::TESSERA_ISA
