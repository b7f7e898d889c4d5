// Attention of each square to the same square on all boards, computed from the joint projection to
// queries, keys and values, with its gradient. For a square on board t and all boards u:
//
//     y_t = sum_u a_tu v_u,   a_tu = softmax_u(q_t · k_u / sqrt(width))
//
// and backward, from the gradient g of y, with d_tu = g_t · v_u:
//
//     v'_u = sum_t a_tu g_t,   l_tu = a_tu (d_tu - sum_w a_tw d_tw) / sqrt(width)
//     q'_t = sum_u l_tu k_u,   k'_u = sum_t l_tu q_t
//
// There are few boards. libtorch would compute one small matrix product for each square and head,
// mostly overhead, and the copies that bring squares together would take as long again.
#include "kernels.h"
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera::time_attention {
namespace {

// Number of parallel sums, which are explicit because the compiler may not split a single sum.
constexpr int64_t kLanes = 16;
constexpr int64_t kMostBoards = 16;
constexpr int64_t kWidest = 128;
constexpr int64_t kSquares = 64;
// Minimum number of squares per thread.
constexpr int64_t kGrain = 32;
// Minimum of a logit minus the largest logit, to which smaller differences are clamped: e^-87 is
// about the smallest normal f32.
constexpr float kLeast = -87.0f;

struct Sizes {
  int64_t boards, heads, width;

  int64_t features() const { return heads * width; }
};

// The vectors of one head on all boards.
using Vectors = float[kMostBoards * kWidest];
// One value for each pair of boards.
using Pairs = float[kMostBoards * kMostBoards];

// The places of a square's tokens on all boards. Boards at odd plies are in the other side's view.
struct Places {
  int64_t of[kMostBoards];

  Places(int64_t number, int64_t boards) {
    const int64_t first = number / kSquares * boards, square = number % kSquares;
    for (int64_t t = 0; t < boards; ++t) {
      of[t] = (first + t) * kSquares + (t % 2 == 0 ? square : square ^ 56);
    }
  }
};

template <typename T>
TESSERA_INLINE void read(const T* tokens, const Places& places, int64_t stride,
                         const Sizes& sizes, float* out) {
  for (int64_t t = 0; t < sizes.boards; ++t) {
    const T* from = tokens + places.of[t] * stride;
    for (int64_t i = 0; i < sizes.width; ++i) {
      out[t * sizes.width + i] = load(from[i]);
    }
  }
}

template <typename T>
TESSERA_INLINE void write(const float* from, const Places& places, int64_t stride,
                          const Sizes& sizes, T* tokens) {
  for (int64_t t = 0; t < sizes.boards; ++t) {
    T* to = tokens + places.of[t] * stride;
    for (int64_t i = 0; i < sizes.width; ++i) {
      store(from[t * sizes.width + i], to + i);
    }
  }
}

// out_tu = one_t · other_u
TESSERA_INLINE void products(const float* one, const float* other, const Sizes& sizes,
                             float* out) {
  const int64_t width = sizes.width;
  for (int64_t t = 0; t < sizes.boards; ++t) {
    for (int64_t u = 0; u < sizes.boards; ++u) {
      float sums[kLanes] = {};
      for (int64_t i = 0; i < width; i += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          sums[lane] += one[t * width + i + lane] * other[u * width + i + lane];
        }
      }
      for (int64_t half = kLanes / 2; half > 0; half /= 2) {
        for (int64_t lane = 0; lane < half; ++lane) {
          sums[lane] += sums[lane + half];
        }
      }
      out[t * sizes.boards + u] = sums[0];
    }
  }
}

enum class Sum { kOverLast, kOverFirst };

// out_t = sum_u pairs_tu vectors_u, or out_u = sum_t pairs_tu vectors_t
template <Sum sum>
TESSERA_INLINE void weighted(const float* pairs, const float* vectors, const Sizes& sizes,
                             float* out) {
  const int64_t width = sizes.width, boards = sizes.boards;
  for (int64_t t = 0; t < boards; ++t) {
    float* to = out + t * width;
    std::fill(to, to + width, 0.0f);
    for (int64_t u = 0; u < boards; ++u) {
      const float weight = pairs[sum == Sum::kOverLast ? t * boards + u : u * boards + t];
      for (int64_t i = 0; i < width; ++i) {
        to[i] += weight * vectors[u * width + i];
      }
    }
  }
}

// Computes the attention weights from scaled queries.
TESSERA_INLINE void attention(const float* query, const float* key, const Sizes& sizes,
                              float* shares) {
  products(query, key, sizes, shares);
  for (int64_t t = 0; t < sizes.boards; ++t) {
    float* row = shares + t * sizes.boards;
    float top = row[0], sum = 0.0f;
    for (int64_t u = 1; u < sizes.boards; ++u) {
      top = std::max(top, row[u]);
    }
    for (int64_t u = 0; u < sizes.boards; ++u) {
      row[u] = exponential(std::max(row[u] - top, kLeast));
      sum += row[u];
    }
    for (int64_t u = 0; u < sizes.boards; ++u) {
      row[u] /= sum;
    }
  }
}

TESSERA_INLINE void scale(float factor, const Sizes& sizes, float* vectors) {
  for (int64_t i = 0; i < sizes.boards * sizes.width; ++i) {
    vectors[i] *= factor;
  }
}

template <typename T>
TESSERA_INLINE void forth_body(const T* joint, T* out, const Sizes& sizes, int64_t begin,
                               int64_t end) {
  const int64_t features = sizes.features();
  const float root = 1.0f / std::sqrt(static_cast<float>(sizes.width));
  Vectors query, key, value, learned;
  Pairs shares;
  for (int64_t number = begin; number < end; ++number) {
    const Places places(number, sizes.boards);
    for (int64_t head = 0; head < sizes.heads; ++head) {
      const T* from = joint + head * sizes.width;
      read(from, places, 3 * features, sizes, query);
      read(from + features, places, 3 * features, sizes, key);
      read(from + 2 * features, places, 3 * features, sizes, value);
      scale(root, sizes, query);
      attention(query, key, sizes, shares);
      weighted<Sum::kOverLast>(shares, value, sizes, learned);
      write(learned, places, features, sizes, out + head * sizes.width);
    }
  }
}

template <typename T>
TESSERA_INLINE void back_body(const T* joint, const T* gradient, T* out,
                              const Sizes& sizes, int64_t begin, int64_t end) {
  const int64_t features = sizes.features(), boards = sizes.boards;
  const float root = 1.0f / std::sqrt(static_cast<float>(sizes.width));
  Vectors query, key, value, given, of_query, of_key, of_value;
  Pairs shares, passed;
  for (int64_t number = begin; number < end; ++number) {
    const Places places(number, boards);
    for (int64_t head = 0; head < sizes.heads; ++head) {
      const T* from = joint + head * sizes.width;
      read(from, places, 3 * features, sizes, query);
      read(from + features, places, 3 * features, sizes, key);
      read(from + 2 * features, places, 3 * features, sizes, value);
      read(gradient + head * sizes.width, places, features, sizes, given);
      scale(root, sizes, query);
      attention(query, key, sizes, shares);
      products(given, value, sizes, passed);
      weighted<Sum::kOverFirst>(shares, given, sizes, of_value);
      for (int64_t t = 0; t < boards; ++t) {
        float mean = 0.0f;
        for (int64_t u = 0; u < boards; ++u) {
          mean += shares[t * boards + u] * passed[t * boards + u];
        }
        for (int64_t u = 0; u < boards; ++u) {
          passed[t * boards + u] = shares[t * boards + u] * (passed[t * boards + u] - mean);
        }
      }
      weighted<Sum::kOverLast>(passed, key, sizes, of_query);
      // The gradient of the queries must be scaled. That of the keys need not be, because the
      // queries were scaled.
      scale(root, sizes, of_query);
      weighted<Sum::kOverFirst>(passed, query, sizes, of_key);
      T* to = out + head * sizes.width;
      write(of_query, places, 3 * features, sizes, to);
      write(of_key, places, 3 * features, sizes, to + features);
      write(of_value, places, 3 * features, sizes, to + 2 * features);
    }
  }
}

#define TESSERA_TIME(suffix, type)                                                     \
  TESSERA_CLONES void forth_##suffix(const type* joint, type* out, const Sizes& sizes, \
                                     int64_t begin, int64_t end) {                     \
    forth_body<type>(joint, out, sizes, begin, end);                                   \
  }                                                                                    \
  TESSERA_CLONES void back_##suffix(const type* joint, const type* gradient, type* out,\
                                    const Sizes& sizes, int64_t begin, int64_t end) {  \
    back_body<type>(joint, gradient, out, sizes, begin, end);                          \
  }
