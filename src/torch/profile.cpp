// Traces libtorch's activity with its profiler.
#include "shim.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>

using tessera::guarded;
using torch::profiler::impl::ActivityType;

namespace {
// All threads are traced, because a GPU receives its work from threads other than the caller's.
const torch::profiler::impl::ExperimentalConfig all_threads(
    {}, false, false, {}, false, false, false, /*profile_all_threads=*/true);
}  // namespace

extern "C" {

char* tessera_profile_begin() {
  return guarded([] {
    namespace profiler = torch::autograd::profiler;
    const profiler::ProfilerConfig config(
        profiler::ProfilerState::KINETO, false, false, false, false, false, all_threads);
    std::set<ActivityType> activities{ActivityType::CPU};
    if (at::hasCUDA()) {
      activities.insert(ActivityType::CUDA);
    }
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
  });
}

char* tessera_profile_end(const char* path) {
  return guarded([&] { torch::autograd::profiler::disableProfiler()->save(path); });
}

}  // extern "C"
