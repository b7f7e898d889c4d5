// The layers of the heads, for training and play. See operator.h.
#include "operator.h"

namespace tessera::fused {
namespace {

// The inputs are x, then the weight and bias of each layer.
struct DenseBlock {
  using Work = DenseLayers;

  static constexpr int kOptional = 0, kKept = 1, kShape = 1;
  static constexpr auto kRun = &Kernels::dense;
  static constexpr auto kPack = &Kernels::pack_dense;

  static void check(variable_list& inputs, const Settings&) {
    TORCH_CHECK(inputs.size() >= 3 && inputs.size() <= 1 + 2 * kMostLayers,
                "no layers of tokens, or too many");
    const Tensor& x = inputs[0];
    const at::ScalarType type = x.scalar_type();
    const int64_t width = x.dim() > 0 ? x.size(-1) : 0;
    TORCH_CHECK(whole({width}), "widths that have no kernels");
    expect_tokens(x, type, width);
    for (size_t layer = 1; layer < inputs.size(); layer += 2) {
      const Tensor &weight = inputs[layer], &bias = inputs[layer + 1];
      TORCH_CHECK(weight.dim() == 2, "weights of no dense layer");
      expect(weight, type, {weight.size(0), width});
      expect(bias, type, {weight.size(0)});
    }
  }

  static DenseLayers work(const variable_list& inputs, const Settings&) {
    const Tensor& x = inputs[0];
    DenseLayers work{};
    work.width = x.size(-1);
    work.boards = x.numel() / (kSquares * work.width);
    work.count = static_cast<int64_t>(inputs.size()) / 2;
    work.x = data(x);
    for (int64_t layer = 0; layer < work.count; ++layer) {
      const Tensor& weight = inputs[1 + 2 * layer];
      work.outputs[layer] = weight.size(0);
      work.weights[layer] = data(weight);
      work.biases[layer] = data(inputs[2 + 2 * layer]);
      work.joint += weight.size(0);
    }
    work.joint = round_up_32(work.joint);
    return work;
  }

  // Returns the layers' outputs before mish.
  static variable_list kept(const DenseLayers& work, const Tensor& x) {
    return {like(x, {work.boards * kSquares, work.joint})};
  }

  static void attach(DenseLayers& work, const Tensor* kept) {
    work.kept = kept->mutable_data_ptr();
  }

  static variable_list outputs(DenseLayers& work, const Tensor& x) {
    variable_list outputs;
    for (int64_t layer = 0; layer < work.count; ++layer) {
      outputs.push_back(like(x, {work.boards, kSquares, work.outputs[layer]}));
      work.y[layer] = outputs.back().mutable_data_ptr();
    }
    return outputs;
  }

  static at::ScalarType type_of_outputs(const Tensor& x) { return x.scalar_type(); }

  static std::vector<int64_t> widths(const DenseLayers& work) { return {work.width}; }

  static std::vector<int64_t> sums(const DenseLayers& work) {
    return {work.joint * work.width, work.joint};
  }

  static void run_backward(const Kernels& by, const DenseLayers& work,
                           const variable_list& outputs, const Tensor& of_x,
                           const std::vector<float*>& to, int64_t first, int64_t last) {
    DenseGradients gradients{};
    gradients.x = of_x.mutable_data_ptr();
    for (int64_t layer = 0; layer < work.count; ++layer) {
      gradients.y[layer] = data(outputs[layer]);
    }
    by.dense_backward(work, gradients, {to[0], to[1]}, first, last);
  }

  static variable_list gradients(const DenseLayers& work, const Tensor& of_x,
                                 const variable_list& sums, const variable_list&) {
    const at::ScalarType type = of_x.scalar_type();
    const Tensor weights = sums[0].to(type).view({work.joint, work.width});
    const Tensor biases = sums[1].to(type);
    variable_list all = {of_x};
    for (int64_t layer = 0, start = 0; layer < work.count; ++layer) {
      const int64_t count = work.outputs[layer];
      all.push_back(weights.narrow(0, start, count));
      all.push_back(biases.narrow(0, start, count));
      start += count;
    }
    return all;
  }
};

struct PolicyBlock {
  using Work = Policy;

