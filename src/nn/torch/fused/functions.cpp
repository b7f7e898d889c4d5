// The blocks of an encoder layer as functions that autograd knows, each one
// operator in place of dozens. They are for training on a processor: elsewhere
// and in exported networks the same is composed of libtorch's operators.
#include "../shim.h"
#include "blocks.h"

#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

using at::Tensor;
using tessera::guarded;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace tessera::fused {

#ifdef TESSERA_FUSED
Kernels amx_f32();
Kernels amx_bf16();
Kernels avx512_f32();
Kernels avx512_bf16();
Kernels avx2_f32();
#endif

namespace {

// The kernels of this processor for f32 and for bf16, where it has any.
struct Available {
  std::optional<Kernels> f32, bf16;
};

Available look() {
  Available available;
#ifdef TESSERA_FUSED
  const auto features = at::cpu::get_cpu_capabilities();
  const auto has = [&](const char* name) {
    const auto found = features.find(name);
    return found != features.end() && found->second.isBool() && found->second.toBool();
  };
  if (!has("avx2") || !has("fma3")) {
    return available;
  }
  available.f32 = avx2_f32();
  if (has("avx512_f") && has("avx512_bw") && has("avx512_vl") && has("avx512_dq") &&
      has("avx512_bf16")) {
    available.f32 = avx512_f32();
    available.bf16 = avx512_bf16();
    if (has("amx_bf16") && at::cpu::init_amx()) {
      available.bf16 = amx_bf16();
    }
  }
#endif
  return available;
}

const std::optional<Kernels>& kernels(at::ScalarType type) {
  static const Available available = look();
  static const std::optional<Kernels> none;
  switch (type) {
    case at::kFloat:
      return available.f32;
    case at::kBFloat16:
      return available.bf16;
    default:
      return none;
  }
}

// Runs work(worker, first, last) on chunks of boards, one worker for each thread
// that libtorch may use here.
int64_t workers_for(int64_t boards) {
  const int64_t chunks = (boards + kChunk - 1) / kChunk;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  return std::max<int64_t>(1, std::min(chunks, threads));
}

template <typename Work>
void share(int64_t boards, int64_t workers, const Work& work) {
  const int64_t chunks = (boards + kChunk - 1) / kChunk;
  at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      const int64_t first = chunks * worker / workers * kChunk;
      const int64_t last = std::min(boards, chunks * (worker + 1) / workers * kChunk);
      work(worker, first, last);
    }
  });
}

const void* data(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

// Sums of the gradients of parameters, by worker and joined in order.
class Sums {
 public:
  Sums(int64_t workers, std::vector<int64_t> sizes)
      : sizes_(std::move(sizes)),
        all_(at::zeros({workers, std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0})},
                       at::kFloat)) {}

  // Where a worker's sums for each parameter lie.
  std::vector<float*> of(int64_t worker) const {
    std::vector<float*> places;
    float* place = all_.mutable_data_ptr<float>() + worker * all_.size(1);
    for (const int64_t size : sizes_) {
      places.push_back(place);
      place += size;
    }
    return places;
  }

  std::vector<Tensor> joined() const {
    const Tensor total = all_.size(0) == 1 ? all_[0] : all_.sum(0);
    return total.split_with_sizes(sizes_);
  }

 private:
  std::vector<int64_t> sizes_;
  Tensor all_;
};

NormEnd norm_of(AutogradContext* context, const Tensor& weight, const Tensor& bias) {
  return {static_cast<float>(context->saved_data["gain"].toDouble()),
          static_cast<float>(context->saved_data["epsilon"].toDouble()), bias.defined(),
          data(weight), data(bias)};
}

