// The layers of the heads, for training and for playing, see encoder_functions.cpp.
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

struct DenseFunction : torch::autograd::Function<DenseFunction> {
  // Whether the inputs, which are contiguous, fit together.
  static void check(const variable_list& inputs) {
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

  // Saved are x, then weight and bias of each layer, then what they made of x
  // before mish.
  static DenseLayers layers(const variable_list& saved) {
    const Tensor& x = saved[0];
    DenseLayers layers{};
    layers.width = x.size(-1);
    layers.boards = x.numel() / (kSquares * layers.width);
    layers.count = static_cast<int64_t>(saved.size() - 2) / 2;
    layers.x = data(x);
    for (int64_t layer = 0; layer < layers.count; ++layer) {
      const Tensor& weight = saved[1 + 2 * layer];
      layers.outputs[layer] = weight.size(0);
      layers.weights[layer] = data(weight);
      layers.biases[layer] = data(saved[2 + 2 * layer]);
      layers.joint += weight.size(0);
    }
    layers.joint = round_up_32(layers.joint);
    layers.kept = saved.back().defined() ? saved.back().mutable_data_ptr() : nullptr;
    return layers;
  }

  static variable_list forward(AutogradContext* context, at::TensorList inputs) {
    const at::AutoDispatchBelowAutograd below;
    variable_list saved = contiguous(inputs);
    const Tensor x = saved[0];
    check(saved);
    saved.emplace_back();
    DenseLayers run = layers(saved);
    saved.back() = like(x, {run.boards * kSquares, run.joint});
    run.kept = saved.back().mutable_data_ptr();
    variable_list outputs;
    for (int64_t layer = 0; layer < run.count; ++layer) {
      outputs.push_back(like(x, {run.boards, kSquares, run.outputs[layer]}));
      run.y[layer] = outputs.back().mutable_data_ptr();
    }
    const Kernels& with = kernels_for(x.scalar_type());
    share(run.boards, workers_for(run.boards), [&](int64_t, int64_t first, int64_t last) {
      with.dense(run, first, last);
    });
    context->save_for_backward(saved);
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const at::ScalarType type = x.scalar_type();
    const DenseLayers run = layers(saved);
    Tensor of_x = like(x, x.sizes());
    DenseGradients gradients{};
    gradients.x = of_x.mutable_data_ptr();
    for (int64_t layer = 0; layer < run.count; ++layer) {
      outputs[layer] = outputs[layer].to(type).contiguous();
      gradients.y[layer] = data(outputs[layer]);
    }
    const int64_t workers = workers_for(run.boards);
    const Sums sums(workers, {run.joint * run.width, run.joint});
    const Kernels& with = kernels_for(type);
    share(run.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      const auto to = sums.of(worker);
      with.dense_backward(run, gradients, {to[0], to[1]}, first, last);
    });
    const auto of = sums.joined();
    const Tensor weights = of[0].to(type).view({run.joint, run.width});
    const Tensor biases = of[1].to(type);
    variable_list result = {of_x};
    for (int64_t layer = 0, start = 0; layer < run.count; ++layer) {
      const int64_t count = run.outputs[layer];
      result.push_back(weights.narrow(0, start, count));
      result.push_back(biases.narrow(0, start, count));
      start += count;
    }
    return result;
  }

  // Packs the weights among inputs, the first of which is not looked at.
  static Tensor pack(variable_list inputs, bool int8) {
    TORCH_CHECK(inputs.size() >= 3 && inputs[1].dim() == 2, "weights of no dense layer");
    inputs[0] = like(inputs[1], {0, kSquares, inputs[1].size(1)});
    check(inputs);
    inputs.emplace_back();
    const DenseLayers run = layers(inputs);
    const Kernels& by = kernels_for(inputs[0].scalar_type(), int8, {run.width});
    return pack_by(by.pack_dense, run);
  }

  static variable_list infer(variable_list inputs, const Tensor& weights, bool int8) {
    check(inputs);
    inputs.emplace_back();
    const Tensor& x = inputs[0];
    DenseLayers run = layers(inputs);
    variable_list outputs;
    for (int64_t layer = 0; layer < run.count; ++layer) {
      outputs.push_back(like(x, {run.boards, kSquares, run.outputs[layer]}));
      run.y[layer] = outputs.back().mutable_data_ptr();
    }
    const Kernels& by = kernels_for(x.scalar_type(), int8, {run.width});
    run.packed = packed(by.pack_dense, run, weights);
    on_boards(by, run.boards, [&](const auto& with, auto first, auto last) {
      with.dense(run, first, last);
    });
    return outputs;
  }
};

struct PolicyFunction : torch::autograd::Function<PolicyFunction> {
  // What is saved for backward: the inputs, then what forward computed.
  enum Saved { kX, kQuery, kQueryBias, kKey, kKeyBias, kPromotion, kPlaces, kInputs,
               kProjected = kInputs, kSaved };

  // Whether the inputs, which are contiguous, fit together.
  static void check(const variable_list& saved) {
    TORCH_CHECK(saved[kQuery].dim() == 2, "weights of no policy");
    const int64_t width = saved[kQuery].size(0);
    TORCH_CHECK(whole({width}), "widths that have no kernels");
    const at::ScalarType type = saved[kX].scalar_type();
    expect_tokens(saved[kX], type, width);
    for (const Saved weight : {kQuery, kKey}) {
      expect(saved[weight], type, {width, width});
    }
    for (const Saved bias : {kQueryBias, kKeyBias}) {
      expect(saved[bias], type, {width});
    }
    expect(saved[kPromotion], type, {kPromotions, width});
    TORCH_CHECK(are_places(saved[kPlaces]), "a policy of other moves");
  }

