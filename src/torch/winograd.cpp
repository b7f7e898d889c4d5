// 3 × 3 convolutions of chessboards on the CPU in f32, with Winograd's minimal filtering F(4 × 4, 3
// × 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). This method
// needs only a quarter of the multiplications. A board consists of exactly four tiles of 4 × 4
// squares.
//
// For a tile with its surroundings, d [6, 6], and a filter g [3, 3], the method computes
//
//     Aᵀ · ((G · g · Gᵀ) ∘ (Bᵀ · d · B)) · A
//
// where filters are transformed only once. At each of the 36 points, one matrix product covers all
// channels.
#include "winograd.h"
#include "kernels.h"
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace {

constexpr int64_t kChannels = tessera::kWinogradChannels;
constexpr int64_t kTiles = 4;    // a board
constexpr int64_t kPoints = 36;  // a tile, transformed

// Number of channels that are processed in parallel.
#if defined(__GNUC__)
typedef float Lanes __attribute__((vector_size(kChannels * sizeof(float))));
#else
struct Lanes {
  float at[kChannels];
};
template <typename Operation>
TESSERA_INLINE Lanes each(const Lanes& a, const Lanes& b, Operation operation) {
  Lanes out;
  for (int i = 0; i < kChannels; ++i) {
    out.at[i] = operation(a.at[i], b.at[i]);
  }
  return out;
}
TESSERA_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  return each(a, b, [](float x, float y) { return x + y; });
}
TESSERA_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  return each(a, b, [](float x, float y) { return x - y; });
}
TESSERA_INLINE Lanes operator*(float factor, const Lanes& a) {
  return each(a, a, [factor](float x, float) { return factor * x; });
}
#endif

TESSERA_INLINE Lanes read(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

TESSERA_INLINE void write(const Lanes& lanes, float* to) {
  std::memcpy(to, &lanes, sizeof lanes);
}

// Multiplies six values that are `step` apart by the paper's matrix Bᵀ.
TESSERA_INLINE void transform_input(Lanes* d, int step) {
  const Lanes d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step],
              d4 = d[4 * step], d5 = d[5 * step];
  const Lanes even = d4 - 4.0f * d2, odd = d3 - 4.0f * d1;
  const Lanes near = d4 - d2, far = 2.0f * (d3 - d1);
  d[0] = 4.0f * d0 - 5.0f * d2 + d4;
  d[step] = even + odd;
  d[2 * step] = even - odd;
  d[3 * step] = near + far;
  d[4 * step] = near - far;
  d[5 * step] = 4.0f * d1 - 5.0f * d3 + d5;
}

// Multiplies six values that are `step` apart by the paper's matrix Aᵀ, which yields four values.
TESSERA_INLINE void transform_output(Lanes* m, int step) {
  const Lanes m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step],
              m4 = m[4 * step], m5 = m[5 * step];
  const Lanes near = m1 + m2, far = m3 + m4;
  const Lanes near_odd = m1 - m2, far_odd = m3 - m4;
  m[0] = m0 + near + far;
  m[step] = near_odd + 2.0f * far_odd;
  m[2 * step] = near + 4.0f * far;
  m[3 * step] = near_odd + 8.0f * far_odd + m5;
}

// Transforms the tiles of boards [64, channels] to points [36, tiles, channels].
TESSERA_CLONES void take_apart(const float* boards, float* points, int64_t first,
                               int64_t last, int64_t tiles, int64_t channels) {
  for (int64_t tile = first; tile < last; ++tile) {
    const float* board = boards + tile / kTiles * 64 * channels;
    const int64_t top = tile % kTiles / 2 * 4 - 1, left = tile % 2 * 4 - 1;
    for (int64_t channel = 0; channel < channels; channel += kChannels) {
      Lanes d[kPoints];
      for (int64_t i = 0; i < kPoints; ++i) {
        const int64_t rank = top + i / 6, file = left + i % 6;
        if (rank < 0 || rank > 7 || file < 0 || file > 7) {
          d[i] = Lanes{};
        } else {
          d[i] = read(board + (rank * 8 + file) * channels + channel);
        }
      }
      for (int i = 0; i < 6; ++i) {
        transform_input(d + i, 6);
      }
      for (int i = 0; i < 6; ++i) {
        transform_input(d + 6 * i, 1);
      }
      float* out = points + tile * channels + channel;
      for (int64_t i = 0; i < kPoints; ++i) {
        write(d[i], out + i * tiles * channels);
      }
    }
  }
}

