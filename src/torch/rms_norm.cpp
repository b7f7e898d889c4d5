// The root-mean-square norm and its gradient on the CPU, each in one pass over memory. libtorch
// composes each of them from a dozen operations. On processors with fast matrix units, these take a
// seventh of the time of an evaluation, and a larger fraction of the time of a training step.
//
//     y = x · s · w with s = (mean(x²) + ε)^-½
//
// where the mean is taken over a token's features. Backward, where g = dy · w: dx = s · g − x · s³
// · mean(g · x), and dw = Σ dy · x · s over tokens.
#include "rms_norm.h"
#include "kernels.h"
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

using tessera::bits;
using tessera::load;
using tessera::mutable_bits;
using tessera::plain;
using tessera::store;

namespace {

// Number of parallel sums, which are explicit because the compiler may not split a single sum.
constexpr int64_t kLanes = 32;

// Number of rows for which one partial sum of the weight gradient is computed. The partial sums are
// added in order, so that the result does not depend on the number of threads.
constexpr int64_t kChunk = 512;

template <typename Term>
TESSERA_INLINE float sum_of(int64_t width, Term term) {
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += term(i + lane);
    }
  }
  float sum = 0.0f;
  for (; i < width; ++i) {
    sum += term(i);
  }
  for (float part : sums) {
    sum += part;
  }
  return sum;
}

// Computes y = x · s · w, where s = (mean(x²) + ε)^-½. Stores s if a place for it is given.
template <typename T>
TESSERA_INLINE void forward_body(const T* in, const T* weight, T* out, float* scales,
                                 int64_t rows, int64_t width, float epsilon) {
  for (int64_t row = 0; row < rows; ++row, in += width, out += width) {
    const float sum = sum_of(width, [in](int64_t i) {
      const float x = load(in[i]);
      return x * x;
    });
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + epsilon);
    for (int64_t i = 0; i < width; ++i) {
      store(load(in[i]) * scale * load(weight[i]), out + i);
    }
    if (scales != nullptr) {
      scales[row] = scale;
    }
  }
}

// Where g = gradient · w, computes dx = s · g − x · s³ · mean(g · x) and adds gradient · x · s to
// dw.
template <typename T>
TESSERA_INLINE void backward_body(const T* gradient, const T* in, const T* weight,
                                  const float* scales, T* out, float* weights_out,
                                  int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, gradient += width, in += width, out += width) {
    const float scale = scales[row];
    const float dot = sum_of(width, [=](int64_t i) {
      return load(gradient[i]) * load(weight[i]) * load(in[i]);
    });
    const float pull = dot * scale * scale * scale / static_cast<float>(width);
    for (int64_t i = 0; i < width; ++i) {
      const float x = load(in[i]);
      const float g = load(gradient[i]);
      weights_out[i] += g * x * scale;
      store(g * load(weight[i]) * scale - x * pull, out + i);
    }
  }
}

TESSERA_CLONES void forward_f32(const float* in, const float* weight, float* out,
                                float* scales, int64_t rows, int64_t width,
                                float epsilon) {
  forward_body(in, weight, out, scales, rows, width, epsilon);
}

TESSERA_CLONES void forward_bf16(const uint16_t* in, const uint16_t* weight,
                                 uint16_t* out, float* scales, int64_t rows,
                                 int64_t width, float epsilon) {
  forward_body(in, weight, out, scales, rows, width, epsilon);
}

TESSERA_CLONES void backward_f32(const float* gradient, const float* in,
                                 const float* weight, const float* scales, float* out,
                                 float* weights_out, int64_t rows, int64_t width) {
  backward_body(gradient, in, weight, scales, out, weights_out, rows, width);
}

TESSERA_CLONES void backward_bf16(const uint16_t* gradient, const uint16_t* in,
                                  const uint16_t* weight, const float* scales,
                                  uint16_t* out, float* weights_out, int64_t rows,
                                  int64_t width) {
  backward_body(gradient, in, weight, scales, out, weights_out, rows, width);
}

