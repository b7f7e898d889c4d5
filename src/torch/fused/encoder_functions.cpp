// The blocks of an encoder layer on the CPU, each as one operator instead of dozens. On other
// devices and in exported networks, libtorch's operators compute the blocks.
#include "operator.h"

namespace tessera::fused {
namespace {

NormEnd norm_of(const Settings& settings, const Tensor& weight, const Tensor& bias) {
  return {static_cast<float>(settings.gain), static_cast<float>(settings.epsilon),
          bias.defined(), data(weight), data(bias)};
}

// Checks the weight and the bias of the norm at the end of a block.
void expect_norm(const Tensor& weight, const Tensor& bias, at::ScalarType type,
                 int64_t width) {
  expect(weight, type, {width});
  if (bias.defined()) {
    expect(bias, type, {width});
  }
}

NormSaved saved_norm(const Tensor& normal, const Tensor& inverse) {
  return {normal.mutable_data_ptr(), inverse.mutable_data_ptr<float>()};
}

// Converts a sum to the gradient of an input, if the input is present.
Tensor as_input(const Tensor& sum, const Tensor& input, at::ScalarType type) {
  return input.defined() ? sum.to(type).view(input.sizes()) : Tensor();
}

struct AttentionBlock {
  using Work = Attention;

  enum Input {
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
    // Inputs from here on may be absent.
    kNormBias,
    kAttacks,
    kWorth,
    kInputs,
  };
  static constexpr int kOptional = kInputs - kNormBias, kShape = kOutput;

  enum Kept { kProjected, kProbabilities, kAttended, kNormal, kInverse, kKept };

  // The inputs whose gradients are summed.
  enum Sum {
    kOfProjection,
    kOfOutput,
    kOfOutputBias,
    kOfWorth,
    kOfNormWeight,
    kOfNormBias,
    kOfSummary,
    kOfSummaryBias,
    kOfHeads,
    kOfHeadsBias,
    kOfGenerator,
    kOfSummaryNormWeight,
    kOfSummaryNormBias,
    kOfHeadsNormWeight,
    kOfHeadsNormBias,
  };

  static constexpr auto kRun = &Kernels::attention;
  static constexpr auto kPack = &Kernels::pack_attention;

  static void check(variable_list& inputs, const Settings& settings) {
    TORCH_CHECK(inputs[kOutput].dim() == 2, "weights of no attention");
    const int64_t width = inputs[kOutput].size(0), heads = settings.heads;
    TORCH_CHECK(heads > 0 && are_heads(heads, width / heads, width) &&
                    whole({width, width / heads}),
                "widths that have no kernels");
    const at::ScalarType type = inputs[kX].scalar_type();
    expect_tokens(inputs[kX], type, width);
    expect(inputs[kQueryKey], type, {2 * width, width});
    expect(inputs[kValue], type, {width, width});
    expect(inputs[kOutput], type, {width, width});
    expect(inputs[kOutputBias], type, {width});
    expect_gab(&inputs[kCompress], type, width, heads);
    expect_norm(inputs[kNormWeight], inputs[kNormBias], type, width);
    if (inputs[kAttacks].defined() || inputs[kWorth].defined()) {
      expect_attacks(inputs[kAttacks], inputs[kWorth], type,
                     inputs[kX].numel() / (kSquares * width), heads);
      inputs[kWorth] = inputs[kWorth].to(at::kFloat);
    }
  }

  static Attention work(const variable_list& inputs, const Settings& settings) {
    const int64_t width = inputs[kX].size(-1);
    Attention work{};
    work.boards = inputs[kX].numel() / (kSquares * width);
    work.width = width;
    work.heads = settings.heads;
    work.head_width = width / settings.heads;
    work.joint = 3 * width + round_up_32(inputs[kCompress].size(0));
    work.norm = norm_of(settings, inputs[kNormWeight], inputs[kNormBias]);
    work.gab = gab_of(&inputs[kCompress], settings.epsilon_of_bias);
    work.x = data(inputs[kX]);
    work.query_key = data(inputs[kQueryKey]);
    work.value = data(inputs[kValue]);
    work.output = data(inputs[kOutput]);
    work.output_bias = data(inputs[kOutputBias]);
    work.attacks = static_cast<const uint64_t*>(data(inputs[kAttacks]));
    work.worth = static_cast<const float*>(data(inputs[kWorth]));
    return work;
  }