Tensor like(const Tensor& tensor, at::IntArrayRef sizes) {
  return at::empty(sizes, tensor.options());
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  // What is saved for backward: the inputs, then what forward computed.
  enum Saved {
    kX,
    kQueriesOfBias,
    kGenerator,
    kQueryKey,
    kValue,
    kOutput,
    kOutputBias,
    kNormWeight,
    kNormBias,
    kAttacks,
    kWorth,
    kInputs,
    kProjected = kInputs,
    kProbabilities,
    kSeen,
    kNormal,
    kInverse,
    kSaved,
  };

  static Attention block(AutogradContext* context, const variable_list& saved,
                         const Tensor& worth) {
    const Tensor& x = saved[kX];
    const int64_t width = x.size(-1), heads = context->saved_data["heads"].toInt();
    return {x.numel() / (kSquares * width),
            width,
            heads,
            width / heads,
            saved[kGenerator].size(1),
            norm_of(context, saved[kNormWeight], saved[kNormBias]),
            data(x),
            data(saved[kQueriesOfBias]),
            data(saved[kGenerator]),
            data(saved[kQueryKey]),
            data(saved[kValue]),
            data(saved[kOutput]),
            data(saved[kOutputBias]),
            static_cast<const uint64_t*>(data(saved[kAttacks])),
            static_cast<const float*>(data(worth)),
            nullptr,
            saved[kProjected].mutable_data_ptr(),
            saved[kProbabilities].mutable_data_ptr(),
            saved[kSeen].mutable_data_ptr(),
            {saved[kNormal].mutable_data_ptr(), saved[kInverse].mutable_data_ptr<float>()}};
  }

  static Tensor worth_of(const variable_list& saved) {
    return saved[kWorth].defined() ? saved[kWorth].to(at::kFloat).contiguous() : Tensor();
  }

  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const Tensor& queries_of_bias, const Tensor& generator,
                        const Tensor& query_key, const Tensor& value, const Tensor& output,
                        const Tensor& output_bias, const Tensor& norm_weight,
                        const std::optional<Tensor>& norm_bias,
                        const std::optional<Tensor>& attacks,
                        const std::optional<Tensor>& worth,
                        int64_t heads, double gain, double epsilon) {
    const at::AutoDispatchBelowAutograd below;
    context->saved_data["heads"] = heads;
    context->saved_data["gain"] = gain;
    context->saved_data["epsilon"] = epsilon;
    variable_list saved = {x,
                           queries_of_bias,
                           generator,
                           query_key,
                           value,
                           output,
                           output_bias,
                           norm_weight,
                           norm_bias.value_or(Tensor()),
                           attacks.value_or(Tensor()),
                           worth.value_or(Tensor())};
    for (Tensor& tensor : saved) {
      tensor = tensor.defined() ? tensor.contiguous() : tensor;
    }
    const int64_t width = x.size(-1), tokens = x.numel() / width;
    const int64_t boards = tokens / kSquares;
    saved.push_back(like(x, {tokens, 3 * width}));
    saved.push_back(like(x, {boards * heads, kSquares, kSquares}));
    saved.push_back(like(x, {tokens, width}));
    saved.push_back(like(x, {tokens, width}));
    saved.push_back(at::empty({tokens}, at::kFloat));
    const Tensor worths = worth_of(saved);
    Tensor y = like(x, x.sizes());
    Attention attention = block(context, saved, worths);
    attention.y = y.mutable_data_ptr();
    const Kernels& run = *kernels(x.scalar_type());
    share(boards, workers_for(boards), [&](int64_t, int64_t first, int64_t last) {
      run.attention(attention, first, last);
    });
    context->save_for_backward(saved);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[kX];
    const at::ScalarType type = x.scalar_type();
    const Tensor gradient = outputs[0].to(type).contiguous();
    const Tensor worths = worth_of(saved);
    const Attention attention = block(context, saved, worths);
    Tensor of_x = like(x, x.sizes());
    Tensor of_queries = like(x, saved[kQueriesOfBias].sizes());
    const int64_t width = attention.width, workers = workers_for(attention.boards);
    const Sums sums(workers, {3 * width * width, width * width, width,
                              attention.generated * kPairs, 2 * attention.heads, width,
                              width});
    const AttentionGradients gradients{data(gradient), of_x.mutable_data_ptr(),
                                       of_queries.mutable_data_ptr()};
    const Kernels& run = *kernels(type);
    share(attention.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      const auto to = sums.of(worker);
      run.attention_backward(attention, gradients,
                             {to[0], to[1], to[2], to[3], to[4], {to[5], to[6]}}, first,
                             last);
    });
    const auto of = sums.joined();
    const Tensor projection = of[0].to(type).view({3 * width, width});
    const Tensor generator = of[3].view({attention.generated, kPairs}).t();
    const auto where = [&](Saved input, const Tensor& gradient) {
      return saved[input].defined() ? gradient.to(type) : Tensor();
    };
    return {of_x,
            of_queries,
            generator.to(type).contiguous(),
            projection.narrow(0, 0, 2 * width),
            projection.narrow(0, 2 * width, width),
            of[1].mul(attention.norm.gain).to(type).view({width, width}),
            of[2].to(type),
            of[5].to(type),
            where(kNormBias, of[6]),
            Tensor(),
            where(kWorth, of[4].view({attention.heads, 2})),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  // As of attention.
  enum Saved {
    kX,
    kWiden,
    kWidenBias,
    kNarrow,
    kNarrowBias,
    kNormWeight,
    kNormBias,
    kInputs,
    kWidened = kInputs,
    kNormal,
    kInverse,
    kSaved,
  };

  static FeedForward block(AutogradContext* context, const variable_list& saved) {
    const Tensor& x = saved[kX];
    const int64_t width = x.size(-1);
    return {x.numel() / (kSquares * width),
            width,
            saved[kWiden].size(0),
            norm_of(context, saved[kNormWeight], saved[kNormBias]),
            data(x),
            data(saved[kWiden]),
            data(saved[kWidenBias]),
            data(saved[kNarrow]),
            data(saved[kNarrowBias]),
            nullptr,
            saved[kWidened].mutable_data_ptr(),
            {saved[kNormal].mutable_data_ptr(), saved[kInverse].mutable_data_ptr<float>()}};
  }

  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& widen,
                        const Tensor& widen_bias, const Tensor& narrow,
                        const Tensor& narrow_bias, const Tensor& norm_weight,
                        const std::optional<Tensor>& norm_bias, double gain,
                        double epsilon) {
    const at::AutoDispatchBelowAutograd below;
    context->saved_data["gain"] = gain;
    context->saved_data["epsilon"] = epsilon;
    variable_list saved = {x,           widen,       widen_bias, narrow,
                           narrow_bias, norm_weight, norm_bias.value_or(Tensor())};
    for (Tensor& tensor : saved) {
      tensor = tensor.defined() ? tensor.contiguous() : tensor;
    }
    const int64_t width = x.size(-1), tokens = x.numel() / width;
    const int64_t boards = tokens / kSquares;
    saved.push_back(like(x, {tokens, widen.size(0)}));
    saved.push_back(like(x, {tokens, width}));
    saved.push_back(at::empty({tokens}, at::kFloat));
    Tensor y = like(x, x.sizes());
    FeedForward feed_forward = block(context, saved);
    feed_forward.y = y.mutable_data_ptr();
    const Kernels& run = *kernels(x.scalar_type());
    share(boards, workers_for(boards), [&](int64_t, int64_t first, int64_t last) {
      run.feed_forward(feed_forward, first, last);
    });
    context->save_for_backward(saved);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[kX];
    const at::ScalarType type = x.scalar_type();
    const Tensor gradient = outputs[0].to(type).contiguous();
    const FeedForward feed_forward = block(context, saved);
    Tensor of_x = like(x, x.sizes());
    const int64_t width = feed_forward.width, hidden = feed_forward.hidden;
    const int64_t workers = workers_for(feed_forward.boards);
    const Sums sums(workers,
                    {hidden * width, hidden, width * hidden, width, width, width});
    const FeedForwardGradients gradients{data(gradient), of_x.mutable_data_ptr()};
    const Kernels& run = *kernels(type);
    share(feed_forward.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      const auto to = sums.of(worker);
      run.feed_forward_backward(feed_forward, gradients,
                                {to[0], to[1], to[2], to[3], {to[4], to[5]}}, first, last);
    });
    const auto of = sums.joined();
    return {of_x,
            of[0].to(type).view({hidden, width}),
            of[1].to(type),
            of[2].mul(feed_forward.norm.gain).to(type).view({width, hidden}),
            of[3].to(type),
            of[4].to(type),
            saved[kNormBias].defined() ? of[5].to(type) : Tensor(),
            Tensor(),
            Tensor()};
  }
};

