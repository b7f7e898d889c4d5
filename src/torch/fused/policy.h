// The policy head, which is attention from a move's origin square to its destination square. Where
// q and k are the queries and the keys of a board's squares,
//
//     S = q · kᵀ / √width                                            [64, 64]
//     promotion from f to t and piece p: S[f, t] + k[t] · promotion[p]
//
// and the logit of each move is found at the move's index.
//
// Backward: dS includes the gradients of the promotions from f to t; dq = dS · k / √width and dk =
// dSᵀ · q / √width. For each piece p, the gradients of promotions to t are summed over f. This sum
// times promotion[p] is added to dk[t], and this sum times k[t] is added to dpromotion[p].
#pragma once

#include "feed_forward.h"

namespace tessera::TESSERA_ISA {

using fused::kPairs;
using fused::kPlaces;
using fused::kPolicy;
using fused::kPromotions;
using fused::Policy;
using fused::PolicyGradients;
using fused::PolicySums;

// Number of files, for promotions from the seventh rank to the eighth. The logits of promotions
// follow those of the pairs. Each is the sum of the pair's logit and the piece's term.
constexpr int64_t kFiles = 8;
TESSERA_INLINE int64_t last_pair(int64_t from, int64_t to) {
  return (48 + from) * kSquares + 56 + to;
}
TESSERA_INLINE int64_t promotion(int64_t from, int64_t to, int64_t piece) {
  return kPairs + (from * kFiles + to) * kPromotions + piece;
}

template <typename T>
TESSERA_INLINE float dot(const T* a, const T* b, int64_t width) {
  Vector products{};
  for (int64_t i = 0; i < width; i += kLanes) {
    products += load(a + i) * load(b + i);
  }
  return sum(products);
}

template <typename Format>
struct PolicyWeights {
  typename Format::Weights queries, keys;

  PolicyWeights(const Policy& head, Arena& arena)
      : queries(Format::take(head.width, head.width, arena)),
        keys(Format::take(head.width, head.width, arena)) {}

