// A block of a network as one operator on the CPU: an autograd function for training, and a
// function on packed weights without gradients for play.
//
// A block is described by a struct with the members below. Inputs are in the same order as in Rust:
// tokens, weights, then optional inputs.
//
//   Work               the work description that the kernels read
//   kOptional, kKept   inputs that may be absent, tensors that forward keeps for backward
//   kShape             the index of a weight [outputs, inputs of tokens]
//   kRun, kPack        the forward kernels, and the kernel that packs weights
//   check              checks that the inputs fit together; it may change their dtypes
//   work               the inputs in the form that kernels take
//   kept, attach       new tensors that backward needs, and their places in the work
//   outputs            new tensors for the block's outputs, with their places
//   widths             inputs of layers that multiply in int8
//   sums, run_backward sizes of the parameters' gradients, and the backward kernels
//   gradients          the gradients of all inputs, from those of tokens and the joined sums
#pragma once

#include "../shim.h"
#include "autograd.h"
#include "expected.h"
#include "packed.h"

namespace tessera::fused {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The settings of a block other than tensors. The layout matches shim.rs.
struct Settings {
  int64_t heads;
  double gain, epsilon, epsilon_of_bias;
  bool int8;
};

// A call of a block. The layout matches shim.rs.
struct Call {
  enum Way : int64_t { kLearn, kPack, kInfer } way;
  // Pointers to tensors, each null if the tensor is absent.
  const Tensor* const* inputs;
  int64_t count;
  // Packed weights for inference.
  const Tensor* packed;
  // Number of outputs for which the caller provides space.
  int64_t outputs;
  Settings settings;
};

template <typename Block>
struct Operator : torch::autograd::Function<Operator<Block>> {
  using Work = typename Block::Work;

  static variable_list checked(const variable_list& inputs, const Settings& settings) {
    variable_list all = contiguous(inputs);
    Block::check(all, settings);
    return all;
  }

  static variable_list run(const Kernels& by, Work& work, const Tensor& x) {
    const variable_list outputs = Block::outputs(work, x);
    on_boards(by, work.boards, [&](const Kernels& with, int64_t first, int64_t last) {
      (with.*Block::kRun)(work, first, last);
    });
    return outputs;
  }

  static variable_list forward(AutogradContext* context, at::TensorList present,
                               const std::optional<Tensor>& first,
                               const std::optional<Tensor>& second,
                               const std::optional<Tensor>& third, Settings settings) {
    const at::AutoDispatchBelowAutograd below;
    variable_list inputs(present.begin(), present.end());
    for (const auto* optional : {&first, &second, &third}) {
      inputs.push_back(optional->value_or(Tensor()));
    }
    inputs.resize(present.size() + Block::kOptional);
    variable_list saved = checked(inputs, settings);
    const Tensor x = saved[0];
    Work work = Block::work(saved, settings);
    const variable_list kept = Block::kept(work, x);
    Block::attach(work, kept.data());
    saved.insert(saved.end(), kept.begin(), kept.end());
    const variable_list outputs = run(kernels_for(x.scalar_type()), work, x);
    context->save_for_backward(saved);
    context->saved_data["numbers"] =
        std::vector<double>{settings.gain, settings.epsilon, settings.epsilon_of_bias};
    context->saved_data["heads"] = settings.heads;
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const variable_list saved = context->get_saved_variables();
    const size_t inputs = saved.size() - Block::kKept;
    const auto numbers = context->saved_data["numbers"].toDoubleVector();
    const Settings settings{context->saved_data["heads"].toInt(), numbers[0], numbers[1],
                            numbers[2], false};
    const Tensor& x = saved[0];
    Work work = Block::work(variable_list(saved.begin(), saved.begin() + inputs), settings);
    Block::attach(work, &saved[inputs]);
    for (Tensor& gradient : outputs) {
      gradient = gradient.to(Block::type_of_outputs(x)).contiguous();
    }
    const Tensor of_x = like(x, x.sizes());
    const int64_t workers = workers_for(work.boards);
    const Sums sums(workers, Block::sums(work));
    const Kernels& by = kernels_for(x.scalar_type());
    share(work.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      Block::run_backward(by, work, outputs, of_x, sums.of(worker), first, last);
    });
    variable_list gradients = Block::gradients(work, of_x, sums.joined(), saved);
    // Settings and absent inputs have no gradient, but autograd expects an entry for each.
    gradients.resize(inputs - Block::kOptional + 4);
    return gradients;
  }

  // Packs the weights. The input for tokens is absent.
  static Tensor pack(variable_list inputs, const Settings& settings) {
    const Tensor& weight = inputs[Block::kShape];
    TORCH_CHECK(weight.dim() == 2, "weights of no block");
    inputs[0] = like(weight, {0, kSquares, weight.size(1)});
    inputs = checked(inputs, settings);
    const Work work = Block::work(inputs, settings);
    const Kernels& by =
        kernels_for(inputs[0].scalar_type(), settings.int8, Block::widths(work));
    return pack_by(by.*Block::kPack, work);
  }

  static variable_list infer(const variable_list& inputs, const Tensor& weights,
                             const Settings& settings) {
    const variable_list all = checked(inputs, settings);
    Work work = Block::work(all, settings);
    const Kernels& by =
        kernels_for(all[0].scalar_type(), settings.int8, Block::widths(work));
    work.packed = packed(by.*Block::kPack, work, weights);
    return run(by, work, all[0]);
  }
};

// Computes a block in the requested way and writes its outputs to `out`.
template <typename Block>
char* compute(const Call& call, Tensor** out) {
  return guarded([&] {
    using Function = Operator<Block>;
    const variable_list inputs = all_of(call.inputs, call.count);
    variable_list made;
    if (call.way == Call::kPack) {
      made = {Function::pack(inputs, call.settings)};
    } else if (call.way == Call::kInfer) {
      made = Function::infer(inputs, *call.packed, call.settings);
    } else {
      const size_t present = inputs.size() - Block::kOptional;
      const auto optional = [&](size_t place) {
        const bool is_there = present + place < inputs.size();
        return is_there && inputs[present + place].defined()
                   ? std::optional(inputs[present + place])
                   : std::nullopt;
      };
      made = Function::apply(at::TensorList(inputs.data(), present), optional(0),
                             optional(1), optional(2), call.settings);
    }
    TORCH_CHECK(static_cast<int64_t>(made.size()) == call.outputs, "a block of other outputs");
    for (size_t place = 0; place < made.size(); ++place) {
      out[place] = new Tensor(made[place]);
    }
  });
}

}  // namespace tessera::fused
