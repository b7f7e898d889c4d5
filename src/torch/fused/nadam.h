// A NAdam step in one pass over memory. With the gradient g,
//
//     mean ← β₁ · mean + (1 − β₁) · g
//     square ← β₂ · square + (1 − β₂) · g²
//     direction = (fresh · g + kept · mean) / (√(correction · square) + ε)
//
// where the caller computes `fresh`, `kept` and `correction` from β₁, β₂ and the step count.
#pragma once

#include "blocks.h"
#include "simd.h"

namespace tessera::TESSERA_ISA {

using fused::Nadam;

TESSERA_INLINE Vector root(Vector x) {
#ifdef __AVX512F__
  return (Vector)_mm512_sqrt_ps((__m512)x);
#else
  return (Vector)_mm256_sqrt_ps((__m256)x);
#endif
}

static void nadam_step(const Nadam& step, int64_t place) {
  const Vector g = load(step.gradient + place);
  Vector mean = load(step.mean + place), square = load(step.square + place);
  mean += (g - mean) * step.mean_share;
  square = square * step.beta2 + g * g * step.square_share;
  store(mean, step.mean + place);
  store(square, step.square + place);
  const Vector scale = root(square * step.correction) + step.epsilon;
  store((g * step.fresh + mean * step.kept) / scale, step.direction + place);
}

static void nadam(const Nadam& step) {
  int64_t place = 0;
  for (; place + kLanes <= step.count; place += kLanes) {
    nadam_step(step, place);
  }
  const int64_t rest = step.count - place;
  if (rest == 0) {
    return;
  }
  float padded[4][kLanes] = {};
  float* places[4] = {const_cast<float*>(step.gradient), step.mean, step.square,
                      step.direction};
  const size_t bytes = static_cast<size_t>(rest) * sizeof(float);
  for (int i = 0; i < 3; ++i) {
    std::memcpy(padded[i], places[i] + place, bytes);
  }
  Nadam last_step = step;
  last_step.gradient = padded[0];
  last_step.mean = padded[1];
  last_step.square = padded[2];
  last_step.direction = padded[3];
  nadam_step(last_step, 0);
  for (int i = 1; i < 4; ++i) {
    std::memcpy(places[i] + place, padded[i], bytes);
  }
}

}  // namespace tessera::TESSERA_ISA