  void pack(const Policy& head) const {
    using T = typename Format::Number;
    Format::pack(static_cast<const T*>(head.query), head.width, queries);
    Format::pack(static_cast<const T*>(head.key), head.width, keys);
  }
};

template <typename Format>
void policy(const Policy& head, int64_t first_board, int64_t last_board) {
  using T = typename Format::Number;
  const int64_t width = head.width, joint = 2 * width;
  thread_local Scratch scratch;
  using Weights = PolicyWeights<Format>;
  scratch.begin();
  const auto weights = weights_of<Weights>(head, scratch);
  const auto tokens = Format::token_buffer(kSquares, width, scratch);
  auto* buffer = scratch.take<float>(kRows * width);
  auto* logits = scratch.take<float>(kPlaces);
  auto* packed = scratch.take<uint32_t>(kSquares * width);
  auto* projected_room = scratch.take<T>(kSquares * joint);
  const T* biases[2] = {static_cast<const T*>(head.query_bias),
                        static_cast<const T*>(head.key_bias)};
  const T* pieces = static_cast<const T*>(head.promotion);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  const Tiles tiles;
  for (int64_t board = first_board; board < last_board; ++board) {
    const T* x = static_cast<const T*>(head.x) + board * kSquares * width;
    T* kept = kept_at<T>(head.projected, board * kSquares * joint);
    T* projected = kept != nullptr ? kept : projected_room;
    const auto rows = tokens.read(x, width, kSquares);
    for (int part = 0; part < 2; ++part) {
      for_tokens<Format>(kSquares, width, rows, part == 0 ? weights.queries : weights.keys,
                         buffer, [&](int64_t row, const float* sums) {
                           T* out = projected + row * joint + part * width;
                           for (int64_t i = 0; i < width; i += kLanes) {
                             store(load(sums + i) + load(biases[part] + i), out + i);
                           }
                         });
    }
    const T* keys = projected + width;
    panel_of_transpose(keys, joint, width, kSquares, packed);
    product<T>({kSquares, kSquares, width}, projected, joint, packed, kSquares, logits,
               kSquares, false);
    for (int64_t i = 0; i < kPairs; i += kLanes) {
      store(load(logits + i) * scale, logits + i);
    }
    for (int64_t to = 0; to < kFiles; ++to) {
      for (int64_t piece = 0; piece < kPromotions; ++piece) {
        const float extra = dot(keys + (56 + to) * joint, pieces + piece * width, width);
        for (int64_t from = 0; from < kFiles; ++from) {
          logits[promotion(from, to, piece)] = logits[last_pair(from, to)] + extra;
        }
      }
    }
    float* out = head.logits + board * kPolicy;
    for (int64_t move = 0; move < kPolicy; ++move) {
      out[move] = logits[head.places[move]];
    }
  }
}

template <typename T>
void policy_backward(const Policy& head, const PolicyGradients& gradients,
                     const PolicySums& sums, int64_t first_board, int64_t last_board) {
  const int64_t width = head.width, joint = 2 * width;
  constexpr int64_t most = kChunk * kSquares;
  thread_local Scratch scratch;
  scratch.begin();
  auto* project = scratch.take<uint32_t>(joint * width);
  auto* buffer = scratch.take<float>(kRows * width);
  auto* logits = scratch.take<float>(kPlaces);
  auto* slopes = scratch.take<T>(kPairs);
  auto* transposed_slopes = scratch.take<T>(kPairs);
  auto* small_panel = scratch.take<uint32_t>(kSquares * width);
  auto* projected_slopes = scratch.take<T>(most * joint);
  auto* transposed = scratch.take<T>(most * joint);
  auto* packed = scratch.take<uint32_t>(most * width);
  panel(static_cast<const T*>(head.query), width, width, width, project);
  panel(static_cast<const T*>(head.key), width, width, width,
        project + width * width / kPair<T>);
  const T* pieces = static_cast<const T*>(head.promotion);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  std::memset(logits, 0, kPlaces * sizeof(float));
  const Tiles tiles;
  for (int64_t begin = first_board; begin < last_board; begin += kChunk) {
    const int64_t boards = last_board - begin < kChunk ? last_board - begin : kChunk;
    const int64_t tokens = boards * kSquares, token = begin * kSquares;
    for (int64_t board = 0; board < boards; ++board) {
      // Indices are distinct, and the logits at all other indices stay zero.
      const float* of_moves = gradients.logits + (begin + board) * kPolicy;
      for (int64_t move = 0; move < kPolicy; ++move) {
        logits[head.places[move]] = of_moves[move];
      }
      float extra[kFiles][kPromotions] = {};
      for (int64_t from = 0; from < kFiles; ++from) {
        for (int64_t to = 0; to < kFiles; ++to) {
          for (int64_t piece = 0; piece < kPromotions; ++piece) {
            const float g = logits[promotion(from, to, piece)];
            extra[to][piece] += g;
            logits[last_pair(from, to)] += g;
          }
        }
      }
      for (int64_t i = 0; i < kPairs; i += kLanes) {
        store(load(logits + i) * scale, slopes + i);
      }
      for (int64_t from = 0; from < kFiles; ++from) {
        for (int64_t to = 0; to < kFiles; ++to) {
          logits[last_pair(from, to)] = 0.0f;
        }
      }
      const T* queries =
          static_cast<const T*>(head.projected) + (token + board * kSquares) * joint;
      const T* keys = queries + width;
      T* of_queries = projected_slopes + board * kSquares * joint;
      T* of_keys = of_queries + width;
      panel(keys, joint, kSquares, width, small_panel);
      for_rows({kSquares, width, kSquares}, slopes, kSquares, small_panel, buffer,
               [&](int64_t row, const float* products) {
                 for (int64_t i = 0; i < width; i += kLanes) {
                   const Vector g = load(products + i);
                   store(g, of_queries + row * joint + i);
                   store(load(sums.query_bias + i) + g, sums.query_bias + i);
                 }
               });
      transpose(slopes, kSquares, kSquares, kSquares, transposed_slopes);
      panel(queries, joint, kSquares, width, small_panel);
      for_rows({kSquares, width, kSquares}, transposed_slopes, kSquares, small_panel, buffer,
               [&](int64_t row, const float* products) {
                 const float* pulls = row >= 56 ? extra[row - 56] : nullptr;
                 for (int64_t i = 0; i < width; i += kLanes) {
                   Vector g = load(products + i);
                   for (int64_t piece = 0; pulls != nullptr && piece < kPromotions; ++piece) {
                     const Vector key = load(keys + row * joint + i);
                     float* of_piece = sums.promotion + piece * width + i;
                     g += pulls[piece] * load(pieces + piece * width + i);
                     store(load(of_piece) + pulls[piece] * key, of_piece);
                   }
                   store(g, of_keys + row * joint + i);
                   store(load(sums.key_bias + i) + g, sums.key_bias + i);
                 }
               });
    }
    T* of_x = static_cast<T*>(gradients.x) + token * width;
    for_rows({tokens, width, joint}, projected_slopes, joint, project, buffer,
             [&](int64_t row, const float* products) {
               for (int64_t i = 0; i < width; i += kLanes) {
                 store(load(products + i), of_x + row * width + i);
               }
             });
    add_outer({joint, width, tokens}, projected_slopes, joint,
              static_cast<const T*>(head.x) + token * width, width, sums.projection,
              transposed, packed);
  }
}

}  // namespace tessera::TESSERA_ISA
