// The embedding for training and play (see operator.h), and the computation of its input features,
// which have no gradient.
#include "operator.h"

using at::Tensor;
using tessera::guarded;

namespace tessera::fused {
namespace {

struct EmbeddingBlock {
  using Work = Embedding;

  enum Input { kFeatures, kWeight, kBias, kMultiply, kAdd };
  static constexpr int kOptional = 0, kKept = 1, kShape = kWeight;
  static constexpr auto kRun = &Kernels::embedding;
  static constexpr auto kPack = &Kernels::pack_embedding;

  static void check(variable_list& inputs, const Settings&) {
    TORCH_CHECK(inputs[kWeight].dim() == 2, "weights of no embedding");
    const int64_t width = inputs[kWeight].size(0), features = inputs[kWeight].size(1);
    TORCH_CHECK(whole({width, features}), "widths that have no kernels");
    const at::ScalarType type = inputs[kFeatures].scalar_type();
    expect(inputs[kFeatures], type, {inputs[kFeatures].size(0), kSquares, features});
    expect(inputs[kWeight], type, {width, features});
    expect(inputs[kBias], type, {width});
    expect(inputs[kMultiply], type, {kSquares, width});
    expect(inputs[kAdd], type, {kSquares, width});
  }

  static Embedding work(const variable_list& inputs, const Settings&) {
    const int64_t width = inputs[kWeight].size(0), features = inputs[kWeight].size(1);
    return {inputs[kFeatures].numel() / (kSquares * features),
            width,
            features,
            data(inputs[kFeatures]),
            data(inputs[kWeight]),
            data(inputs[kBias]),
            data(inputs[kMultiply]),
            data(inputs[kAdd])};
  }

  static variable_list kept(const Embedding& work, const Tensor& features) {
    return {like(features, {work.boards * kSquares, work.width})};
  }

  static void attach(Embedding& work, const Tensor* kept) {
    work.projected = kept->mutable_data_ptr();
  }

  static variable_list outputs(Embedding& work, const Tensor& features) {
    Tensor y = like(features, {work.boards, kSquares, work.width});
    work.y = y.mutable_data_ptr();
    return {y};
  }

  static at::ScalarType type_of_outputs(const Tensor& features) {
    return features.scalar_type();
  }

  // The embedding has no int8 layers.
  static std::vector<int64_t> widths(const Embedding&) { return {}; }

  static std::vector<int64_t> sums(const Embedding& work) {
    const int64_t width = work.width;
    return {width * work.inputs, width, kSquares * width, kSquares * width};
  }

  static void run_backward(const Kernels& by, const Embedding& work,
                           const variable_list& outputs, const Tensor&,
                           const std::vector<float*>& to, int64_t first, int64_t last) {
    by.embedding_backward(work, {data(outputs[0])}, {to[0], to[1], to[2], to[3]}, first,
                          last);
  }

  // Features have no gradient.
  static variable_list gradients(const Embedding&, const Tensor& of_x,
                                 const variable_list& sums, const variable_list& saved) {
    variable_list all = {Tensor()};
    for (size_t sum = 0; sum < sums.size(); ++sum) {
      all.push_back(sums[sum].to(of_x.scalar_type()).view(saved[kWeight + sum].sizes()));
    }
    return all;
  }
};

}  // namespace
}  // namespace tessera::fused

extern "C" {

// Computes features [B, 64, width] in the dtype of `like`, from rows i64 [B, 110 or more] and
// attack features u8 [B, 64, n] or null.
char* tessera_fused_inputs(const Tensor* rows, const Tensor* attacks, int64_t width,
                           const Tensor* like, Tensor** out) {
  return guarded([&] {
    using namespace tessera::fused;
    const Tensor words = rows->contiguous();
    const Tensor counts = attacks == nullptr ? Tensor() : attacks->contiguous();
    TORCH_CHECK(words.is_cpu() && words.scalar_type() == at::kLong && words.dim() == 2,
                "rows of ", words.sizes());
    const int64_t boards = words.size(0);
    const int64_t attackers = counts.defined() && counts.dim() == 3 ? counts.size(2) : 0;
    if (counts.defined()) {
      expect(counts, at::kByte, {boards, kSquares, attackers});
    }
    TORCH_CHECK(words.size(1) >= kBoards + kScalars &&
                    kBoards + kScalars + 2 + attackers <= width,
                "rows too short, or features too few");
    Tensor features = at::empty({boards, kSquares, width}, like->scalar_type());
    const Inputs inputs{words.size(1),
                        width,
                        static_cast<const uint64_t*>(words.const_data_ptr()),
                        static_cast<const uint8_t*>(data(counts)),
                        attackers,
                        features.mutable_data_ptr()};
    on_boards(kernels_for(like->scalar_type()), boards,
              [&](const auto& run, auto first, auto last) { run.inputs(inputs, first, last); });
    *out = new Tensor(features);
  });
}

char* tessera_fused_embedding(const tessera::fused::Call* call, at::Tensor** out) {
  return tessera::fused::compute<tessera::fused::EmbeddingBlock>(*call, out);
}
}
