// SIMD vectors for kernels that are compiled once per instruction set (see isa_*.cpp). Each
// instruction set has its own namespace, so that the linker never replaces a function with that of
// another set.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tessera::TESSERA_ISA {

#ifdef __AVX512F__
constexpr int64_t kLanes = 16;
#else
constexpr int64_t kLanes = 8;
#endif

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t Integers __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));

#define TESSERA_INLINE static inline __attribute__((always_inline))
#define TESSERA_MEMBER inline __attribute__((always_inline))

TESSERA_INLINE Vector splat(float x) { return Vector{} + x; }

TESSERA_INLINE Vector load(const float* in) {
  Vector x;
  std::memcpy(&x, in, sizeof x);
  return x;
}

TESSERA_INLINE void store(Vector x, float* out) { std::memcpy(out, &x, sizeof x); }

TESSERA_INLINE float first(const float* in) { return *in; }

#ifdef __AVX512BF16__

// The bits of a bf16 are the upper half of the bits of an f32. Only processors that multiply in
// bf16 have bf16 kernels.
TESSERA_INLINE Words widen(const uint16_t* in) {
  return (Words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)in));
}

TESSERA_INLINE Vector load(const uint16_t* in) { return (Vector)(widen(in) << 16); }

// Rounds to the nearest bf16, ties to even.
TESSERA_INLINE void store(Vector x, uint16_t* out) {
  const auto halves = _mm512_cvtneps_pbh((__m512)x);
  std::memcpy(out, &halves, sizeof halves);
}

TESSERA_INLINE float first(const uint16_t* in) {
  const uint32_t bits = static_cast<uint32_t>(*in) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

#endif

TESSERA_INLINE Vector larger(Vector a, Vector b) {
#ifdef __AVX512F__
  return (Vector)_mm512_max_ps((__m512)a, (__m512)b);
#else
  return (Vector)_mm256_max_ps((__m256)a, (__m256)b);
#endif
}

TESSERA_INLINE Vector smaller(Vector a, Vector b) {
#ifdef __AVX512F__
  return (Vector)_mm512_min_ps((__m512)a, (__m512)b);
#else
  return (Vector)_mm256_min_ps((__m256)a, (__m256)b);
#endif
}

TESSERA_INLINE float sum(Vector x) {
#ifdef __AVX512F__
  return _mm512_reduce_add_ps((__m512)x);
#else
  float total = 0.0f;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    total += x[lane];
  }
  return total;
#endif
}

TESSERA_INLINE float largest(Vector x) {
#ifdef __AVX512F__
  return _mm512_reduce_max_ps((__m512)x);
#else
  float most = x[0];
  for (int64_t lane = 1; lane < kLanes; ++lane) {
    most = x[lane] > most ? x[lane] : most;
  }
  return most;
#endif
}

// Returns the value in lanes whose bit is set, and zero in all other lanes.
TESSERA_INLINE Vector where(uint16_t bits, Vector value) {
#ifdef __AVX512F__
  return (Vector)_mm512_maskz_mov_ps(bits, (__m512)value);
#else
  const Integers lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  const Integers chosen = ((Integers{} + static_cast<int32_t>(bits)) >> lanes) & 1;
  return (Vector)((Integers)value & -chosen);
#endif
}

// Computes e^x for x ≤ 20 to within 3e-7. Below -87 the result is effectively zero. The result is
// the product of 2^k, made from exponent bits, and 2^f, a polynomial on -1/2…1/2 (coefficients from
// Cephes' exp2f).
TESSERA_INLINE Vector exponential(Vector x) {
  // In this order of arguments, a NaN remains a NaN.
  const Vector scaled = larger(splat(-87.0f), x) * 1.44269504f;
  // Adding and subtracting 3·2^22 rounds to the nearest integer.
  const Vector whole = (scaled + 12582912.0f) - 12582912.0f;
  const Vector f = scaled - whole;
  Vector power = splat(1.535336188319500e-4f);
  power = power * f + 1.339887440266574e-3f;
  power = power * f + 9.618437357674640e-3f;
  power = power * f + 5.550332471162809e-2f;
  power = power * f + 2.402264791363012e-1f;
  power = power * f + 6.931472028550421e-1f;
  power = power * f + 1.0f;
  const Integers exponent = __builtin_convertvector(whole, Integers) + 127;
  return power * (Vector)(exponent << 23);
}

