// The residual and the norm at the end of a block. With z = x + gain · (f(x) + bias),
//
//     n = (z − mean) / √(variance + ε)
//     y = n ∘ weight + shift
//
// where the mean and the variance are taken over a token's features. A norm that is not centred is
// RMSNorm: the mean and the shift are absent.
//
// Backward, where w = dy ∘ weight: dz = (w − mean(w) − n · mean(w ∘ n)) / √(variance + ε). The term
// mean(w) is absent unless the norm is centred.
#pragma once

#include "blocks.h"
#include "format.h"

namespace tessera::TESSERA_ISA {

using fused::NormEnd;
using fused::NormSums;

// Computes z = x + gain · (sum + bias) for one token and writes its norm to y. `row` must have
// space for z. `normal` and `inverse` are null in inference.
template <typename T>
TESSERA_INLINE void norm_forward(const NormEnd& norm, int64_t width, const T* x,
                                 const float* sums, const T* bias, float* row, T* y,
                                 T* normal, float* inverse) {
  Vector total{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector z = load(x + i) + norm.gain * (load(sums + i) + load(bias + i));
    total += z;
    store(z, row + i);
  }
  const float mean = norm.centred ? sum(total) / static_cast<float>(width) : 0.0f;
  Vector squares{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector z = load(row + i) - mean;
    squares += z * z;
  }
  const float variance = sum(squares) / static_cast<float>(width);
  const float scale = 1.0f / std::sqrt(variance + norm.epsilon);
  const T* weight = static_cast<const T*>(norm.weight);
  const T* shift = static_cast<const T*>(norm.bias);
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector n = (load(row + i) - mean) * scale;
    if (normal != nullptr) {
      store(n, normal + i);
    }
    const Vector scaled = n * load(weight + i);
    store(norm.centred ? scaled + load(shift + i) : scaled, y + i);
  }
  if (inverse != nullptr) {
    *inverse = scale;
  }
}

// Where to store the values that backward needs. Null in inference.
template <typename T>
TESSERA_INLINE T* kept_at(void* kept, int64_t place) {
  return kept != nullptr ? static_cast<T*>(kept) + place : nullptr;
}

// Computes the gradient of z from the gradient of y. Adds the gradients of the norm's parameters to
// their sums, and the gradient of the inner bias, which includes the factor `gain`, to its sum.
template <typename T>
TESSERA_INLINE void norm_backward(const NormEnd& norm, int64_t width, const T* gradient,
                                  const T* normal, float inverse, T* out,
                                  const NormSums& sums, float* bias_sum) {
  const T* weight = static_cast<const T*>(norm.weight);
  Vector plain{}, along{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector g = load(gradient + i), n = load(normal + i);
    const Vector weighted = g * load(weight + i);
    plain += weighted;
    along += weighted * n;
    store(load(sums.weight + i) + g * n, sums.weight + i);
    if (norm.centred) {
      store(load(sums.bias + i) + g, sums.bias + i);
    }
  }
  const float share = 1.0f / static_cast<float>(width);
  const float mean = norm.centred ? sum(plain) * share : 0.0f;
  const float pull = sum(along) * share;
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vector weighted = load(gradient + i) * load(weight + i);
    const Vector z = inverse * (weighted - mean - load(normal + i) * pull);
    store(z, out + i);
    store(load(bias_sum + i) + norm.gain * z, bias_sum + i);
  }
}

}  // namespace tessera::TESSERA_ISA
