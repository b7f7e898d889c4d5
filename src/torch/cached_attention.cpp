// Attention of one new token per game to the tokens in a cache of keys and values. In each game,
// attention starts at the column `first`, after the game's padding:
//   y = sum_s softmax_s(q · k_s / sqrt(width)) v_s,   s = first … S - 1.
// libtorch's attention would read the padding, because it treats all games as equally long.
#include "kernels.h"
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tessera::cached_attention {
namespace {

// Number of parallel sums, which are explicit because the compiler may not split a single sum.
constexpr int64_t kLanes = 16;
// Maximum width of a head.
constexpr int64_t kWidest = 256;
// Minimum number of heads per thread.
constexpr int64_t kHeads = 16;
// Minimum of a logit minus the largest logit, to which smaller differences are clamped: e^-87 is
// about the smallest normal f32.
constexpr float kLeast = -87.0f;

// Keys or values [B, heads, S, width], whose last stride must be 1.
template <typename T>
struct Cached {
  const T* data;
  int64_t strides[3];

  explicit Cached(const at::Tensor& tensor)
      : data(static_cast<const T*>(tensor.const_data_ptr())),
        strides{tensor.stride(0), tensor.stride(1), tensor.stride(2)} {}

  const T* head(int64_t game, int64_t head) const {
    return data + game * strides[0] + head * strides[1];
  }
};

struct Sizes {
  int64_t heads, columns, width;
};

template <typename T>
TESSERA_INLINE float product(const float* query, const T* key, int64_t width) {
  float sums[kLanes] = {};
  for (int64_t i = 0; i < width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += query[i + lane] * load(key[i + lane]);
    }
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      sums[lane] += sums[lane + half];
    }
  }
  return sums[0];
}

// Computes one head of one game. `logits` has room for all columns.
template <typename T>
TESSERA_INLINE void attend_body(const T* query, const T* keys, int64_t keys_stride,
                                const T* values, int64_t values_stride, int64_t first,
                                const Sizes& sizes, float* logits, T* out) {
  const int64_t width = sizes.width;
  float scaled[kWidest];
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  for (int64_t i = 0; i < width; ++i) {
    scaled[i] = load(query[i]) * scale;
  }
  float top = -INFINITY;
  for (int64_t column = first; column < sizes.columns; ++column) {
    logits[column] = product(scaled, keys + column * keys_stride, width);
    top = std::max(top, logits[column]);
  }
  for (int64_t column = first; column < sizes.columns; ++column) {
    logits[column] = exponential(std::max(logits[column] - top, kLeast));
  }
  float sum = 0.0f;
  float sums[kWidest] = {};
  for (int64_t column = first; column < sizes.columns; ++column) {
    const float weight = logits[column];
    const T* value = values + column * values_stride;
    sum += weight;
    for (int64_t i = 0; i < width; ++i) {
      sums[i] += weight * load(value[i]);
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    store(sums[i] / sum, out + i);
  }
}

#define TESSERA_ATTEND(name, type)                                                     \
  TESSERA_CLONES void name(const type* query, const type* keys, int64_t keys_stride,   \
                           const type* values, int64_t values_stride, int64_t first,   \
                           const Sizes& sizes, float* logits, type* out) {             \
    attend_body<type>(query, keys, keys_stride, values, values_stride, first, sizes,   \
                      logits, out);                                                    \
  }
TESSERA_ATTEND(attend_f32, float)
TESSERA_ATTEND(attend_bf16, uint16_t)
#undef TESSERA_ATTEND

template <typename T, typename Kernel>
void attend(Kernel kernel, const at::Tensor& query, const at::Tensor& keys,
            const at::Tensor& values, const int64_t* first, at::Tensor& out) {
  const Sizes sizes{keys.size(1), keys.size(2), keys.size(3)};
  const Cached<T> all_keys(keys), all_values(values);
  const T* queries = static_cast<const T*>(query.const_data_ptr());
  T* outs = static_cast<T*>(out.mutable_data_ptr());
  at::parallel_for(0, keys.size(0) * sizes.heads, kHeads, [&](int64_t begin, int64_t end) {
    std::vector<float> logits(sizes.columns);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t game = row / sizes.heads, head = row % sizes.heads;
      // A game always attends to its newest token, whatever its padding.
      const int64_t from =
          first == nullptr ? 0 : std::clamp<int64_t>(first[game], 0, sizes.columns - 1);
      kernel(queries + row * sizes.width, all_keys.head(game, head), all_keys.strides[2],
             all_values.head(game, head), all_values.strides[2], from, sizes,
             logits.data(), outs + row * sizes.width);
    }
  });
}

bool is_cache(const at::Tensor& tensor, const at::Tensor& query) {
  return tensor.dim() == 4 && tensor.is_cpu() && tensor.stride(3) == 1 &&
         tensor.scalar_type() == query.scalar_type() && tensor.size(0) == query.size(0) &&
         tensor.size(1) == query.size(1) && tensor.size(2) > 0 &&
         tensor.size(3) == query.size(3);
}

}  // namespace

// Returns whether the kernel supports these queries, [B, heads, 1, width].
extern "C" bool tessera_takes_cached_attention(const at::Tensor* query) {
  return query->dim() == 4 && query->size(2) == 1 && query->is_cpu() &&
         (query->scalar_type() == c10::kFloat || query->scalar_type() == c10::kBFloat16) &&
         query->size(3) % kLanes == 0 && query->size(3) <= kWidest;
}

// Computes the attention [B, heads, 1, width] of queries [B, heads, 1, width] to keys and values
// [B, heads, S, width]. Attention starts at column `first`, i64 [B], or covers all columns if
// `first` is absent.
extern "C" char* tessera_cached_attention(const at::Tensor* query, const at::Tensor* keys,
                                          const at::Tensor* values, const at::Tensor* first,
                                          at::Tensor** out) {
  return guarded([&] {
    TORCH_CHECK(tessera_takes_cached_attention(query) && is_cache(*keys, *query) &&
                    is_cache(*values, *query) && keys->size(2) == values->size(2),
                "a cache of other sizes than the queries'");
    TORCH_CHECK(first == nullptr ||
                    (first->is_cpu() && first->is_contiguous() && first->dim() == 1 &&
                     first->scalar_type() == c10::kLong && first->size(0) == query->size(0)),
                "columns of other games than the queries'");
    const at::Tensor queries = query->contiguous();
    at::Tensor learned = at::empty(queries.sizes(), queries.options());
    const int64_t* columns = first == nullptr ? nullptr : first->const_data_ptr<int64_t>();
    if (queries.scalar_type() == c10::kFloat) {
      attend<float>(attend_f32, queries, *keys, *values, columns, learned);
    } else {
      attend<uint16_t>(attend_bf16, queries, *keys, *values, columns, learned);
    }
    out[0] = new at::Tensor(learned);
  });
}

}  // namespace tessera::cached_attention