  static variable_list kept(const Attention& work, const Tensor& x) {
    const int64_t tokens = work.boards * kSquares;
    return {like(x, {tokens, work.joint}),
            like(x, {work.boards * work.heads, kSquares, kSquares}),
            like(x, {tokens, work.width}), like(x, {tokens, work.width}),
            at::empty({tokens}, at::kFloat)};
  }

  static void attach(Attention& work, const Tensor* kept) {
    work.projected = kept[kProjected].mutable_data_ptr();
    work.probabilities = kept[kProbabilities].mutable_data_ptr();
    work.attended = kept[kAttended].mutable_data_ptr();
    work.saved = saved_norm(kept[kNormal], kept[kInverse]);
  }

  static variable_list outputs(Attention& work, const Tensor& x) {
    Tensor y = like(x, x.sizes());
    work.y = y.mutable_data_ptr();
    return {y};
  }

  static at::ScalarType type_of_outputs(const Tensor& x) { return x.scalar_type(); }

  static std::vector<int64_t> widths(const Attention& work) { return {work.width}; }

  static std::vector<int64_t> sums(const Attention& work) {
    const Gab& gab = work.gab;
    const int64_t width = work.width, heads = work.heads * gab.generated;
    return {work.joint * width, width * width, width, 2 * work.heads, width, width,
            gab.hidden * kSquares * gab.compress, gab.hidden, heads * gab.hidden, heads,
            gab.generated * kPairs, gab.hidden, gab.hidden, heads, heads};
  }

  static void run_backward(const Kernels& by, const Attention& work,
                           const variable_list& outputs, const Tensor& of_x,
                           const std::vector<float*>& to, int64_t first, int64_t last) {
    const GabSums gab{to[kOfSummary],
                      to[kOfSummaryBias],
                      to[kOfHeads],
                      to[kOfHeadsBias],
                      to[kOfGenerator],
                      {to[kOfSummaryNormWeight], to[kOfSummaryNormBias]},
                      {to[kOfHeadsNormWeight], to[kOfHeadsNormBias]}};
    by.attention_backward(work, {data(outputs[0]), of_x.mutable_data_ptr()},
                          {to[kOfProjection],
                           to[kOfOutput],
                           to[kOfOutputBias],
                           to[kOfWorth],
                           {to[kOfNormWeight], to[kOfNormBias]},
                           gab},
                          first, last);
  }

  static variable_list gradients(const Attention& work, const Tensor& of_x,
                                 const variable_list& sums, const variable_list& saved) {
    const at::ScalarType type = of_x.scalar_type();
    const int64_t width = work.width, generated = work.gab.generated;
    const Tensor projection = sums[kOfProjection].to(type).view({work.joint, width});
    const Tensor generator = sums[kOfGenerator].view({generated, kPairs}).t();
    variable_list all(kInputs);
    const auto give = [&](Input input, const Tensor& sum) {
      all[input] = as_input(sum, saved[input], type);
    };
    all[kX] = of_x;
    all[kQueryKey] = projection.narrow(0, 0, 2 * width);
    all[kValue] = projection.narrow(0, 2 * width, width);
    all[kCompress] = projection.narrow(0, 3 * width, work.gab.compress);
    all[kGenerator] = generator.to(type).contiguous();
    give(kOutput, sums[kOfOutput].mul(work.norm.gain));
    give(kOutputBias, sums[kOfOutputBias]);
    give(kNormWeight, sums[kOfNormWeight]);
    give(kNormBias, sums[kOfNormBias]);
    give(kSummary, sums[kOfSummary]);
    give(kSummaryBias, sums[kOfSummaryBias]);
    give(kSummaryNormWeight, sums[kOfSummaryNormWeight]);
    give(kSummaryNormBias, sums[kOfSummaryNormBias]);
    give(kHeads, sums[kOfHeads]);
    give(kHeadsBias, sums[kOfHeadsBias]);
    give(kHeadsNormWeight, sums[kOfHeadsNormWeight]);
    give(kHeadsNormBias, sums[kOfHeadsNormBias]);
    give(kWorth, sums[kOfWorth]);
    return all;
  }
};

struct FeedForwardBlock {
  using Work = FeedForward;

