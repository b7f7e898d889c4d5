// Number formats of dense layers over tokens: unchanged, or quantised to bytes.
//
// In bytes, each token and the weights of each output have their own scale. This is dynamic
// quantisation by row, as in PyTorch and llama.cpp. Sums are exact in 32 bits. Let s be max |x| of
// a token x divided by the largest integer, and let t be max |w| of an output's weights w divided
// by the largest integer. With the integers X = round(x / s) + zero point and W = round(w / t),
//
//     x · w ≈ s · t · (Σ X · W − zero point · Σ W)
//
// where the last sum is precomputed. Processors multiply bytes up to four times as fast as f32 and
// twice as fast as bf16.
#pragma once

#include "product.h"

namespace tessera::TESSERA_ISA {

// The format without quantisation.
template <typename T>
struct Exact {
  using Number = T;

  // The weights of a layer, [outputs, inputs], as the panel of their transpose.
  struct Weights {
    uint32_t* panel;
    int64_t inputs;

    Weights from(int64_t output) const { return {panel + output * inputs / kPair<T>, inputs}; }
  };

  struct Tokens {
    const T* rows;
    int64_t stride;
  };

  // Prepares tokens for matrix products. This format reads them where they are.
  struct TokenBuffer {
    Tokens read(const T* rows, int64_t stride, int64_t) const { return {rows, stride}; }
  };

  static Weights take(int64_t outputs, int64_t inputs, Arena& arena) {
    return {arena.take<uint32_t>(outputs * inputs), inputs};
  }

  static TokenBuffer token_buffer(int64_t, int64_t, Arena&) { return {}; }

  TESSERA_MEMBER static void pack(const T* weights, int64_t outputs, Weights to) {
    panel_of_transpose(weights, to.inputs, to.inputs, outputs, to.panel);
  }

  // Computes C [rows, outputs].
  TESSERA_MEMBER static void multiply(int64_t rows, int64_t outputs, Tokens tokens,
                                      int64_t first, Weights weights, float* c) {
    product<T>({rows, outputs, weights.inputs}, tokens.rows + first * tokens.stride,
               tokens.stride, weights.panel, outputs, c, outputs, false);
  }
};

using fused::kQuantisedMost;
using fused::kQuantisedMultiple;
static_assert(kQuantisedMultiple % (4 * kLanes) == 0);

// The integers of tokens are unsigned, because the instructions require unsigned bytes. The
// constants are their zero point and the largest distance from it. With AVX2, the sum of two
// products must fit in 16 bits, which leaves seven bits for one factor.
#ifdef __AVX512VNNI__
constexpr int32_t kZeroPoint = 128;
constexpr float kLargest = 127.0f;
#else
constexpr int32_t kZeroPoint = 64;
constexpr float kLargest = 63.0f;
#endif
static_assert(127 * kZeroPoint * kQuantisedMost <= INT32_MAX);

TESSERA_INLINE Integers load(const int32_t* in) {
  Integers x;
  std::memcpy(&x, in, sizeof x);
  return x;
}

// Extracts the lowest byte of each integer.
TESSERA_INLINE void store_bytes(Integers x, void* out) {
#ifdef __AVX512F__
  _mm_storeu_si128(static_cast<__m128i*>(out), _mm512_cvtepi32_epi8((__m512i)x));
#else
  const __m256i low = (__m256i)(x & 0xff);
  const __m128i halves =
      _mm_packs_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64(static_cast<__m128i*>(out), _mm_packus_epi16(halves, halves));
#endif
}

// Rounds to the nearest integer.
TESSERA_INLINE Integers nearest(Vector x) {
#ifdef __AVX512F__
  return (Integers)_mm512_cvtps_epi32((__m512)x);
#else
  return (Integers)_mm256_cvtps_epi32((__m256)x);
#endif
}

// Writes x as integers that differ from `zero_point` by at most `most`, and returns their scale. If
// x contains NaN or infinity, the scale is NaN.
template <typename T>
TESSERA_INLINE float quantise(const T* x, int64_t count, float most, int32_t zero_point,
                              uint8_t* out) {
  Vector top{}, non_finite{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const Vector v = load(x + i);
    top = larger(top, (Vector)((Integers)v & 0x7fffffff));
    non_finite += v - v;
  }
  const float peak = largest(top);
  const float inverse = peak > 1e-30f ? most / peak : 0.0f;
  for (int64_t i = 0; i < count; i += kLanes) {
    store_bytes(nearest(load(x + i) * inverse) + zero_point, out + i);
  }
  return peak / most + sum(non_finite);
}

// Adds the products of four bytes to each integer.
TESSERA_INLINE Integers multiply_add(const uint8_t* a, Words b, Integers sum) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
#if defined(__AVX512VNNI__)
  return (Integers)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(four), (__m512i)b);
#elif defined(__AVX512F__)
#error "AVX-512 kernels multiply bytes by VNNI"
#else
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(four), (__m256i)b);
  return sum + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

// The format with quantisation to bytes.
template <typename T>
struct Quantised {
  using Number = T;