TESSERA_TIME(f32, float)
TESSERA_TIME(bf16, uint16_t)
#undef TESSERA_TIME

template <typename T>
const T* data(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <typename T>
T* mutable_data(at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

Sizes sizes_of(const at::Tensor& joint, int64_t heads) {
  return {joint.size(1), heads, joint.size(3) / 3 / heads};
}

struct TimeAttention : torch::autograd::Function<TimeAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& joint, int64_t heads) {
    const at::AutoDispatchBelowAutograd below;
    const Sizes sizes = sizes_of(joint, heads);
    at::Tensor out = at::empty(
        {joint.size(0), sizes.boards, kSquares, sizes.features()}, joint.options());
    at::parallel_for(0, joint.size(0) * kSquares, kGrain, [&](int64_t begin, int64_t end) {
      if (joint.scalar_type() == c10::kFloat) {
        forth_f32(data<float>(joint), mutable_data<float>(out), sizes, begin, end);
      } else {
        forth_bf16(data<uint16_t>(joint), mutable_data<uint16_t>(out), sizes, begin, end);
      }
    });
    context->save_for_backward({joint});
    context->saved_data["heads"] = heads;
    return out;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const at::Tensor joint = context->get_saved_variables()[0];
    const Sizes sizes = sizes_of(joint, context->saved_data["heads"].toInt());
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor out = at::empty(joint.sizes(), joint.options());
    at::parallel_for(0, joint.size(0) * kSquares, kGrain, [&](int64_t begin, int64_t end) {
      if (joint.scalar_type() == c10::kFloat) {
        back_f32(data<float>(joint), data<float>(gradient), mutable_data<float>(out),
                 sizes, begin, end);
      } else {
        back_bf16(data<uint16_t>(joint), data<uint16_t>(gradient),
                  mutable_data<uint16_t>(out), sizes, begin, end);
      }
    });
    return {out, at::Tensor()};
  }
};

}  // namespace

// Returns whether there is a kernel for this joint projection, [B, T, 64, 3 · heads · width].
extern "C" bool tessera_takes_time_attention(const at::Tensor* joint, int64_t heads) {
  return tessera::plain(*joint) && joint->dim() == 4 && joint->size(1) > 0 &&
         joint->size(1) <= kMostBoards && joint->size(2) == kSquares && heads > 0 &&
         joint->size(3) % (3 * kLanes * heads) == 0 &&
         joint->size(3) / (3 * heads) <= kWidest;
}

// Computes the attention of each square to the same square on all boards, [B, T, 64, heads ·
// width]. Each board is in the view of the side to move.
extern "C" char* tessera_time_attention(const at::Tensor* joint, int64_t heads,
                                        at::Tensor** out) {
  return guarded([&] {
    TORCH_CHECK(tessera_takes_time_attention(joint, heads),
                "a projection that attention over time has no kernel for");
    out[0] = new at::Tensor(TimeAttention::apply(*joint, heads));
  });
}

}  // namespace tessera::time_attention
