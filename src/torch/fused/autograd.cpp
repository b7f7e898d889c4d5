// Selects this processor's kernels.
#include "autograd.h"
#include "packed.h"
#include "../shim.h"

#include <ATen/cpu/Utils.h>
#include <ATen/Version.h>
#include <ATen/ops/zeros.h>

#include <numeric>

namespace tessera::fused {

#ifdef TESSERA_FUSED
Kernels amx_bf16();
Kernels avx512_bf16();
Kernels avx512_bf16_int8();
Kernels avx512_vnni_f32();
Kernels avx512_vnni_int8();
Kernels avx2_f32();
Kernels avx2_int8();
#endif

namespace {

// The kernels of an instruction set: for f32, for bf16 if the set has it, and for dense layers in
// int8. With int8, the other layers are in bf16 if available.
struct InstructionSet {
  Kernels f32;
  std::optional<Kernels> bf16;
  Kernels int8;
  // Whether the int8 kernels are the fastest.
  bool prefers_int8 = true;

  at::ScalarType int8_type() const { return bf16 ? at::kBFloat16 : at::kFloat; }
};

// The kernels of this processor, fastest first.
std::vector<InstructionSet> look() {
  std::vector<InstructionSet> sets;
#ifdef TESSERA_FUSED
  const auto features = at::cpu::get_cpu_capabilities();
  const auto has = [&](const char* name) {
    const auto found = features.find(name);
    return found != features.end() && found->second.isBool() && found->second.toBool();
  };
  // ATEN_CPU_CAPABILITY limits our kernels in the same way as libtorch's.
  const std::string level = at::get_cpu_capability();
  if (level.find("AVX") != 0 || !has("avx2") || !has("fma3")) {
    return sets;
  }
  if (level == "AVX512" && has("avx512_f") && has("avx512_bw") && has("avx512_vl") &&
      has("avx512_dq") && has("avx512_vnni")) {
    if (has("avx512_bf16")) {
      if (has("amx_bf16") && at::cpu::init_amx()) {
        sets.push_back({avx512_vnni_f32(), amx_bf16(), avx512_bf16_int8(), false});
      }
      sets.push_back({avx512_vnni_f32(), avx512_bf16(), avx512_bf16_int8()});
    }
    sets.push_back({avx512_vnni_f32(), std::nullopt, avx512_vnni_int8()});
  }
  sets.push_back({avx2_f32(), std::nullopt, avx2_int8()});
#endif
  return sets;
}

// The number of kernel sets that this thread skips. Tests use it to reach the slower sets.
thread_local size_t passed_over = 0;

// The fastest kernels of this processor that are not skipped, or null if there are none.
const InstructionSet* instruction_set() {
  static const std::vector<InstructionSet> sets = look();
  return passed_over < sets.size() ? &sets[passed_over] : nullptr;
}

}  // namespace

const Kernels* kernels(at::ScalarType type, bool int8) {
  const InstructionSet* set = instruction_set();
  if (set == nullptr) {
    return nullptr;
  }
  if (int8) {
    return type == set->int8_type() ? &set->int8 : nullptr;
  }
  switch (type) {
    case at::kFloat:
      return &set->f32;
    case at::kBFloat16:
      return set->bf16 ? &*set->bf16 : nullptr;
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

// Returns whether kernels exist for this dtype.
bool tessera_fused_available(const at::Tensor* like) {
  return tessera::fused::kernels(like->scalar_type()) != nullptr;
}

// Returns whether dense layers can multiply in int8. Also reports whether int8 is the fastest
// format on this processor, and whether the other layers are then in bf16 instead of f32.
bool tessera_fused_int8(bool* fastest, bool* bf16) {
  const auto* set = tessera::fused::instruction_set();
  if (set == nullptr) {
    return false;
  }
  *fastest = set->prefers_int8;
  *bf16 = set->bf16.has_value();
  return true;
}

// Returns whether layers with this number of inputs can multiply in int8.
bool tessera_fused_fits_int8(int64_t inputs) { return tessera::fused::fit_int8({inputs}); }

// Makes this thread skip a number of the processor's instruction sets, fastest first.
void tessera_fused_pass_over(size_t sets) { tessera::fused::passed_over = sets; }

// Runs a NAdam step. All vectors must be f32 and of equal length. The vectors and the constants are
// in the order of the members of tessera::fused::Nadam.
char* tessera_fused_nadam(const at::Tensor* const* vectors, const double* constants) {
  return tessera::guarded([&] {
    const int64_t count = vectors[0]->numel();
    for (int i = 0; i < 4; ++i) {
      TORCH_CHECK(vectors[i]->is_cpu() && vectors[i]->is_contiguous() &&
                      vectors[i]->numel() == count && vectors[i]->scalar_type() == at::kFloat,
                  "not a vector of the optimizer's");
    }
    const auto constant = [&](int i) { return static_cast<float>(constants[i]); };
    const auto place = [&](int i) { return vectors[i]->mutable_data_ptr<float>(); };
    tessera::fused::kernels_for(at::kFloat).nadam(
        {count, place(0), place(1), place(2), place(3), constant(0), constant(1),
         constant(2), constant(3), constant(4), constant(5), constant(6)});
  });
}
}
