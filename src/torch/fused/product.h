// Products of matrices that fit in a cache. The factors are f32 or bf16, and the results are f32.
//
// A product C = A·B reads A by rows and B as a panel of 32-bit words. A word contains one f32
// element or two bf16 elements from adjacent rows. This is the layout of AMX and AVX512-BF16
// (VNNI).
#pragma once

#include "simd.h"

namespace tessera::TESSERA_ISA {

// Number of rows of B that share a word of its panel.
template <typename T>
constexpr int64_t kPair = static_cast<int64_t>(sizeof(uint32_t) / sizeof(T));

// Transposes a square block of words.
TESSERA_INLINE void transpose_block(Words (&rows)[kLanes]) {
#ifdef __AVX512F__
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32((__m512i)rows[i], (__m512i)rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32((__m512i)rows[i], (__m512i)rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_i32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_i32x4(b[i], b[i + 4], 0xdd);
    a[i + 8] = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = (Words)_mm512_shuffle_i32x4(a[i], a[i + 8], 0x88);
    rows[i + 8] = (Words)_mm512_shuffle_i32x4(a[i], a[i + 8], 0xdd);
    rows[i + 4] = (Words)_mm512_shuffle_i32x4(a[i + 4], a[i + 12], 0x88);
    rows[i + 12] = (Words)_mm512_shuffle_i32x4(a[i + 4], a[i + 12], 0xdd);
  }
#else
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps((__m256)rows[i], (__m256)rows[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps((__m256)rows[i], (__m256)rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = (Words)_mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    rows[i + 4] = (Words)_mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
#endif
}

TESSERA_INLINE Words load_words(const void* in) {
  Words words;
  std::memcpy(&words, in, sizeof words);
  return words;
}

TESSERA_INLINE void store_words(Words words, void* out) {
  std::memcpy(out, &words, sizeof words);
}

// Loads words of a panel, from columns of one row or of a pair of rows.
TESSERA_INLINE Words panel_words(const float* row, int64_t) { return load_words(row); }
#ifdef __AVX512BF16__
TESSERA_INLINE Words panel_words(const uint16_t* row, int64_t stride) {
  return widen(row) | (widen(row + stride) << 16);
}
#endif

// Writes the panel of B, which is stored by rows. `columns` must be a multiple of 16, and `rows` a
// multiple of 2.
template <typename T>
TESSERA_INLINE void panel(const T* b, int64_t stride, int64_t rows, int64_t columns,
                          uint32_t* out) {
  for (int64_t row = 0; row < rows; row += kPair<T>) {
    for (int64_t column = 0; column < columns; column += kLanes) {
      store_words(panel_words(b + row * stride + column, stride), out + column);
    }
    out += columns;
  }
}

// Writes the panel of the transpose of a matrix [columns, rows]. Both sizes must be multiples of
// 32.
template <typename T>
TESSERA_INLINE void panel_of_transpose(const T* b, int64_t stride, int64_t rows,
                                       int64_t columns, uint32_t* out) {
  constexpr int64_t step = kLanes * kPair<T>;
  for (int64_t column = 0; column < columns; column += kLanes) {
    for (int64_t row = 0; row < rows; row += step) {
      Words block[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        block[i] = load_words(b + (column + i) * stride + row);
      }
      transpose_block(block);
      for (int64_t i = 0; i < kLanes; ++i) {
        store_words(block[i], out + (row / kPair<T> + i) * columns + column);
      }
    }
  }
}

// Writes the transpose of a matrix [rows, columns], whose rows then have length `rows`. Both sizes
// must be multiples of 32.
template <typename T>
TESSERA_INLINE void transpose(const T* a, int64_t stride, int64_t rows, int64_t columns,
                              T* out) {
  constexpr int64_t step = kLanes * kPair<T>;
  for (int64_t row = 0; row < rows; row += step) {
    for (int64_t column = 0; column < columns; column += kLanes) {
      Words block[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        block[i] = panel_words(a + (row + i * kPair<T>)*stride + column, stride);
      }
      transpose_block(block);
      for (int64_t i = 0; i < kLanes; ++i) {
        store_words(block[i], out + (column + i) * rows + row);
      }
    }
  }
}

// The sizes of a product of A [m, k] and B [k, n]. m and n must be multiples of 16, and k a
// multiple of 32.
struct Sizes {
  int64_t m, n, k;
};

TESSERA_INLINE Vector multiply_add(const float* a, Words b, Vector sum) {
#ifdef __AVX512F__
  return (Vector)_mm512_fmadd_ps(_mm512_set1_ps(*a), (__m512)b, (__m512)sum);
#else
  return splat(*a) * (Vector)b + sum;
#endif
}

#ifdef __AVX512BF16__
TESSERA_INLINE Vector multiply_add(const uint16_t* a, Words b, Vector sum) {
  int32_t pair;
  std::memcpy(&pair, a, sizeof pair);
  return (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(pair),
                                  (__m512bh)b);
}
#endif

// Computes a block of C in registers.
template <int kRows, int kVectors, typename T>
TESSERA_INLINE void block(int64_t k, const T* a, int64_t a_stride, const uint32_t* b,
                          int64_t b_stride, float* c, int64_t c_stride, bool add) {
  Vector sums[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      sums[i][j] = add ? load(c + i * c_stride + j * kLanes) : Vector{};
    }
  }
  for (int64_t step = 0; step < k; step += kPair<T>) {
    Words words[kVectors];
    for (int j = 0; j < kVectors; ++j) {
      words[j] = load_words(b + j * kLanes);
    }
    b += b_stride;
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = multiply_add(a + i * a_stride + step, words[j], sums[i][j]);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      store(sums[i][j], c + i * c_stride + j * kLanes);
    }
  }
}

// Computes C = A·B, or adds A·B to C.
template <typename T>
TESSERA_INLINE void product(Sizes sizes, const T* a, int64_t a_stride, const uint32_t* b,
                            int64_t b_stride, float* c, int64_t c_stride, bool add) {
  constexpr int kRows = kLanes / 2, kVectors = 2;
  for (int64_t i = 0; i < sizes.m; i += kRows) {
    int64_t j = 0;
    for (; j + kVectors * kLanes <= sizes.n; j += kVectors * kLanes) {
      block<kRows, kVectors>(sizes.k, a + i * a_stride, a_stride, b + j, b_stride,
                             c + i * c_stride + j, c_stride, add);
    }
    if (j < sizes.n) {
      block<kRows, 1>(sizes.k, a + i * a_stride, a_stride, b + j, b_stride,
                      c + i * c_stride + j, c_stride, add);
    }
  }
}

#ifdef __AMX_BF16__

// Forces pending writes to memory, because the compiler does not know that loading a tile reads
// `memory`.
TESSERA_INLINE void commit(const void* memory) {
  __asm__ volatile("" : : "r"(memory) : "memory");
}

// Configures eight tiles, each of sixteen rows with sixteen words. The configuration ends with the
// object.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    commit(&shape);
    _tile_loadconfig(&shape);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Computes a block of C in tiles. The block has 16 or 32 rows and 16 or 32 columns.
template <bool kTall, bool kWide>
TESSERA_INLINE void tile_block(int64_t k, const uint16_t* a, int64_t a_stride,
                               const uint32_t* b, int64_t b_stride, float* c,
                               int64_t c_stride, bool add) {
  const int64_t a_bytes = a_stride * 2, b_bytes = b_stride * 4, c_bytes = c_stride * 4;
  float* below = c + 16 * c_stride;
  if (add) {
    _tile_loadd(0, c, c_bytes);
    if constexpr (kWide) _tile_loadd(1, c + 16, c_bytes);
    if constexpr (kTall) _tile_loadd(2, below, c_bytes);
    if constexpr (kTall && kWide) _tile_loadd(3, below + 16, c_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kWide) _tile_zero(1);
    if constexpr (kTall) _tile_zero(2);
    if constexpr (kTall && kWide) _tile_zero(3);
  }
  for (int64_t step = 0; step < k; step += 32) {
    _tile_loadd(4, a + step, a_bytes);
    _tile_loadd(6, b, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kWide) {
      _tile_loadd(7, b + 16, b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTall) {
      _tile_loadd(5, a + 16 * a_stride + step, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTall && kWide) _tile_dpbf16ps(3, 5, 7);
    b += 16 * b_stride;
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kWide) _tile_stored(1, c + 16, c_bytes);
  if constexpr (kTall) _tile_stored(2, below, c_bytes);
  if constexpr (kTall && kWide) _tile_stored(3, below + 16, c_bytes);
}

template <>
inline void product(Sizes sizes, const uint16_t* a, int64_t a_stride, const uint32_t* b,
                    int64_t b_stride, float* c, int64_t c_stride, bool add) {
  commit(a);
  for (int64_t i = 0; i < sizes.m; i += 32) {
    const uint16_t* rows = a + i * a_stride;
    const bool tall = i + 32 <= sizes.m;
    for (int64_t j = 0; j < sizes.n; j += 32) {
      float* corner = c + i * c_stride + j;
      const bool wide = j + 32 <= sizes.n;
      if (tall && wide) {
        tile_block<true, true>(sizes.k, rows, a_stride, b + j, b_stride, corner, c_stride,
                               add);
      } else if (tall) {
        tile_block<true, false>(sizes.k, rows, a_stride, b + j, b_stride, corner, c_stride,
                                add);
      } else if (wide) {
        tile_block<false, true>(sizes.k, rows, a_stride, b + j, b_stride, corner, c_stride,
                                add);
      } else {
        tile_block<false, false>(sizes.k, rows, a_stride, b + j, b_stride, corner, c_stride,
                                 add);
      }
    }
  }
}

#else

struct Tiles {
  Tiles() {}
  ~Tiles() {}
};

#endif

// Number of rows of A to multiply at a time, so that their products stay in the first-level cache
// until `use` has read them.
constexpr int64_t kRows = 32;

// Computes A·B, 32 rows at a time, and calls use(row, products) for every row. `buffer` must have
// space for 32 rows of C.
template <typename T, typename Use>
TESSERA_INLINE void for_rows(Sizes sizes, const T* a, int64_t a_stride, const uint32_t* b,
                             float* buffer, Use use) {
  for (int64_t row = 0; row < sizes.m; row += kRows) {
    const int64_t count = sizes.m - row < kRows ? sizes.m - row : kRows;
    product<T>({count, sizes.n, sizes.k}, a + row * a_stride, a_stride, b, sizes.n, buffer,
               sizes.n, false);
    for (int64_t i = 0; i < count; ++i) {
      use(row + i, buffer + i * sizes.n);
    }
  }
}

}  // namespace tessera::TESSERA_ISA
