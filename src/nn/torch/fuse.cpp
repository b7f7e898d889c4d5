// Operators of a Chessformer that libtorch computes on the CPU in several
// passes over memory, in one pass each. On processors whose matrix units make
// the products cheap the two took a third of the time of an evaluation.
#include "fuse.h"

#include <ATen/ops/mish.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rms_norm.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/library.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// One body, compiled for several instruction sets; the program's start chooses.
// GCC before 12 and Clang know these by single features only.
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

namespace {

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

// bf16, as its bits, is the upper half of an f32.
TESSERA_INLINE float load(float value) { return value; }
TESSERA_INLINE float load(uint16_t bits) {
  return from_bits(static_cast<uint32_t>(bits) << 16);
}

TESSERA_INLINE void store(float value, float* out) { *out = value; }
TESSERA_INLINE void store(float value, uint16_t* out) {
  const uint32_t bits = to_bits(value);
  // To nearest, ties to even; rounding a NaN up might make it a number.
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  *out = static_cast<uint16_t>(value == value ? rounded : 0x7fc0);
}

// e^x for x in -87…20, to 3e-7: 2^k by its exponent bits times 2^f by a
// polynomial on -1/2…1/2 (Cephes' coefficients for exp2f).
TESSERA_INLINE float exponential(float x) {
  const float scaled = x * 1.44269504f;
  // Adding and taking away 3·2^22 leaves the nearest integer.
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

template <typename T>
TESSERA_INLINE void mish_body(const T* in, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = load(in[i]);
    // x·tanh(ln(1 + e^x)) = x·t / (t + 2) with t = e^x·(e^x + 2). Beyond 20
    // that is x to the last bit, beneath -87 it is 0 to any that counts. A NaN
    // passes by the first factor.
    const float low = x < 20.0f ? x : 20.0f;
    const float e = exponential(low > -87.0f ? low : -87.0f);
    const float t = e * (e + 2.0f);
    store(x * (t / (t + 2.0f)), out + i);
  }
}

template <typename T>
TESSERA_INLINE void rms_norm_body(const T* in, const T* weight, T* out,
                                  int64_t rows, int64_t width, float epsilon) {
  constexpr int64_t kLanes = 32;
  for (int64_t row = 0; row < rows; ++row, in += width, out += width) {
    // Sums side by side, which the compiler may not make of one by itself.
    float sums[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const float x = load(in[i + lane]);
        sums[lane] += x * x;
      }
    }
    float sum = 0.0f;
    for (; i < width; ++i) {
      const float x = load(in[i]);
      sum += x * x;
    }
    for (float part : sums) {
      sum += part;
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + epsilon);
    for (i = 0; i < width; ++i) {
      store(load(in[i]) * scale * load(weight[i]), out + i);
    }
  }
}

TESSERA_CLONES void mish_f32(const float* in, float* out, int64_t count) {
  mish_body(in, out, count);
}

TESSERA_CLONES void mish_bf16(const uint16_t* in, uint16_t* out, int64_t count) {
  mish_body(in, out, count);
}

TESSERA_CLONES void rms_norm_f32(const float* in, const float* weight, float* out,
                                 int64_t rows, int64_t width, float epsilon) {
  rms_norm_body(in, weight, out, rows, width, epsilon);
}

TESSERA_CLONES void rms_norm_bf16(const uint16_t* in, const uint16_t* weight,
                                  uint16_t* out, int64_t rows, int64_t width,
                                  float epsilon) {
  rms_norm_body(in, weight, out, rows, width, epsilon);
}

bool plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() &&
         (tensor.scalar_type() == c10::kFloat ||
          tensor.scalar_type() == c10::kBFloat16);
}

const uint16_t* bits(const at::Tensor& tensor) {
  return static_cast<const uint16_t*>(tensor.const_data_ptr());
}

uint16_t* mutable_bits(at::Tensor& tensor) {
  return static_cast<uint16_t*>(tensor.mutable_data_ptr());
}

at::Tensor mish(const at::Tensor& in) {
  if (!plain(in)) {
    return at::mish(in);
  }
  at::Tensor out = at::empty_like(in);
  if (in.scalar_type() == c10::kFloat) {
    mish_f32(in.const_data_ptr<float>(), out.mutable_data_ptr<float>(), in.numel());
  } else {
    mish_bf16(bits(in), mutable_bits(out), in.numel());
  }
  return out;
}

at::Tensor rms_norm(const at::Tensor& in, at::IntArrayRef shape,
                    const std::optional<at::Tensor>& weight,
                    std::optional<double> epsilon) {
  const bool one_pass = plain(in) && shape.size() == 1 && weight.has_value() &&
                        epsilon.has_value() && plain(*weight) && in.numel() > 0 &&
                        weight->scalar_type() == in.scalar_type() &&
                        in.dim() > 0 && in.size(-1) == shape[0] &&
                        weight->numel() == shape[0];
  if (!one_pass) {
    return at::rms_norm(in, shape, weight, epsilon);
  }
  at::Tensor out = at::empty_like(in);
  const int64_t rows = in.numel() / shape[0];
  const float small = static_cast<float>(*epsilon);
  if (in.scalar_type() == c10::kFloat) {
    rms_norm_f32(in.const_data_ptr<float>(), weight->const_data_ptr<float>(),
                 out.mutable_data_ptr<float>(), rows, shape[0], small);
  } else {
    rms_norm_bf16(bits(in), bits(*weight), mutable_bits(out), rows, shape[0], small);
  }
  return out;
}

TORCH_LIBRARY(tessera, library) {
  library.def("mish(Tensor x) -> Tensor", &mish);
  library.def(
      "rms_norm(Tensor x, int[] shape, Tensor? weight, float? eps) -> Tensor",
      &rms_norm);
}

}  // namespace

void tessera::fuse(const std::shared_ptr<torch::jit::Graph>& graph) {
  torch::jit::SubgraphRewriter rewriter;
  for (const auto* arguments : {"mish(%x)", "rms_norm(%x, %shape, %weight, %eps)"}) {
    const std::string call(arguments);
    const std::string names = call.substr(call.find('('));
    const auto graph_of = [&](const char* space) {
      return "graph" + names + ":\n  %y = " + space + "::" + call + "\n  return (%y)";
    };
    rewriter.RegisterRewritePattern(graph_of("aten"), graph_of("tessera"));
  }
  auto mutable_graph = graph;
  rewriter.runOnGraph(mutable_graph);
}
