// Which kernels this processor runs, and what their callers share.
#include "autograd.h"
#include "../shim.h"

#include <ATen/cpu/Utils.h>
#include <ATen/ops/zeros.h>

#include <numeric>

namespace tessera::fused {

#ifdef TESSERA_FUSED
Kernels amx_bf16();
Kernels avx512_f32();
Kernels avx512_bf16();
Kernels avx2_f32();
#endif

namespace {

// The kernels of an instruction set for f32, and for bf16 where it has any.
struct InstructionSet {
  Kernels f32;
  std::optional<Kernels> bf16;
};

// Those of this processor, the fastest first.
std::vector<InstructionSet> look() {
  std::vector<InstructionSet> sets;
#ifdef TESSERA_FUSED
  const auto features = at::cpu::get_cpu_capabilities();
  const auto has = [&](const char* name) {
    const auto found = features.find(name);
    return found != features.end() && found->second.isBool() && found->second.toBool();
  };
  if (!has("avx2") || !has("fma3")) {
    return sets;
  }
  if (has("avx512_f") && has("avx512_bw") && has("avx512_vl") && has("avx512_dq") &&
      has("avx512_bf16")) {
    if (has("amx_bf16") && at::cpu::init_amx()) {
      sets.push_back({avx512_f32(), amx_bf16()});
    }
    sets.push_back({avx512_f32(), avx512_bf16()});
  }
  sets.push_back({avx2_f32(), std::nullopt});
#endif
  return sets;
}

// How many sets this thread passes over, so that tests reach the others.
thread_local size_t passed_over = 0;

}  // namespace

const Kernels* kernels(at::ScalarType type) {
  static const std::vector<InstructionSet> sets = look();
  if (passed_over >= sets.size()) {
    return nullptr;
  }
  const InstructionSet& set = sets[passed_over];
  switch (type) {
    case at::kFloat:
      return &set.f32;
    case at::kBFloat16:
      return set.bf16 ? &*set.bf16 : nullptr;
    default:
      return nullptr;
  }
}

int64_t workers_for(int64_t boards) {
  const int64_t chunks = (boards + kChunk - 1) / kChunk;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  return std::max<int64_t>(1, std::min(chunks, threads));
}

Sums::Sums(int64_t workers, std::vector<int64_t> sizes)
    : sizes_(std::move(sizes)),
      all_(at::zeros({workers, std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0})},
                     at::kFloat)) {}

std::vector<float*> Sums::of(int64_t worker) const {
  std::vector<float*> places;
  float* place = all_.mutable_data_ptr<float>() + worker * all_.size(1);
  for (const int64_t size : sizes_) {
    places.push_back(place);
    place += size;
  }
  return places;
}

std::vector<at::Tensor> Sums::joined() const {
  const at::Tensor total = all_.size(0) == 1 ? all_[0] : all_.sum(0);
  return total.split_with_sizes(sizes_);
}

}  // namespace tessera::fused

extern "C" {

// Whether there are kernels for the type of these numbers.
bool tessera_fused_available(const at::Tensor* like) {
  return tessera::fused::kernels(like->scalar_type()) != nullptr;
}

// Has this thread pass over so many of the processor's instruction sets, the
// fastest first.
void tessera_fused_pass_over(size_t sets) { tessera::fused::passed_over = sets; }

// Vectors f32 of one length, and constants, in the order of tessera::fused::Nadam.
char* tessera_fused_nadam(const at::Tensor* const* vectors, const double* constants) {
  return tessera::guarded([&] {
    const int64_t count = vectors[0]->numel();
    for (int i = 0; i < 4; ++i) {
      TORCH_CHECK(vectors[i]->is_contiguous() && vectors[i]->numel() == count &&
                      vectors[i]->scalar_type() == at::kFloat,
                  "not a vector of the optimizer's");
    }
    const auto constant = [&](int i) { return static_cast<float>(constants[i]); };
    const auto place = [&](int i) { return vectors[i]->mutable_data_ptr<float>(); };
    tessera::fused::kernels(at::kFloat)->nadam(
        {count, place(0), place(1), place(2), place(3), constant(0), constant(1),
         constant(2), constant(3), constant(4), constant(5), constant(6)});
  });
}
}
