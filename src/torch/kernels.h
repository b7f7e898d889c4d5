// Shared parts of our CPU kernels: macros that compile a function for several instruction sets,
// conversions between f32 and bf16, and an exponential that compilers can vectorise.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>

// Compiles a function for several instruction sets, from which the program selects one when it
// starts. GCC before version 12 and Clang do not know the names of the sets, so the individual
// features are listed.
#if !defined(__x86_64__) || !defined(__gnu_linux__)
#define TESSERA_CLONES
#elif !defined(__clang__) && __GNUC__ >= 12
#define TESSERA_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TESSERA_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#if defined(_MSC_VER)
#define TESSERA_INLINE static __forceinline
#else
#define TESSERA_INLINE static inline __attribute__((always_inline))
#endif

namespace tessera {

TESSERA_INLINE float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

TESSERA_INLINE uint32_t to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The bits of a bf16 are the upper half of the bits of an f32.
TESSERA_INLINE float load(float value) { return value; }
TESSERA_INLINE float load(uint16_t bits) {
  return from_bits(static_cast<uint32_t>(bits) << 16);
}

TESSERA_INLINE void store(float value, float* out) { *out = value; }
TESSERA_INLINE void store(float value, uint16_t* out) {
  const uint32_t bits = to_bits(value);
  // Rounds to nearest, ties to even. NaN is handled separately, because rounding its bits up could
  // produce a number.
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  *out = static_cast<uint16_t>(value == value ? rounded : 0x7fc0);
}

// Computes e^x for x in -87…20 to within 3e-7. The result is the product of 2^k, made from exponent
// bits, and 2^f, a polynomial on -1/2…1/2 (coefficients from Cephes' exp2f).
TESSERA_INLINE float exponential(float x) {
  const float scaled = x * 1.44269504f;
  // Adding and subtracting 3·2^22 rounds to the nearest integer.
  const float whole = (scaled + 12582912.0f) - 12582912.0f;
  const float f = scaled - whole;
  float power = 1.535336188319500e-4f;
  power = power * f + 1.339887440266574e-3f;
  power = power * f + 9.618437357674640e-3f;
  power = power * f + 5.550332471162809e-2f;
  power = power * f + 2.402264791363012e-1f;
  power = power * f + 6.931472028550421e-1f;
  power = power * f + 1.0f;
  const int32_t exponent = static_cast<int32_t>(whole) + 127;
  return power * from_bits(static_cast<uint32_t>(exponent) << 23);
}

// Returns whether a kernel may access the tensor's memory directly.
inline bool plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() &&
         (tensor.scalar_type() == c10::kFloat ||
          tensor.scalar_type() == c10::kBFloat16);
}

inline const uint16_t* bits(const at::Tensor& tensor) {
  return static_cast<const uint16_t*>(tensor.const_data_ptr());
}

inline uint16_t* mutable_bits(at::Tensor& tensor) {
  return static_cast<uint16_t*>(tensor.mutable_data_ptr());
}

}  // namespace tessera
