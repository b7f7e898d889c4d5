// The blocks of an encoder layer, each one operator in place of dozens, on a
// processor: as functions that autograd knows, for training, and without a gradient
// by packed weights, for playing. Elsewhere and in exported networks the same is
// composed of libtorch's operators.
#include "../shim.h"
#include "autograd.h"
#include "expected.h"
#include "packed.h"

using at::Tensor;
using tessera::guarded;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace tessera::fused {
namespace {

// What a block is besides its tensors. Heads and the epsilon of biases are those of
// attention.
struct Numbers {
  double gain, epsilon;
  int64_t heads = 0;
  double epsilon_of_bias = 0.0;

  void save(AutogradContext* context) const {
    context->saved_data["gain"] = gain;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["heads"] = heads;
    context->saved_data["epsilon_of_bias"] = epsilon_of_bias;
  }

  static Numbers of(AutogradContext* context) {
    auto& saved = context->saved_data;
    return {saved["gain"].toDouble(), saved["epsilon"].toDouble(), saved["heads"].toInt(),
            saved["epsilon_of_bias"].toDouble()};
  }
};

NormEnd norm_of(const Numbers& numbers, const Tensor& weight, const Tensor& bias) {
  return {static_cast<float>(numbers.gain), static_cast<float>(numbers.epsilon),
          bias.defined(), data(weight), data(bias)};
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  // What is saved for backward: the inputs, then what forward computed.
  enum Saved {
    kX,
    kQueryKey,
    kValue,
    kOutput,
    kOutputBias,
    kNormWeight,
    kCompress,
    kSummary,
    kSummaryBias,
    kSummaryNormWeight,
    kSummaryNormBias,
    kHeads,
    kHeadsBias,
    kHeadsNormWeight,
    kHeadsNormBias,
    kGenerator,
    // Those from here on may be absent.
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

  static int64_t joint_of(const variable_list& saved) {
    return 3 * saved[kX].size(-1) + round_up_32(saved[kCompress].size(0));
  }

  static Attention block(const Numbers& numbers, const variable_list& saved,
                         const Tensor& worth) {
    const Tensor& x = saved[kX];
    const int64_t width = x.size(-1), heads = numbers.heads;
    Attention attention{};
    attention.boards = x.numel() / (kSquares * width);
    attention.width = width;
    attention.heads = heads;
    attention.head_width = width / heads;
    attention.joint = joint_of(saved);
    attention.norm = norm_of(numbers, saved[kNormWeight], saved[kNormBias]);
    attention.gab = gab_of(&saved[kCompress], numbers.epsilon_of_bias);
    attention.x = data(x);
    attention.query_key = data(saved[kQueryKey]);
    attention.value = data(saved[kValue]);
    attention.output = data(saved[kOutput]);
    attention.output_bias = data(saved[kOutputBias]);
    attention.attacks = static_cast<const uint64_t*>(data(saved[kAttacks]));
    attention.worth = static_cast<const float*>(data(worth));
    if (saved.size() == kInputs) {
      return attention;
    }
    attention.projected = saved[kProjected].mutable_data_ptr();
    attention.probabilities = saved[kProbabilities].mutable_data_ptr();
    attention.seen = saved[kSeen].mutable_data_ptr();
    attention.saved = {saved[kNormal].mutable_data_ptr(),
                       saved[kInverse].mutable_data_ptr<float>()};
    return attention;
  }

  // Whether the inputs, which are contiguous, fit together.
  static void check(const variable_list& saved, int64_t heads) {
    TORCH_CHECK(saved[kOutput].dim() == 2, "weights of no attention");
    const int64_t width = saved[kOutput].size(0);
    TORCH_CHECK(heads > 0 && are_heads(heads, width / heads, width) &&
                    whole({width, width / heads}),
                "widths that have no kernels");
    const at::ScalarType type = saved[kX].scalar_type();
    expect_tokens(saved[kX], type, width);
    expect(saved[kQueryKey], type, {2 * width, width});
    expect(saved[kValue], type, {width, width});
    expect(saved[kOutput], type, {width, width});
    expect(saved[kOutputBias], type, {width});
    expect_gab(&saved[kCompress], type, width, heads);
    expect(saved[kNormWeight], type, {width});
    if (saved[kNormBias].defined()) {
      expect(saved[kNormBias], type, {width});
    }
    if (saved[kAttacks].defined() || saved[kWorth].defined()) {
      expect_attacks(saved[kAttacks], saved[kWorth], type,
                     saved[kX].numel() / (kSquares * width), heads);
    }
  }

  static Tensor worth_of(const variable_list& saved) {
    return saved[kWorth].defined() ? saved[kWorth].to(at::kFloat).contiguous() : Tensor();
  }

  static Tensor forward(AutogradContext* context, at::TensorList inputs,
                        const std::optional<Tensor>& norm_bias,
                        const std::optional<Tensor>& attacks,
                        const std::optional<Tensor>& worth, int64_t heads, double gain,
                        double epsilon, double epsilon_of_bias) {
    const at::AutoDispatchBelowAutograd below;
    const Numbers numbers{gain, epsilon, heads, epsilon_of_bias};
    numbers.save(context);
    variable_list saved(inputs.begin(), inputs.end());
    saved.push_back(norm_bias.value_or(Tensor()));
    saved.push_back(attacks.value_or(Tensor()));
    saved.push_back(worth.value_or(Tensor()));
    saved = contiguous(saved);
    check(saved, heads);
    const Tensor x = saved[kX];
    const int64_t width = x.size(-1), tokens = x.numel() / width;
    const int64_t boards = tokens / kSquares;
    saved.push_back(like(x, {tokens, joint_of(saved)}));
    saved.push_back(like(x, {boards * heads, kSquares, kSquares}));
    saved.push_back(like(x, {tokens, width}));
    saved.push_back(like(x, {tokens, width}));
    saved.push_back(at::empty({tokens}, at::kFloat));
    const Tensor worths = worth_of(saved);
    Tensor y = like(x, x.sizes());
    Attention attention = block(numbers, saved, worths);
    attention.y = y.mutable_data_ptr();
    on_boards(x.scalar_type(), boards, [&](const auto& run, auto first, auto last) {
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
    const Attention attention = block(Numbers::of(context), saved, worths);
    Tensor of_x = like(x, x.sizes());
    const Gab& gab = attention.gab;
    const int64_t width = attention.width, asked = attention.heads * gab.generated;
    const int64_t workers = workers_for(attention.boards);
    const Sums sums(
        workers, {attention.joint * width, width * width, width, 2 * attention.heads, width,
                  width, gab.hidden * kSquares * gab.compress, gab.hidden, asked * gab.hidden,
                  asked, gab.generated * kPairs, gab.hidden, gab.hidden, asked, asked});
    const AttentionGradients gradients{data(gradient), of_x.mutable_data_ptr()};
    const Kernels& run = kernels_for(type);
    share(attention.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      const auto to = sums.of(worker);
      run.attention_backward(attention, gradients,
                             {to[0],
                              to[1],
                              to[2],
                              to[3],
                              {to[4], to[5]},
                              {to[6], to[7], to[8], to[9], to[10], {to[11], to[12]},
                               {to[13], to[14]}}},
                             first, last);
    });
    const auto of = sums.joined();
    const Tensor projection = of[0].to(type).view({attention.joint, width});
    const auto shaped = [&](Saved input, const Tensor& gradient) {
      return saved[input].defined() ? gradient.to(type).view(saved[input].sizes()) : Tensor();
    };
    return {of_x,
            projection.narrow(0, 0, 2 * width),
            projection.narrow(0, 2 * width, width),
            shaped(kOutput, of[1].mul(attention.norm.gain)),
            shaped(kOutputBias, of[2]),
            shaped(kNormWeight, of[4]),
            projection.narrow(0, 3 * width, gab.compress),
            shaped(kSummary, of[6]),
            shaped(kSummaryBias, of[7]),
            shaped(kSummaryNormWeight, of[11]),
            shaped(kSummaryNormBias, of[12]),
            shaped(kHeads, of[8]),
            shaped(kHeadsBias, of[9]),
            shaped(kHeadsNormWeight, of[13]),
            shaped(kHeadsNormBias, of[14]),
            of[10].view({gab.generated, kPairs}).t().to(type).contiguous(),
            shaped(kNormBias, of[5]),
            Tensor(),
            shaped(kWorth, of[3]),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }

  // Packs the weights among inputs without tokens.
  static Tensor pack(variable_list inputs, int64_t heads, bool int8) {
    TORCH_CHECK(inputs[kOutput].dim() == 2, "weights of no attention");
    const int64_t width = inputs[kOutput].size(0);
    inputs[kX] = like(inputs[kOutput], {0, kSquares, width});
    check(inputs, heads);
    const Attention attention = block({1.0, 0.0, heads}, inputs, worth_of(inputs));
    const Kernels& run = kernels_for(inputs[kX].scalar_type(), int8, {width});
    return pack_by(run.pack_attention, attention);
  }

  static Tensor infer(const variable_list& inputs, const Tensor& weights,
                      const Numbers& numbers, bool int8) {
    check(inputs, numbers.heads);
    const Tensor& x = inputs[kX];
    const Tensor worths = worth_of(inputs);
    Tensor y = like(x, x.sizes());
    Attention attention = block(numbers, inputs, worths);
    attention.y = y.mutable_data_ptr();
    const Kernels& run = kernels_for(x.scalar_type(), int8, {attention.width});
    attention.packed = packed(run.pack_attention, attention, weights);
    on_boards(run, attention.boards, [&](const auto& by, auto first, auto last) {
      by.attention(attention, first, last);
    });
    return y;
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

  // As of attention.
  static void check(const variable_list& saved) {
    TORCH_CHECK(saved[kWiden].dim() == 2, "weights of no feed-forward");
    const int64_t hidden = saved[kWiden].size(0), width = saved[kWiden].size(1);
    TORCH_CHECK(whole({hidden, width}), "widths that have no kernels");
    const at::ScalarType type = saved[kX].scalar_type();
    expect_tokens(saved[kX], type, width);
    expect(saved[kWiden], type, {hidden, width});
    expect(saved[kWidenBias], type, {hidden});
    expect(saved[kNarrow], type, {width, hidden});
    expect(saved[kNarrowBias], type, {width});
    expect(saved[kNormWeight], type, {width});
    if (saved[kNormBias].defined()) {
      expect(saved[kNormBias], type, {width});
    }
  }

  static FeedForward block(const Numbers& numbers, const variable_list& saved) {
    const Tensor& x = saved[kX];
    const int64_t width = x.size(-1);
    FeedForward block{x.numel() / (kSquares * width),
                      width,
                      saved[kWiden].size(0),
                      norm_of(numbers, saved[kNormWeight], saved[kNormBias]),
                      data(x),
                      data(saved[kWiden]),
                      data(saved[kWidenBias]),
                      data(saved[kNarrow]),
                      data(saved[kNarrowBias])};
    if (saved.size() > kInputs) {
      block.widened = saved[kWidened].mutable_data_ptr();
      block.saved = {saved[kNormal].mutable_data_ptr(),
                     saved[kInverse].mutable_data_ptr<float>()};
    }
    return block;
  }

  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& widen,
                        const Tensor& widen_bias, const Tensor& narrow,
                        const Tensor& narrow_bias, const Tensor& norm_weight,
                        const std::optional<Tensor>& norm_bias, double gain,
                        double epsilon) {
    const at::AutoDispatchBelowAutograd below;
    const Numbers numbers{gain, epsilon};
    numbers.save(context);
    variable_list saved = {x,           widen,       widen_bias, narrow,
                           narrow_bias, norm_weight, norm_bias.value_or(Tensor())};
    saved = contiguous(saved);
    check(saved);
    const int64_t width = x.size(-1), tokens = x.numel() / width;
    const int64_t boards = tokens / kSquares;
    saved.push_back(like(x, {tokens, widen.size(0)}));
    saved.push_back(like(x, {tokens, width}));
    saved.push_back(at::empty({tokens}, at::kFloat));
    Tensor y = like(x, x.sizes());
    FeedForward feed_forward = block(numbers, saved);
    feed_forward.y = y.mutable_data_ptr();
    on_boards(x.scalar_type(), boards, [&](const auto& run, auto first, auto last) {
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
    const FeedForward feed_forward = block(Numbers::of(context), saved);
    Tensor of_x = like(x, x.sizes());
    const int64_t width = feed_forward.width, hidden = feed_forward.hidden;
    const int64_t workers = workers_for(feed_forward.boards);
    const Sums sums(workers,
                    {hidden * width, hidden, width * hidden, width, width, width});
    const FeedForwardGradients gradients{data(gradient), of_x.mutable_data_ptr()};
    const Kernels& run = kernels_for(type);
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

  // As of attention.
  static Tensor pack(variable_list inputs, bool int8) {
    TORCH_CHECK(inputs[kWiden].dim() == 2, "weights of no feed-forward");
    inputs[kX] = like(inputs[kWiden], {0, kSquares, inputs[kWiden].size(1)});
    check(inputs);
    const FeedForward feed_forward = block({1.0, 0.0}, inputs);
    const Kernels& run = kernels_for(inputs[kX].scalar_type(), int8,
                                     {feed_forward.width, feed_forward.hidden});
    return pack_by(run.pack_feed_forward, feed_forward);
  }

  static Tensor infer(const variable_list& inputs, const Tensor& weights,
                      const Numbers& numbers, bool int8) {
    check(inputs);
    const Tensor& x = inputs[kX];
    Tensor y = like(x, x.sizes());
    FeedForward feed_forward = block(numbers, inputs);
    feed_forward.y = y.mutable_data_ptr();
    const Kernels& run =
        kernels_for(x.scalar_type(), int8, {feed_forward.width, feed_forward.hidden});
    feed_forward.packed = packed(run.pack_feed_forward, feed_forward, weights);
    on_boards(run, feed_forward.boards, [&](const auto& by, auto first, auto last) {
      by.feed_forward(feed_forward, first, last);
    });
    return y;
  }
};

}  // namespace
}  // namespace tessera::fused

extern "C" {

// Inputs in the order of AttentionFunction::Saved; null for those that are absent.
char* tessera_fused_attention(const Tensor* const* inputs, int64_t heads, double gain,
                              double epsilon, double epsilon_of_bias, Tensor** out) {
  return guarded([&] {
    using namespace tessera::fused;
    using Function = AttentionFunction;
    variable_list present;
    for (int place = 0; place < Function::kNormBias; ++place) {
      present.push_back(*inputs[place]);
    }
    *out = new Tensor(Function::apply(
        at::TensorList(present), optional(inputs[Function::kNormBias]),
        optional(inputs[Function::kAttacks]), optional(inputs[Function::kWorth]), heads,
        gain, epsilon, epsilon_of_bias));
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

// The weights of both as their kernels want them, in int8 if these widths allow it. Inputs
// as above; those that are no weights may be null.
char* tessera_fused_pack_attention(const Tensor* const* inputs, int64_t heads, bool int8,
                                   Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::AttentionFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::pack(all, heads, int8));
  });
}

char* tessera_fused_pack_feed_forward(const Tensor* const* inputs, bool int8, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::FeedForwardFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::pack(all, int8));
  });
}

// The same functions without a gradient, by packed weights.
char* tessera_fused_infer_attention(const Tensor* const* inputs, const Tensor* weights,
                                    int64_t heads, double gain, double epsilon,
                                    double epsilon_of_bias, bool int8, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::AttentionFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(
        Function::infer(all, *weights, {gain, epsilon, heads, epsilon_of_bias}, int8));
  });
}

char* tessera_fused_infer_feed_forward(const Tensor* const* inputs, const Tensor* weights,
                                       double gain, double epsilon, bool int8,
                                       Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::FeedForwardFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::infer(all, *weights, {gain, epsilon}, int8));
  });
}
}
