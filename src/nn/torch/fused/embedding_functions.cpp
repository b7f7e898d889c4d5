// The embedding, for training and for playing, see encoder_functions.cpp, and the
// features that it reads, which have no gradient.
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

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  // What is saved for backward: the inputs, then what forward computed.
  enum Saved { kFeatures, kWeight, kBias, kMultiply, kAdd, kInputs, kProjected = kInputs };

  // Whether the inputs, which are contiguous, fit together.
  static void check(const variable_list& saved) {
    TORCH_CHECK(saved[kWeight].dim() == 2, "weights of no embedding");
    const int64_t width = saved[kWeight].size(0), inputs = saved[kWeight].size(1);
    TORCH_CHECK(whole({width, inputs}), "widths that have no kernels");
    const at::ScalarType type = saved[kFeatures].scalar_type();
    expect(saved[kFeatures], type, {saved[kFeatures].size(0), kSquares, inputs});
    expect(saved[kWeight], type, {width, inputs});
    expect(saved[kBias], type, {width});
    expect(saved[kMultiply], type, {kSquares, width});
    expect(saved[kAdd], type, {kSquares, width});
  }

  static Embedding layer(const variable_list& saved) {
    const int64_t width = saved[kWeight].size(0), inputs = saved[kWeight].size(1);
    return {saved[kFeatures].numel() / (kSquares * inputs),
            width,
            inputs,
            data(saved[kFeatures]),
            data(saved[kWeight]),
            data(saved[kBias]),
            data(saved[kMultiply]),
            data(saved[kAdd]),
            nullptr,
            saved.size() > kInputs ? saved[kProjected].mutable_data_ptr() : nullptr};
  }

  static Tensor forward(AutogradContext* context, at::TensorList inputs) {
    const at::AutoDispatchBelowAutograd below;
    variable_list saved = contiguous(inputs);
    check(saved);
    const Tensor features = saved[kFeatures];
    const int64_t boards = features.size(0), width = saved[kWeight].size(0);
    saved.push_back(like(features, {boards * kSquares, width}));
    Embedding embedding = layer(saved);
    Tensor y = like(features, {boards, kSquares, width});
    embedding.y = y.mutable_data_ptr();
    on_boards(features.scalar_type(), boards, [&](const auto& run, auto first, auto last) {
      run.embedding(embedding, first, last);
    });
    context->save_for_backward(saved);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::ScalarType type = saved[kFeatures].scalar_type();
    const Tensor gradient = outputs[0].to(type).contiguous();
    const Embedding embedding = layer(saved);
    const int64_t width = embedding.width, workers = workers_for(embedding.boards);
    const Sums sums(workers, {width * embedding.inputs, width, kSquares * width,
                              kSquares * width});
    const Kernels& run = kernels_for(type);
    share(embedding.boards, workers, [&](int64_t worker, int64_t first, int64_t last) {
      const auto to = sums.of(worker);
      run.embedding_backward(embedding, {data(gradient)}, {to[0], to[1], to[2], to[3]}, first,
                             last);
    });
    const auto of = sums.joined();
    variable_list result = {Tensor()};
    for (int place = kWeight; place <= kAdd; ++place) {
      result.push_back(of[place - kWeight].to(type).view(saved[place].sizes()));
    }
    return result;
  }

  // Packs the weights among inputs, the first of which is not looked at.
  static Tensor pack(variable_list inputs) {
    TORCH_CHECK(inputs[kWeight].dim() == 2, "weights of no embedding");
    inputs[kFeatures] = like(inputs[kWeight], {0, kSquares, inputs[kWeight].size(1)});
    check(inputs);
    return pack_by(kernels_for(inputs[kFeatures].scalar_type()).pack_embedding,
                   layer(inputs));
  }

  static Tensor infer(const variable_list& inputs, const Tensor& weights) {
    check(inputs);
    const Tensor& features = inputs[kFeatures];
    Embedding embedding = layer(inputs);
    Tensor y = like(features, {embedding.boards, kSquares, embedding.width});
    embedding.y = y.mutable_data_ptr();
    const Kernels& run = kernels_for(features.scalar_type());
    embedding.packed = packed(run.pack_embedding, embedding, weights);
    on_boards(run, embedding.boards, [&](const auto& by, auto first, auto last) {
      by.embedding(embedding, first, last);
    });
    return y;
  }
};

}  // namespace
}  // namespace tessera::fused

extern "C" {

// The features of rows i64 [B, 110 or more] and of attackers u8 [B, 64, n], null
// for none, as [B, 64, width] in the type of `like`.
char* tessera_fused_inputs(const Tensor* rows, const Tensor* attacks, int64_t width,
                           const Tensor* like, Tensor** out) {
  return guarded([&] {
    using namespace tessera::fused;
    const Tensor words = rows->contiguous();
    const Tensor counts = attacks == nullptr ? Tensor() : attacks->contiguous();
    TORCH_CHECK(words.is_cpu() && words.scalar_type() == at::kLong && words.dim() == 2,
                "rows of ", words.sizes());
    const int64_t boards = words.size(0);
    const int64_t more = counts.defined() && counts.dim() == 3 ? counts.size(2) : 0;
    if (counts.defined()) {
      expect(counts, at::kByte, {boards, kSquares, more});
    }
    TORCH_CHECK(words.size(1) >= kBoards + kScalars && kBoards + kScalars + 2 + more <= width,
                "rows too short, or features too few");
    Tensor features = at::empty({boards, kSquares, width}, like->scalar_type());
    const Inputs inputs{words.size(1),
                        width,
                        static_cast<const uint64_t*>(words.const_data_ptr()),
                        static_cast<const uint8_t*>(data(counts)),
                        more,
                        features.mutable_data_ptr()};
    on_boards(like->scalar_type(), boards, [&](const auto& run, auto first, auto last) {
      run.inputs(inputs, first, last);
    });
    *out = new Tensor(features);
  });
}

// Inputs in the order of EmbeddingFunction::Saved.
char* tessera_fused_embedding(const Tensor* const* inputs, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::EmbeddingFunction;
    variable_list present;
    for (int place = 0; place < Function::kInputs; ++place) {
      present.push_back(*inputs[place]);
    }
    *out = new Tensor(Function::apply(at::TensorList(present)));
  });
}

// The weights as the kernel wants them. Inputs as above, but for the features, which may be
// null.
char* tessera_fused_pack_embedding(const Tensor* const* inputs, Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::EmbeddingFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::pack(all));
  });
}

// The same function without a gradient, by packed weights.
char* tessera_fused_infer_embedding(const Tensor* const* inputs, const Tensor* weights,
                                    Tensor** out) {
  return guarded([&] {
    using Function = tessera::fused::EmbeddingFunction;
    const auto all = tessera::fused::present(inputs, Function::kInputs);
    *out = new Tensor(Function::infer(all, *weights));
  });
}
}