// Mish and its derivative, which share one exponential.
struct Mish {
  Vector value;
  Vector slope;
};

TESSERA_INLINE Mish mish(Vector x) {
  // x·tanh(ln(1 + e^x)) = x·t / (t + 2), where t = e^x·(e^x + 2). Above 20 this is exactly x in
  // f32.
  const Vector e = exponential(smaller(x, splat(20.0f)));
  const Vector t = e * (e + 2.0f);
  const Vector inverse = 1.0f / (t + 2.0f);
  const Vector bend = 4.0f * e * (e + 1.0f) * inverse * inverse;
  return {x * (t * inverse), t * inverse + x * bend};
}

// Memory that is allocated in pieces, each aligned to 64 bytes.
class Arena {
 public:
  // Creates an arena that only counts allocations. Its pointers must not be dereferenced.
  Arena() : Arena(nullptr, SIZE_MAX) {}

  Arena(void* memory, size_t size)
      : memory_(reinterpret_cast<uintptr_t>(memory)), size_(size) {}

  template <typename T>
  T* take(int64_t count) {
    const size_t wanted = (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    if (wanted > size_ - taken_) {
      grow(wanted);
    }
    const uintptr_t place = memory_ + taken_;
    taken_ += wanted;
    return reinterpret_cast<T*>(place);
  }

  size_t taken() const { return taken_; }

 protected:
  // Allocates memory for a piece that does not fit.
  virtual void grow(size_t) { throw std::bad_alloc(); }

  uintptr_t memory_;
  size_t size_, taken_ = 0;
};

// Memory that lasts as long as the thread and grows on demand, so that sizes need not be computed
// in advance.
class Scratch : public Arena {
 public:
  Scratch() : Arena(nullptr, 0) {}
  ~Scratch() { release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Starts over, and discards all pieces.
  void begin() {
    taken_ = 0;
#ifdef __SANITIZE_ADDRESS__
    // Pieces are allocated separately, so that writes beyond a piece are detected.
    release();
#else
    if (latest_ != nullptr && latest_->before != nullptr) {
      // All pieces will fit in a single block the next time.
      const size_t all = all_;
      release();
      grow(all);
    }
#endif
  }

 private:
  // The header of each memory block.
  struct alignas(64) Block {
    Block* before;
  };

  void grow(size_t wanted) override {
    void* memory = std::aligned_alloc(64, sizeof(Block) + wanted);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    latest_ = new (memory) Block{latest_};
    memory_ = reinterpret_cast<uintptr_t>(latest_ + 1);
    size_ = wanted;
    taken_ = 0;
    all_ += wanted;
  }

  void release() {
    while (latest_ != nullptr) {
      std::free(std::exchange(latest_, latest_->before));
    }
    size_ = 0;
    all_ = 0;
  }

  Block* latest_ = nullptr;
  // Total size of all blocks in bytes.
  size_t all_ = 0;
};

// Returns the size in bytes of a block's packed weights.
template <typename Weights, typename Block>
TESSERA_INLINE size_t packed_bytes(const Block& block) {
  Arena counted;
  Weights(block, counted);
  return counted.taken();
}

// Returns a block's packed weights, which are packed here unless they were packed in advance.
template <typename Weights, typename Block>
TESSERA_INLINE Weights weights_of(const Block& block, Scratch& scratch) {
  if (block.packed != nullptr) {
    Arena there(const_cast<void*>(block.packed), packed_bytes<Weights>(block));
    return Weights(block, there);
  }
  Weights weights(block, scratch);
  weights.pack(block);
  return weights;
}

// Packs the weights of a block into `out`, unless `out` is null. Returns the packed size in bytes.
template <typename Weights, typename Block>
int64_t pack(const Block& block, void* out) {
  const size_t bytes = packed_bytes<Weights>(block);
  if (out != nullptr) {
    Arena there(out, bytes);
    Weights(block, there).pack(block);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace tessera::TESSERA_ISA