// An input that may be absent.
std::optional<Tensor> optional(const Tensor* tensor) {
  return tensor == nullptr ? std::nullopt : std::optional(*tensor);
}

}  // namespace
}  // namespace tessera::fused

extern "C" {

// Whether there are kernels for the type of these numbers.
bool tessera_fused_available(const Tensor* like) {
  return tessera::fused::kernels(like->scalar_type()).has_value();
}

// Inputs in the order of AttentionFunction::Saved; null for those that are absent.
char* tessera_fused_attention(const Tensor* const* inputs, int64_t heads, double gain,
                              double epsilon, Tensor** out) {
  return guarded([&] {
    using namespace tessera::fused;
    using Function = AttentionFunction;
    const auto input = [&](Function::Saved place) { return *inputs[place]; };
    *out = new Tensor(Function::apply(
        input(Function::kX), input(Function::kQueriesOfBias), input(Function::kGenerator),
        input(Function::kQueryKey), input(Function::kValue), input(Function::kOutput),
        input(Function::kOutputBias), input(Function::kNormWeight),
        optional(inputs[Function::kNormBias]), optional(inputs[Function::kAttacks]),
        optional(inputs[Function::kWorth]), heads, gain, epsilon));
  });
}

// Inputs in the order of FeedForwardFunction::Saved.
char* tessera_fused_feed_forward(const Tensor* const* inputs, double gain, double epsilon,
                                 Tensor** out) {
  return guarded([&] {
    using namespace tessera::fused;
    using Function = FeedForwardFunction;
    const auto input = [&](Function::Saved place) { return *inputs[place]; };
    *out = new Tensor(Function::apply(
        input(Function::kX), input(Function::kWiden), input(Function::kWidenBias),
        input(Function::kNarrow), input(Function::kNarrowBias),
        input(Function::kNormWeight), optional(inputs[Function::kNormBias]), gain, epsilon));
  });
}
}
