// Traces of what libtorch does, by its profiler.
#include "shim.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>

using tessera::guarded;
using torch::profiler::impl::ActivityType;

namespace {
// Of all threads: a GPU is fed by others than the one that asks.
const torch::profiler::impl::ExperimentalConfig all_threads(
    {}, false, false, {}, false, false, false, /*profile_all_threads=*/true);
}  // namespace

extern "C" {

char* tessera_profile_begin() {
  return guarded([] {
    namespace profiler = torch::autograd::profiler;
    const profiler::ProfilerConfig config(
        profiler::ProfilerState::KINETO, false, false, false, false, false, all_threads);
    const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
  });
}

char* tessera_profile_end(const char* path) {
  return guarded([&] { torch::autograd::profiler::disableProfiler()->save(path); });
}

}  // extern "C"
