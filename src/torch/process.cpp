// Process-wide settings that affect libtorch's speed, and information about libtorch and the
// processor.
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/cpu/Utils.h>

#include <atomic>

#ifdef __GLIBC__
#include <malloc.h>
#endif

using tessera::guarded;

namespace {
std::atomic<bool> mkl_asked{false};
}  // namespace

extern "C" {

#if defined(__x86_64__) && defined(__linux__)
// The MKL inside libtorch calls this undocumented function to decide whether to use its fast
// kernels. If the program does not export the function, MKL uses its own version, which returns
// false on non-Intel processors.
__attribute__((visibility("default"))) int mkl_serv_intel_cpu_true() {
  mkl_asked.store(true, std::memory_order_relaxed);
  return 1;
}
#endif

// Returns whether MKL has called `mkl_serv_intel_cpu_true`.
bool tessera_mkl_asked() { return mkl_asked.load(std::memory_order_relaxed); }

// Keeps freed memory in the process. Each evaluation allocates tens of megabytes for activations.
// By default, glibc would return this memory to the system and request it again page by page.
bool tessera_keep_memory() {
#ifdef __GLIBC__
  return mallopt(M_MMAP_THRESHOLD, 1 << 30) == 1 &&
         mallopt(M_TRIM_THRESHOLD, 0x7fffffff) == 1 &&
         mallopt(M_TOP_PAD, 256 << 20) == 1;
#else
  return false;
#endif
}

// Returns libtorch's build description, one setting per line.
char* tessera_torch_configuration(char** out) {
  return guarded([&] { *out = tessera::text(at::show_config()); });
}

// Returns the processor's name, and the instruction sets for which libtorch selects its kernels.
char* tessera_cpu_name(char** out) {
  return guarded([&] {
    const auto capabilities = at::cpu::get_cpu_capabilities();
    const auto name = capabilities.find("cpu_name");
    const bool is_known = name != capabilities.end() && name->second.isString();
    *out = tessera::text((is_known ? name->second.toStringRef() + ", " : "") +
                         at::get_cpu_capability());
  });
}

// Returns the available processor features, one per line.
char* tessera_cpu_features(char** out) {
  return guarded([&] {
    std::string features;
    for (const auto& [name, value] : at::cpu::get_cpu_capabilities()) {
      if (value.isBool() && value.toBool()) {
        features += name + "\n";
      }
    }
    *out = tessera::text(features);
  });
}
}
