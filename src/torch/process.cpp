// Process-wide settings that affect libtorch's speed, and information about libtorch and the
// processor.
#include "shim.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/cpu/Utils.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <climits>
#include <fcntl.h>
#include <unistd.h>
#endif

using tessera::guarded;

namespace {
std::atomic<bool> mkl_asked{false};

// The functions below run before sanitizers are initialised, so sanitized builds omit them.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// When it is loaded, the MKL inside libtorch queries the working folder, and aborts the process if
// the folder has been deleted. In that case, the process temporarily changes to another folder.
// Functions in the program's `.preinit_array` run before the initialisers of all libraries, and the
// program's constructors run after them.
int lost_folder = -1;

void leave_lost_folder() {
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof folder) == nullptr) {
    lost_folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (lost_folder >= 0 && chdir("/") != 0) {
      close(lost_folder);
      lost_folder = -1;
    }
  }
}

__attribute__((section(".preinit_array"), used)) void (*const before_libraries)() =
    leave_lost_folder;

__attribute__((constructor)) void return_to_lost_folder() {
  if (lost_folder >= 0) {
    // If the folder cannot be restored, relative paths would resolve elsewhere.
    if (fchdir(lost_folder) != 0) {
      std::perror("cannot return to the working folder");
      _exit(1);
    }
    close(lost_folder);
  }
}

#ifdef __GLIBC__
// At exit, libtorch tears down its operator tables. This takes a third of the time of a command
// that does nothing else, and other threads may still be computing. This handler avoids the
// teardown by ending the process first. Handlers that are registered later have already run by
// then.
void end_at_once(int status, void*) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

__attribute__((constructor)) void leave_libraries_be() { on_exit(end_at_once, nullptr); }
#endif

#endif
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