  static Policy head(const variable_list& saved) {
    const Tensor& x = saved[kX];
    const int64_t width = x.size(-1);
    return {x.numel() / (kSquares * width),
            width,
            data(x),
            data(saved[kQuery]),
            data(saved[kQueryBias]),
            data(saved[kKey]),
            data(saved[kKeyBias]),
            data(saved[kPromotion]),
            saved[kPlaces].const_data_ptr<int64_t>(),
            nullptr,
            saved.size() > kInputs ? saved[kProjected].mutable_data_ptr() : nullptr};
  }

  static Tensor forward(AutogradContext* context, at::TensorList inputs) {
    const at::AutoDispatchBelowAutograd below;
    variable_list saved = contiguous(inputs);
    check(saved);
    const Tensor x = saved[kX];
    const int64_t width = x.size(-1), tokens = x.numel() / width;
    saved.push_back(like(x, {tokens, 2 * width}));
    Policy policy = head(saved);
    Tensor logits = at::empty({policy.boards, kPolicy}, at::kFloat);
    policy.logits = logits.mutable_data_ptr<float>();
    on_boards(x.scalar_type(), policy.boards, [&](const auto& run, auto first, auto last) {
      run.policy(policy, first, last);
    });
    context->save_for_backward(saved);
    return logits;
  }

  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[kX];
    const at::ScalarType type = x.scalar_type();
    const Tensor gradient = outputs[0].to(at::kFloat).contiguous();
    const Policy policy = head(saved);
    Tensor of_x = like(x, x.sizes());
    const int64_t width = policy.width, workers = workers_for(policy.boards);
    const Sums sums(workers, {2 * width * width, width, width, kPromotions * width});
    const PolicyGradients gradients{gradient.const_data_ptr<float>(), of_x.mutable_data_ptr()};
    const Kernels& run = kernels_for(type);
    share(policy.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      const auto to = sums.of(worker);
      run.policy_backward(policy, gradients, {to[0], to[1], to[2], to[3]}, first, last);
    });
    const auto of = sums.joined();
    const Tensor projection = of[0].to(type).view({2 * width, width});
    return {of_x,
            projection.narrow(0, 0, width),
            of[1].to(type),
            projection.narrow(0, width, width),
            of[2].to(type),
            of[3].to(type).view({kPromotions, width}),
            Tensor()};
  }

  // As of dense layers.
  static Tensor pack(variable_list inputs, bool int8) {
    TORCH_CHECK(inputs[kQuery].dim() == 2, "weights of no policy");
    inputs[kX] = like(inputs[kQuery], {0, kSquares, inputs[kQuery].size(0)});
    check(inputs);
    const Policy policy = head(inputs);
    const Kernels& run = kernels_for(inputs[kX].scalar_type(), int8, {policy.width});
    return pack_by(run.pack_policy, policy);
  }

  static Tensor infer(const variable_list& inputs, const Tensor& weights, bool int8) {
    check(inputs);
    Policy policy = head(inputs);
    Tensor logits = at::empty({policy.boards, kPolicy}, at::kFloat);
    policy.logits = logits.mutable_data_ptr<float>();
    const Kernels& run = kernels_for(inputs[kX].scalar_type(), int8, {policy.width});
    policy.packed = packed(run.pack_policy, policy, weights);
    on_boards(run, policy.boards, [&](const auto& by, auto first, auto last) {
      by.policy(policy, first, last);
    });
    return logits;
  }
};

}  // namespace
}  // namespace tessera::fused

extern "C" {

// Inputs: x, then weight and bias of each layer; outputs: one for each layer.
char* tessera_fused_dense(const Tensor* const* inputs, int64_t layers, Tensor** out) {
  return guarded([&] {
    variable_list present;
    for (int64_t place = 0; place < 1 + 2 * layers; ++place) {
      present.push_back(*inputs[place]);
    }
    const auto outputs = tessera::fused::DenseFunction::apply(at::TensorList(present));
    for (int64_t layer = 0; layer < layers; ++layer) {
      out[layer] = new Tensor(outputs[layer]);
    }
  });
}

// Inputs in the order of PolicyFunction::Saved.
char* tessera_fused_policy(const Tensor* const* inputs, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::PolicyFunction;
    variable_list present;
    for (int place = 0; place < Function::kInputs; ++place) {
      present.push_back(*inputs[place]);
    }
    *out = new Tensor(Function::apply(at::TensorList(present)));
  });
}

// The weights of both as their kernels want them, in int8 if the width allows it. Inputs as
// above, but for the tokens, which may be null.
char* tessera_fused_pack_dense(const Tensor* const* inputs, int64_t layers, bool int8,
                               Tensor** out) {
  return guarded([&] {
    const auto all = tessera::fused::present(inputs, 1 + 2 * layers);
    *out = new Tensor(tessera::fused::DenseFunction::pack(all, int8));
  });
}

char* tessera_fused_pack_policy(const Tensor* const* inputs, bool int8, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::PolicyFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::pack(all, int8));
  });
}

// The same functions without a gradient, by packed weights.
char* tessera_fused_infer_dense(const Tensor* const* inputs, const Tensor* weights,
                                int64_t layers, bool int8, Tensor** out) {
  return guarded([&] {
    const auto all = tessera::fused::present(inputs, 1 + 2 * layers);
    const auto outputs = tessera::fused::DenseFunction::infer(all, *weights, int8);
    for (int64_t layer = 0; layer < layers; ++layer) {
      out[layer] = new Tensor(outputs[layer]);
    }
  });
}

char* tessera_fused_infer_policy(const Tensor* const* inputs, const Tensor* weights,
                                 bool int8, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::PolicyFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::infer(all, *weights, int8));
  });
}
}