// Transforms points back to boards and adds the biases.
TESSERA_CLONES void put_together(const float* points, const float* bias,
                                 float* boards, int64_t first, int64_t last,
                                 int64_t tiles, int64_t channels) {
  for (int64_t tile = first; tile < last; ++tile) {
    float* board = boards + tile / kTiles * 64 * channels;
    const int64_t top = tile % kTiles / 2 * 4, left = tile % 2 * 4;
    for (int64_t channel = 0; channel < channels; channel += kChannels) {
      const float* in = points + tile * channels + channel;
      Lanes m[kPoints];
      for (int64_t i = 0; i < kPoints; ++i) {
        m[i] = read(in + i * tiles * channels);
      }
      for (int i = 0; i < 6; ++i) {
        transform_output(m + i, 6);
      }
      const Lanes shift = read(bias + channel);
      for (int i = 0; i < 4; ++i) {
        transform_output(m + 6 * i, 1);
        for (int j = 0; j < 4; ++j) {
          write(m[6 * i + j] + shift,
                board + ((top + i) * 8 + left + j) * channels + channel);
        }
      }
    }
  }
}

// Minimum number of tiles for which waking another thread is worthwhile.
constexpr int64_t kGrain = 64;

}  // namespace

at::Tensor tessera::winograd_kernel(const at::Tensor& weight) {
  // The paper's matrix G.
  const std::array<double, 18> numbers = {
      1.0 / 4,  0,         0,         //
      -1.0 / 6, -1.0 / 6,  -1.0 / 6,  //
      -1.0 / 6, 1.0 / 6,   -1.0 / 6,  //
      1.0 / 24, 1.0 / 12,  1.0 / 6,   //
      1.0 / 24, -1.0 / 12, 1.0 / 6,   //
      0,        0,         1};
  const at::Tensor g = at::tensor(numbers, c10::kDouble).view({6, 3});
  const at::Tensor kernel = g.matmul(weight.to(c10::kDouble)).matmul(g.t());
  return kernel.permute({2, 3, 1, 0})
      .reshape({kPoints, weight.size(1), weight.size(0)})
      .to(c10::kFloat)
      .contiguous();
}

bool tessera::winograd_takes(const at::Tensor& weight, const at::Tensor& bias) {
  return weight.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3 &&
         weight.size(0) % kChannels == 0 && weight.size(1) % kChannels == 0 &&
         weight.scalar_type() == c10::kFloat && weight.is_cpu() && plain(bias) &&
         bias.scalar_type() == c10::kFloat && bias.dim() == 1 &&
         bias.size(0) == weight.size(0);
}

at::Tensor tessera::winograd(const at::Tensor& boards, const at::Tensor& weight,
                             const at::Tensor& bias, const at::Tensor& kernel) {
  const bool fits = boards.dim() == 4 && boards.size(1) == weight.size(1) &&
                    boards.size(2) == 8 && boards.size(3) == 8 &&
                    boards.scalar_type() == c10::kFloat &&
                    boards.is_cpu() &&
                    boards.is_contiguous(c10::MemoryFormat::ChannelsLast);
  if (!fits) {
    return at::conv2d(boards, weight, bias, 1, 1);
  }
  const int64_t count = boards.size(0), inputs = boards.size(1), outputs = weight.size(0);
  TORCH_CHECK(tessera::winograd_takes(weight, bias) && tessera::plain(kernel) &&
                  kernel.scalar_type() == c10::kFloat &&
                  kernel.sizes() == at::IntArrayRef({kPoints, inputs, outputs}),
              "kernels of another convolution");
  const int64_t tiles = count * kTiles;
  at::Tensor points = at::empty({kPoints, tiles, inputs}, boards.options());
  at::parallel_for(0, tiles, kGrain, [&](int64_t first, int64_t last) {
    take_apart(boards.const_data_ptr<float>(), points.mutable_data_ptr<float>(), first,
               last, tiles, inputs);
  });
  const at::Tensor products = points.bmm(kernel);
  at::Tensor out = at::empty({count, outputs, 8, 8}, boards.options(),
                             c10::MemoryFormat::ChannelsLast);
  at::parallel_for(0, tiles, kGrain, [&](int64_t first, int64_t last) {
    put_together(products.const_data_ptr<float>(), bias.const_data_ptr<float>(),
                 out.mutable_data_ptr<float>(), first, last, tiles, outputs);
  });
  return out;
}

extern "C" {

bool tessera_winograd_takes(const at::Tensor* weight, const at::Tensor* bias) {
  return tessera::winograd_takes(*weight, *bias);
}

char* tessera_winograd_kernel(const at::Tensor* weight, at::Tensor** out) {
  return tessera::guarded([&] { *out = new at::Tensor(tessera::winograd_kernel(*weight)); });
}

char* tessera_winograd(const at::Tensor* boards, const at::Tensor* weight,
                       const at::Tensor* bias, const at::Tensor* kernel, at::Tensor** out) {
  return tessera::guarded([&] {
    *out = new at::Tensor(tessera::winograd(*boards, *weight, *bias, *kernel));
  });
}
}
