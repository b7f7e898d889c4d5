// Mish and its derivative on the CPU. For each element, libtorch's kernels compute a hyperbolic
// tangent, a logarithm and an exponential, which takes a sixth of the training time on processors
// with fast matrix units. A single exponential is enough:
//
//     mish(x) = x · tanh(ln(1 + e^x)) = x · t / (t + 2) with t = e^x · (e^x + 2)
//     mish'(x) = t / (t + 2) + 4x · e^x · (e^x + 1) / (t + 2)²
#include "mish.h"
#include "kernels.h"
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/mish_backward.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

namespace tessera::mish_kernels {
namespace {

// Above 20, mish is exactly x in f32 and its derivative exactly 1. Below -87 both are effectively
// 0. The factor x propagates NaN.
TESSERA_INLINE float exponential_within_range(float x) {
  const float low = x < 20.0f ? x : 20.0f;
  return exponential(low > -87.0f ? low : -87.0f);
}

template <typename T>
TESSERA_INLINE void mish_body(const T* in, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = load(in[i]);
    const float e = exponential_within_range(x);
    const float t = e * (e + 2.0f);
    store(x * (t / (t + 2.0f)), out + i);
  }
}

template <typename T>
TESSERA_INLINE void mish_backward_body(const T* gradient, const T* in, T* out,
                                       int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = load(in[i]);
    const float e = exponential_within_range(x);
    const float t = e * (e + 2.0f);
    const float inverse = 1.0f / (t + 2.0f);
    const float bend = 4.0f * e * (e + 1.0f) * inverse * inverse;
    store(load(gradient[i]) * (t * inverse + x * bend), out + i);
  }
}

TESSERA_CLONES void mish_f32(const float* in, float* out, int64_t count) {
  mish_body(in, out, count);
}

TESSERA_CLONES void mish_bf16(const uint16_t* in, uint16_t* out, int64_t count) {
  mish_body(in, out, count);
}

TESSERA_CLONES void mish_backward_f32(const float* gradient, const float* in,
                                      float* out, int64_t count) {
  mish_backward_body(gradient, in, out, count);
}

TESSERA_CLONES void mish_backward_bf16(const uint16_t* gradient, const uint16_t* in,
                                       uint16_t* out, int64_t count) {
  mish_backward_body(gradient, in, out, count);
}

// Minimum number of elements for which waking another thread is worthwhile.
constexpr int64_t kGrain = 1 << 15;

at::Tensor forward(const at::Tensor& in) {
  at::Tensor out = at::empty_like(in);
  at::parallel_for(0, in.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (in.scalar_type() == c10::kFloat) {
      mish_f32(in.const_data_ptr<float>() + begin,
               out.mutable_data_ptr<float>() + begin, end - begin);
    } else {
      mish_bf16(bits(in) + begin, mutable_bits(out) + begin, end - begin);
    }
  });
  return out;
}

at::Tensor backward(const at::Tensor& gradient, const at::Tensor& in) {
  if (!plain(gradient) || in.scalar_type() != gradient.scalar_type()) {
    return at::mish_backward(gradient, in);
  }
  at::Tensor out = at::empty_like(in);
  at::parallel_for(0, in.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (in.scalar_type() == c10::kFloat) {
      mish_backward_f32(gradient.const_data_ptr<float>() + begin,
                        in.const_data_ptr<float>() + begin,
                        out.mutable_data_ptr<float>() + begin, end - begin);
    } else {
      mish_backward_bf16(bits(gradient) + begin, bits(in) + begin,
                         mutable_bits(out) + begin, end - begin);
    }
  });
  return out;
}

struct Mish : torch::autograd::Function<Mish> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& in) {
    const at::AutoDispatchBelowAutograd below;
    context->save_for_backward({in});
    return mish_kernels::forward(in);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    RECORD_FUNCTION("tessera::mish_backward", {});
    return {mish_kernels::backward(gradients[0], context->get_saved_variables()[0])};
  }
};

}  // namespace
}  // namespace tessera::mish_kernels

at::Tensor tessera::mish(const at::Tensor& in) {
  // Exported files must not depend on our operator.
  if (torch::jit::tracer::isTracing() || !plain(in)) {
    return at::mish(in);
  }
  RECORD_FUNCTION("tessera::mish", {});
  return at::GradMode::is_enabled() && in.requires_grad() ? mish_kernels::Mish::apply(in)
                                                          : mish_kernels::forward(in);
}

extern "C" char* tessera_mish(const at::Tensor* in, at::Tensor** out) {
  return tessera::guarded([&] { *out = new at::Tensor(tessera::mish(*in)); });
}
