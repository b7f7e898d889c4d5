// libtorch's CUDA streams. This code also compiles without CUDA.
#include "../shim.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace tessera::gpu {

using c10::impl::VirtualGuardImpl;

static c10::Device cuda(int device) {
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(device)};
}

extern "C" {

// Returns the calling thread's stream on a device, for the CUDA driver.
char* tessera_gpu_stream(int device, void** stream) {
  return guarded([&] {
    const VirtualGuardImpl guard(c10::kCUDA);
    *stream = guard.getStreamNativeHandle(guard.getStream(cuda(device)));
  });
}

// Assigns one of a few streams of a device to the calling thread, so that one caller's copies
// overlap with another's kernels. (libtorch keeps memory for each stream, so there are only a few.)
char* tessera_gpu_assign_stream(int device) {
  return guarded([&] {
    thread_local std::set<int> assigned;
    if (!assigned.insert(device).second) {
      return;
    }
    constexpr size_t kStreams = 4;
    static std::mutex lock;
    static std::map<int, std::vector<c10::Stream>> pools;
    static std::map<int, size_t> threads;
    const c10::Device place = cuda(device);
    const VirtualGuardImpl guard(c10::kCUDA);
    // The weights may still be on their way, on another stream.
    guard.synchronizeDevice(place.index());
    const std::lock_guard<std::mutex> locked(lock);
    std::vector<c10::Stream>& pool = pools[device];
    const size_t number = threads[device]++ % kStreams;
    while (pool.size() <= number) {
      pool.push_back(guard.getStreamFromGlobalPool(place, false));
    }
    guard.exchangeStream(pool[number]);
  });
}

}  // extern "C"
}  // namespace tessera::gpu