  enum Input { kX, kQuery, kQueryBias, kKey, kKeyBias, kPromotion, kPlacesOfMoves };
  enum Sum { kOfProjection, kOfQueryBias, kOfKeyBias, kOfPromotion };
  static constexpr int kOptional = 0, kKept = 1, kShape = kQuery;
  static constexpr auto kRun = &Kernels::policy;
  static constexpr auto kPack = &Kernels::pack_policy;

  static void check(variable_list& inputs, const Settings&) {
    TORCH_CHECK(inputs[kQuery].dim() == 2, "weights of no policy");
    const int64_t width = inputs[kQuery].size(0);
    TORCH_CHECK(whole({width}), "widths that have no kernels");
    const at::ScalarType type = inputs[kX].scalar_type();
    expect_tokens(inputs[kX], type, width);
    for (const Input weight : {kQuery, kKey}) {
      expect(inputs[weight], type, {width, width});
    }
    for (const Input bias : {kQueryBias, kKeyBias}) {
      expect(inputs[bias], type, {width});
    }
    expect(inputs[kPromotion], type, {kPromotions, width});
    TORCH_CHECK(are_places(inputs[kPlacesOfMoves]), "a policy of other moves");
  }

  static Policy work(const variable_list& inputs, const Settings&) {
    const int64_t width = inputs[kX].size(-1);
    return {inputs[kX].numel() / (kSquares * width),
            width,
            data(inputs[kX]),
            data(inputs[kQuery]),
            data(inputs[kQueryBias]),
            data(inputs[kKey]),
            data(inputs[kKeyBias]),
            data(inputs[kPromotion]),
            inputs[kPlacesOfMoves].const_data_ptr<int64_t>()};
  }

  static variable_list kept(const Policy& work, const Tensor& x) {
    return {like(x, {work.boards * kSquares, 2 * work.width})};
  }

  static void attach(Policy& work, const Tensor* kept) {
    work.projected = kept->mutable_data_ptr();
  }

  static variable_list outputs(Policy& work, const Tensor&) {
    Tensor logits = at::empty({work.boards, kPolicy}, at::kFloat);
    work.logits = logits.mutable_data_ptr<float>();
    return {logits};
  }

  static at::ScalarType type_of_outputs(const Tensor&) { return at::kFloat; }

  static std::vector<int64_t> widths(const Policy& work) { return {work.width}; }

  static std::vector<int64_t> sums(const Policy& work) {
    const int64_t width = work.width;
    return {2 * width * width, width, width, kPromotions * width};
  }

  static void run_backward(const Kernels& by, const Policy& work,
                           const variable_list& outputs, const Tensor& of_x,
                           const std::vector<float*>& to, int64_t first, int64_t last) {
    by.policy_backward(work, {outputs[0].const_data_ptr<float>(), of_x.mutable_data_ptr()},
                       {to[0], to[1], to[2], to[3]}, first, last);
  }

  static variable_list gradients(const Policy& work, const Tensor& of_x,
                                 const variable_list& sums, const variable_list&) {
    const at::ScalarType type = of_x.scalar_type();
    const int64_t width = work.width;
    const Tensor projection = sums[kOfProjection].to(type).view({2 * width, width});
    return {of_x,
            projection.narrow(0, 0, width),
            sums[kOfQueryBias].to(type),
            projection.narrow(0, width, width),
            sums[kOfKeyBias].to(type),
            sums[kOfPromotion].to(type).view({kPromotions, width}),
            Tensor()};
  }
};

}  // namespace
}  // namespace tessera::fused

extern "C" {

char* tessera_fused_dense(const tessera::fused::Call* call, at::Tensor** out) {
  return tessera::fused::compute<tessera::fused::DenseBlock>(*call, out);
}

char* tessera_fused_policy(const tessera::fused::Call* call, at::Tensor** out) {
  return tessera::fused::compute<tessera::fused::PolicyBlock>(*call, out);
}
}