// Returns whether a single pass supports these inputs. Under the tracer, libtorch's operator is
// called, because exported files must not depend on ours.
bool in_one_pass(const at::Tensor& in, at::IntArrayRef shape,
                 const std::optional<at::Tensor>& weight,
                 const std::optional<double>& epsilon) {
  return !torch::jit::tracer::isTracing() && plain(in) && shape.size() == 1 &&
         weight.has_value() && epsilon.has_value() && plain(*weight) && in.numel() > 0 &&
         weight->scalar_type() == in.scalar_type() && in.dim() > 0 &&
         in.size(-1) == shape[0] && weight->numel() == shape[0];
}

// Normalises tensors that `in_one_pass` supports.
at::Tensor forward(const at::Tensor& in, const at::Tensor& weight, float epsilon,
                   float* scales) {
  at::Tensor out = at::empty_like(in);
  const int64_t width = in.size(-1);
  at::parallel_for(0, in.numel() / width, kChunk, [&](int64_t begin, int64_t end) {
    const int64_t start = begin * width;
    float* kept = scales == nullptr ? nullptr : scales + begin;
    if (in.scalar_type() == c10::kFloat) {
      forward_f32(in.const_data_ptr<float>() + start, weight.const_data_ptr<float>(),
                  out.mutable_data_ptr<float>() + start, kept, end - begin, width, epsilon);
    } else {
      forward_bf16(bits(in) + start, bits(weight), mutable_bits(out) + start, kept,
                   end - begin, width, epsilon);
    }
  });
  return out;
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& in, const at::Tensor& weight,
                            double epsilon) {
    const at::AutoDispatchBelowAutograd below;
    const int64_t rows = in.numel() / in.size(-1);
    at::Tensor scales = at::empty({rows}, in.options().dtype(c10::kFloat));
    at::Tensor out = ::forward(in, weight, static_cast<float>(epsilon),
                               scales.mutable_data_ptr<float>());
    context->save_for_backward({in, weight, scales});
    return out;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    RECORD_FUNCTION("tessera::rms_norm_backward", {});
    const auto saved = context->get_saved_variables();
    const at::Tensor &in = saved[0], &weight = saved[1], &scales = saved[2];
    const at::Tensor gradient = gradients[0].to(in.scalar_type()).contiguous();
    at::Tensor out = at::empty_like(in);
    const int64_t width = in.size(-1);
    const int64_t rows = in.numel() / width;
    const int64_t chunks = (rows + kChunk - 1) / kChunk;
    at::Tensor sums =
        at::zeros({chunks, width}, in.options().dtype(c10::kFloat));
    at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t chunk = first; chunk < last; ++chunk) {
        const int64_t begin = chunk * kChunk;
        const int64_t count = std::min(kChunk, rows - begin);
        const int64_t start = begin * width;
        const float* kept = scales.const_data_ptr<float>() + begin;
        float* sum = sums.mutable_data_ptr<float>() + chunk * width;
        if (in.scalar_type() == c10::kFloat) {
          backward_f32(gradient.const_data_ptr<float>() + start,
                       in.const_data_ptr<float>() + start, weight.const_data_ptr<float>(),
                       kept, out.mutable_data_ptr<float>() + start, sum, count, width);
        } else {
          backward_bf16(bits(gradient) + start, bits(in) + start, bits(weight), kept,
                        mutable_bits(out) + start, sum, count, width);
        }
      }
    });
    return {out, sums.sum(0).to(weight.scalar_type()), at::Tensor()};
  }
};

}  // namespace

at::Tensor tessera::rms_norm(const at::Tensor& in, at::IntArrayRef shape,
                             const std::optional<at::Tensor>& weight,
                             std::optional<double> epsilon) {
  if (!in_one_pass(in, shape, weight, epsilon)) {
    return at::rms_norm(in, shape, weight, epsilon);
  }
  RECORD_FUNCTION("tessera::rms_norm", {});
  if (at::GradMode::is_enabled() && (in.requires_grad() || weight->requires_grad())) {
    return RmsNorm::apply(in, *weight, *epsilon);
  }
  return forward(in, *weight, static_cast<float>(*epsilon), nullptr);
}

// Computes the norm over the last dimension, whose size must be the length of the weight.
extern "C" char* tessera_rms_norm(const at::Tensor* in, const at::Tensor* weight,
                                  double epsilon, at::Tensor** out) {
  return tessera::guarded([&] {
    *out = new at::Tensor(tessera::rms_norm(*in, weight->sizes(), *weight, epsilon));
  });
}
