// Splits a joint projection into queries, keys and values by head, and rotates queries and keys by
// angles that depend on their positions (RoPE, Su et al. 2021). Forward and backward take one pass
// over memory each. They replace thirty libtorch operations, most of which copy halves of heads.
//
// Where a and b are the two halves of a head's query or key, and θ are the angles for its position,
//
//     a' = a ∘ cos θ − b ∘ sin θ
//     b' = b ∘ cos θ + a ∘ sin θ
//
// Backward rotates gradients by −θ.
#include "kernels.h"
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <cstdint>

namespace tessera::rotary {
namespace {

// Minimum number of projection rows per thread.
constexpr int64_t kRows = 64;

enum class Direction { kForth, kBack };

// Queries, keys or values [B, heads, T, head width], whose last stride must be 1.
struct Heads {
  void* data;
  int64_t strides[3];

  explicit Heads(const at::Tensor& tensor)
      : data(const_cast<void*>(tensor.const_data_ptr())),
        strides{tensor.stride(0), tensor.stride(1), tensor.stride(2)} {}

  template <typename T>
  T* row(int64_t batch, int64_t head, int64_t token) const {
    return static_cast<T*>(data) + batch * strides[0] + head * strides[1] +
           token * strides[2];
  }
};

struct Sizes {
  int64_t batch, tokens, heads, half;
  // The stride of the angles from one game to the next, or 0 if all games share the same angles.
  int64_t angles_stride;
};

// Rotates (a, b) by an angle, forward or backward.
template <typename T, Direction direction>
TESSERA_INLINE void turn(const T* from, T* to, const T* cos, const T* sin, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float c = load(cos[i]);
    const float s = direction == Direction::kForth ? load(sin[i]) : -load(sin[i]);
    const float a = load(from[i]);
    const float b = load(from[half + i]);
    store(a * c - b * s, to + i);
    store(b * c + a * s, to + half + i);
  }
}

template <typename T, Direction direction>
TESSERA_INLINE void walk_body(T* joint, const std::array<Heads, 3>& parts, const T* cos,
                              const T* sin, const Sizes& sizes, int64_t begin,
                              int64_t end) {
  const int64_t width = 2 * sizes.half;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t batch = row / sizes.tokens;
    const int64_t token = row % sizes.tokens;
    const int64_t angle = batch * sizes.angles_stride + token * sizes.half;
    T* here = joint + row * 3 * sizes.heads * width;
    for (size_t part = 0; part < 3; ++part) {
      for (int64_t head = 0; head < sizes.heads; ++head, here += width) {
        T* there = parts[part].template row<T>(batch, head, token);
        const T* from = direction == Direction::kForth ? here : there;
        T* to = direction == Direction::kForth ? there : here;
        if (part < 2) {
          turn<T, direction>(from, to, cos + angle, sin + angle, sizes.half);
        } else {
          std::memcpy(to, from, sizeof(T) * width);
        }
      }
    }
  }
}

#define TESSERA_WALK(name, type, direction)                                            \
  TESSERA_CLONES void name(type* joint, const std::array<Heads, 3>& parts,             \
                           const type* cos, const type* sin, const Sizes& sizes,       \
                           int64_t begin, int64_t end) {                               \
    walk_body<type, direction>(joint, parts, cos, sin, sizes, begin, end);             \
  }
TESSERA_WALK(forth_f32, float, Direction::kForth)
TESSERA_WALK(forth_bf16, uint16_t, Direction::kForth)
TESSERA_WALK(back_f32, float, Direction::kBack)
TESSERA_WALK(back_bf16, uint16_t, Direction::kBack)
#undef TESSERA_WALK

bool has_kernels(const at::Tensor& joint, const at::Tensor& cos, const at::Tensor& sin) {
  return tessera::plain(joint) && tessera::plain(cos) && tessera::plain(sin) &&
         cos.scalar_type() == joint.scalar_type() && sin.scalar_type() == joint.scalar_type();
}

void walk(Direction direction, const at::Tensor& joint, const std::array<Heads, 3>& parts,
          const at::Tensor& cos, const at::Tensor& sin, const Sizes& sizes) {
  at::parallel_for(0, sizes.batch * sizes.tokens, kRows, [&](int64_t begin, int64_t end) {
    const auto call = [&](auto kernel, auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      kernel(static_cast<T*>(const_cast<void*>(joint.const_data_ptr())), parts,
             static_cast<const T*>(cos.const_data_ptr()),
             static_cast<const T*>(sin.const_data_ptr()), sizes, begin, end);
    };
    const bool is_forth = direction == Direction::kForth;
    if (joint.scalar_type() == c10::kFloat) {
      call(is_forth ? forth_f32 : back_f32, static_cast<float*>(nullptr));
    } else {
      call(is_forth ? forth_bf16 : back_bf16, static_cast<uint16_t*>(nullptr));
    }
  });
}