  enum Input { kX, kWiden, kWidenBias, kNarrow, kNarrowBias, kNormWeight, kNormBias, kInputs };
  static constexpr int kOptional = kInputs - kNormBias, kShape = kWiden;

  enum Kept { kWidened, kNormal, kInverse, kKept };

  // The sums of the weights' gradients, in the order of the inputs.
  enum Sum { kOfNarrow = kNarrow - kWiden };

  static constexpr auto kRun = &Kernels::feed_forward;
  static constexpr auto kPack = &Kernels::pack_feed_forward;

  static void check(variable_list& inputs, const Settings&) {
    TORCH_CHECK(inputs[kWiden].dim() == 2, "weights of no feed-forward");
    const int64_t hidden = inputs[kWiden].size(0), width = inputs[kWiden].size(1);
    TORCH_CHECK(whole({hidden, width}), "widths that have no kernels");
    const at::ScalarType type = inputs[kX].scalar_type();
    expect_tokens(inputs[kX], type, width);
    expect(inputs[kWiden], type, {hidden, width});
    expect(inputs[kWidenBias], type, {hidden});
    expect(inputs[kNarrow], type, {width, hidden});
    expect(inputs[kNarrowBias], type, {width});
    expect_norm(inputs[kNormWeight], inputs[kNormBias], type, width);
  }

  static FeedForward work(const variable_list& inputs, const Settings& settings) {
    const int64_t width = inputs[kX].size(-1);
    return {inputs[kX].numel() / (kSquares * width),
            width,
            inputs[kWiden].size(0),
            norm_of(settings, inputs[kNormWeight], inputs[kNormBias]),
            data(inputs[kX]),
            data(inputs[kWiden]),
            data(inputs[kWidenBias]),
            data(inputs[kNarrow]),
            data(inputs[kNarrowBias])};
  }

  static variable_list kept(const FeedForward& work, const Tensor& x) {
    const int64_t tokens = work.boards * kSquares;
    return {like(x, {tokens, work.hidden}), like(x, {tokens, work.width}),
            at::empty({tokens}, at::kFloat)};
  }

  static void attach(FeedForward& work, const Tensor* kept) {
    work.widened = kept[kWidened].mutable_data_ptr();
    work.saved = saved_norm(kept[kNormal], kept[kInverse]);
  }

  static variable_list outputs(FeedForward& work, const Tensor& x) {
    Tensor y = like(x, x.sizes());
    work.y = y.mutable_data_ptr();
    return {y};
  }

  static at::ScalarType type_of_outputs(const Tensor& x) { return x.scalar_type(); }

  static std::vector<int64_t> widths(const FeedForward& work) {
    return {work.width, work.hidden};
  }

  static std::vector<int64_t> sums(const FeedForward& work) {
    const int64_t width = work.width, hidden = work.hidden;
    return {hidden * width, hidden, width * hidden, width, width, width};
  }

  static void run_backward(const Kernels& by, const FeedForward& work,
                           const variable_list& outputs, const Tensor& of_x,
                           const std::vector<float*>& to, int64_t first, int64_t last) {
    by.feed_forward_backward(work, {data(outputs[0]), of_x.mutable_data_ptr()},
                             {to[0], to[1], to[2], to[3], {to[4], to[5]}}, first, last);
  }

  static variable_list gradients(const FeedForward& work, const Tensor& of_x,
                                 variable_list sums, const variable_list& saved) {
    sums[kOfNarrow] = sums[kOfNarrow].mul(work.norm.gain);
    variable_list all = {of_x};
    for (size_t sum = 0; sum < sums.size(); ++sum) {
      all.push_back(as_input(sums[sum], saved[kWiden + sum], of_x.scalar_type()));
    }
    return all;
  }
};

}  // namespace
}  // namespace tessera::fused

extern "C" {

char* tessera_fused_attention(const tessera::fused::Call* call, at::Tensor** out) {
  return tessera::fused::compute<tessera::fused::AttentionBlock>(*call, out);
}

char* tessera_fused_feed_forward(const tessera::fused::Call* call, at::Tensor** out) {
  return tessera::fused::compute<tessera::fused::FeedForwardBlock>(*call, out);
}
}