  struct Weights {
    // The panel of the transpose of the integers [outputs, inputs].
    uint32_t* panel;
    // The scale of each output.
    float* scales;
    // Initial value of each output's sum, which cancels the product of the weights and
    // `kZeroPoint`.
    int32_t* corrections;
    int64_t inputs;

    Weights from(int64_t output) const {
      return {panel + output * inputs / 4, scales + output, corrections + output, inputs};
    }
  };

  struct Tokens {
    const uint8_t* rows;
    const float* scales;
  };

  struct TokenBuffer {
    uint8_t* rows;
    float* scales;
    int64_t inputs;

    TESSERA_MEMBER Tokens read(const T* tokens, int64_t stride, int64_t count) const {
      for (int64_t token = 0; token < count; ++token) {
        scales[token] = quantise(tokens + token * stride, inputs, kLargest, kZeroPoint,
                                 rows + token * inputs);
      }
      return {rows, scales};
    }
  };

  static Weights take(int64_t outputs, int64_t inputs, Arena& arena) {
    auto* panel = arena.take<uint32_t>(outputs * inputs / 4);
    auto* scales = arena.take<float>(outputs);
    return {panel, scales, arena.take<int32_t>(outputs), inputs};
  }

  static TokenBuffer token_buffer(int64_t tokens, int64_t inputs, Arena& arena) {
    auto* rows = arena.take<uint8_t>(tokens * inputs);
    return {rows, arena.take<float>(tokens), inputs};
  }

  TESSERA_MEMBER static void pack(const T* weights, int64_t outputs, Weights to) {
    thread_local Scratch scratch;
    scratch.begin();
    auto* rows = scratch.take<uint8_t>(outputs * to.inputs);
    for (int64_t output = 0; output < outputs; ++output) {
      uint8_t* row = rows + output * to.inputs;
      to.scales[output] = quantise(weights + output * to.inputs, to.inputs, 127.0f, 0, row);
      int32_t total = 0;
      for (int64_t i = 0; i < to.inputs; ++i) {
        total += static_cast<int8_t>(row[i]);
      }
      to.corrections[output] = -kZeroPoint * total;
    }
    panel_of_transpose(rows, to.inputs, to.inputs, outputs, to.panel);
  }

  TESSERA_MEMBER static void multiply(int64_t rows, int64_t outputs, Tokens tokens,
                                      int64_t first, Weights weights, float* c) {
    constexpr int kTall = kLanes / 2, kWide = 2;
    for (int64_t i = 0; i < rows; i += kTall) {
      const Tokens from{tokens.rows + (first + i) * weights.inputs, tokens.scales + first + i};
      int64_t j = 0;
      for (; j + kWide * kLanes <= outputs; j += kWide * kLanes) {
        block<kTall, kWide>(from, weights, j, outputs, c + i * outputs + j);
      }
      if (j < outputs) {
        block<kTall, 1>(from, weights, j, outputs, c + i * outputs + j);
      }
    }
  }

 private:
  // Computes a block of C in registers, for the outputs from `output` on.
  template <int kTall, int kWide>
  TESSERA_MEMBER static void block(Tokens tokens, Weights weights, int64_t output,
                                   int64_t outputs, float* c) {
    Integers sums[kTall][kWide];
    for (int i = 0; i < kTall; ++i) {
      for (int j = 0; j < kWide; ++j) {
        sums[i][j] = load(weights.corrections + output + j * kLanes);
      }
    }
    const uint32_t* panel = weights.panel + output;
    for (int64_t step = 0; step < weights.inputs; step += 4) {
      Words words[kWide];
      for (int j = 0; j < kWide; ++j) {
        words[j] = load_words(panel + j * kLanes);
      }
      panel += outputs;
#pragma GCC unroll 8
      for (int i = 0; i < kTall; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < kWide; ++j) {
          sums[i][j] = multiply_add(tokens.rows + i * weights.inputs + step, words[j],
                                    sums[i][j]);
        }
      }
    }
    for (int i = 0; i < kTall; ++i) {
      for (int j = 0; j < kWide; ++j) {
        const Vector scale =
            tokens.scales[i] * load(weights.scales + output + j * kLanes);
        store(__builtin_convertvector(sums[i][j], Vector) * scale,
              c + i * outputs + j * kLanes);
      }
    }
  }
};

// Multiplies tokens by the layer's weights, 32 rows at a time, and calls use(row, products) for
// every row. `buffer` must have space for 32 rows of outputs.
template <typename Format, typename Use>
TESSERA_INLINE void for_tokens(int64_t tokens, int64_t outputs,
                               const typename Format::Tokens& rows,
                               const typename Format::Weights& weights, float* buffer,
                               Use use) {
  for (int64_t row = 0; row < tokens; row += kRows) {
    const int64_t count = tokens - row < kRows ? tokens - row : kRows;
    Format::multiply(count, outputs, rows, row, weights, buffer);
    for (int64_t i = 0; i < count; ++i) {
      use(row + i, buffer + i * outputs);
    }
  }
}

}  // namespace tessera::TESSERA_ISA