// Rotates `from` [.., head width] with libtorch's operations, and writes the result to `to`.
void turn(const at::Tensor& from, const at::Tensor& to, const at::Tensor& cos,
          const at::Tensor& sin, Direction direction) {
  const int64_t half = from.size(-1) / 2;
  const auto part = [half](const at::Tensor& tensor, int64_t number) {
    return tensor.narrow(-1, number * half, half);
  };
  const double sign = direction == Direction::kForth ? 1.0 : -1.0;
  at::Tensor first = part(to, 0), second = part(to, 1);
  at::mul_out(first, part(from, 0), cos);
  first.addcmul_(part(from, 1), sin, -sign);
  at::mul_out(second, part(from, 1), cos);
  second.addcmul_(part(from, 0), sin, sign);
}

Sizes sizes_of(const at::Tensor& joint, const at::Tensor& cos, int64_t heads) {
  const int64_t width = joint.size(2) / 3 / heads;
  return {joint.size(0), joint.size(1), heads, width / 2,
          cos.size(0) == 1 ? 0 : cos.size(2) * cos.size(3)};
}

struct RotatedHeads : torch::autograd::Function<RotatedHeads> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const at::Tensor& joint,
                                                const at::Tensor& cos,
                                                const at::Tensor& sin, int64_t heads) {
    const at::AutoDispatchBelowAutograd below;
    const Sizes sizes = sizes_of(joint, cos, heads);
    const at::Tensor all = at::empty(
        {3, sizes.batch, heads, sizes.tokens, 2 * sizes.half}, joint.options());
    const auto parts = all.unbind(0);
    if (has_kernels(joint, cos, sin)) {
      walk(Direction::kForth, joint, {Heads(parts[0]), Heads(parts[1]), Heads(parts[2])},
           cos, sin, sizes);
    } else {
      const at::Tensor from =
          joint.view({sizes.batch, sizes.tokens, 3, heads, 2 * sizes.half})
              .permute({2, 0, 3, 1, 4});
      rotary::turn(from.narrow(0, 0, 2), all.narrow(0, 0, 2), cos, sin, Direction::kForth);
      parts[2].copy_(from.select(0, 2));
    }
    context->save_for_backward({cos, sin});
    context->saved_data["heads"] = heads;
    return parts;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &cos = saved[0], &sin = saved[1];
    const int64_t heads = context->saved_data["heads"].toInt();
    for (at::Tensor& gradient : gradients) {
      if (gradient.stride(-1) != 1) {
        gradient = gradient.contiguous();
      }
    }
    const at::Tensor& like = gradients[0];
    const int64_t batch = like.size(0), tokens = like.size(2), width = like.size(3);
    const at::Tensor joint = at::empty({batch, tokens, 3 * heads * width}, like.options());
    if (has_kernels(joint, cos, sin)) {
      walk(Direction::kBack, joint,
           {Heads(gradients[0]), Heads(gradients[1]), Heads(gradients[2])}, cos, sin,
           sizes_of(joint, cos, heads));
    } else {
      const auto parts =
          joint.view({batch, tokens, 3, heads, width}).permute({2, 0, 3, 1, 4}).unbind(0);
      rotary::turn(gradients[0], parts[0], cos, sin, Direction::kBack);
      rotary::turn(gradients[1], parts[1], cos, sin, Direction::kBack);
      parts[2].copy_(gradients[2]);
    }
    return {joint, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

// Computes queries, keys and values [B, heads, T, head width] from a joint projection
// [B, T, 3 · heads · head width] and the cosines and sines of the angles,
// [B or 1, 1, T, head width / 2].
extern "C" char* tessera_rotated_heads(const at::Tensor* joint, const at::Tensor* cos,
                                       const at::Tensor* sin, int64_t heads,
                                       at::Tensor** out) {
  return guarded([&] {
    TORCH_CHECK(joint->dim() == 3 && heads > 0 && joint->size(2) % (6 * heads) == 0 &&
                    cos->dim() == 4 && cos->sizes() == sin->sizes() &&
                    (cos->size(0) == 1 || cos->size(0) == joint->size(0)) &&
                    cos->size(1) == 1 && cos->size(2) == joint->size(1) &&
                    cos->size(3) == joint->size(2) / (6 * heads),
                "angles of other sizes than the projection's");
    const auto parts =
        RotatedHeads::apply(joint->contiguous(), cos->contiguous(), sin->contiguous(), heads);
    for (size_t part = 0; part < 3; ++part) {
      out[part] = new at::Tensor(parts[part]);
    }
  });
}

}  // namespace tessera::rotary
