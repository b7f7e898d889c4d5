// Checks the tensors of operators before kernels read them.
#pragma once

#include "blocks.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

namespace tessera::fused {

// Returns whether kernels support these widths.
inline bool whole(std::initializer_list<int64_t> widths) {
  return std::all_of(widths.begin(), widths.end(),
                     [](int64_t width) { return width > 0 && width % 32 == 0; });
}

// Returns whether the heads divide the width evenly. The width is divided, because heads ·
// head_width, whose factors come from a file, could overflow.
inline bool are_heads(int64_t heads, int64_t head_width, int64_t width) {
  return heads > 0 && width % heads == 0 && head_width == width / heads;
}

// Checks a tensor's dtype and sizes, because kernels rely on them.
inline void expect(const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef sizes) {
  TORCH_CHECK(tensor.defined() && tensor.is_cpu() && tensor.scalar_type() == type &&
                  tensor.sizes() == sizes,
              "a tensor of ", tensor.sizes(), " in place of ", sizes);
}

// Checks tokens, which may be those of any number of boards.
inline void expect_tokens(const at::Tensor& tokens, at::ScalarType type, int64_t width) {
  TORCH_CHECK(tokens.is_cpu() && tokens.scalar_type() == type && tokens.dim() > 0 &&
                  tokens.size(-1) == width && tokens.numel() % (kSquares * width) == 0,
              "tokens of ", tokens.sizes());
}

// Checks the ten weights of a bias generator, in the order of `gab_of`, for a number of heads and a
// token width.
inline void expect_gab(const at::Tensor* weights, at::ScalarType type, int64_t width,
                       int64_t heads) {
  const at::Tensor &squares = weights[0], &summary = weights[1], &generator = weights[9];
  TORCH_CHECK(squares.dim() == 2 && summary.dim() == 2 && generator.dim() == 2,
              "weights of no generator of biases");
  const int64_t compress = squares.size(0), hidden = summary.size(0);
  const int64_t generated = generator.size(1), gen_width = heads * generated;
  TORCH_CHECK(compress > 0 && whole({hidden, generated}), "widths that have no kernels");
  expect(squares, type, {compress, width});
  expect(summary, type, {hidden, kSquares * compress});
  for (int weight = 2; weight < 5; ++weight) {
    expect(weights[weight], type, {hidden});
  }
  expect(weights[5], type, {gen_width, hidden});
  for (int weight = 6; weight < 9; ++weight) {
    expect(weights[weight], type, {gen_width});
  }
  expect(generator, type, {kPairs, generated});
}

// Checks attack bitboards and each head's attack weights.
inline void expect_attacks(const at::Tensor& attacks, const at::Tensor& worth,
                           at::ScalarType type, int64_t boards, int64_t heads) {
  TORCH_CHECK(attacks.defined() && worth.defined() && attacks.is_cpu() &&
                  attacks.scalar_type() == at::kLong &&
                  attacks.numel() == boards * 2 * kSquares && worth.is_cpu() &&
                  worth.scalar_type() == type && worth.numel() == 2 * heads,
              "attacks of other boards");
}

// Returns whether these are valid indices of move logits.
inline bool are_places(const at::Tensor& places) {
  if (!places.is_cpu() || places.scalar_type() != at::kLong ||
      places.sizes() != at::IntArrayRef{kPolicy}) {
    return false;
  }
  const at::Tensor all = places.contiguous();
  const auto* first = all.const_data_ptr<int64_t>();
  return std::all_of(first, first + kPolicy,
                     [](int64_t place) { return place >= 0 && place < kPlaces; });
}

}  // namespace tessera::fused
