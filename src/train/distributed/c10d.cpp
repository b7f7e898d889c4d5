// libtorch's c10d for Rust: the store through which the processes of a run meet, process groups
// (Gloo on the CPU, NCCL on CUDA), and pending operations.
#include "../../torch/shim.h"
#include "begin.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <new>

#ifdef __linux__
#include <dlfcn.h>
#endif

using c10::intrusive_ptr;
using c10d::Backend;
using c10d::Store;
using c10d::Work;
using tessera::guarded;
using std::chrono::milliseconds;

// libtorch contains both backends, but their headers include those of Gloo, NCCL and CUDA, which
// its wheels omit. These declarations are enough to create a backend; afterwards it is a
// c10d::Backend, whose header is available.
namespace c10d {

class ProcessGroupGloo : public Backend {
 public:
  struct Options : Backend::Options {
    // Uses the network interfaces named by GLOO_SOCKET_IFNAME.
    static intrusive_ptr<Options> create_default(milliseconds timeout);
  };
  ProcessGroupGloo(const intrusive_ptr<Store>& store, int rank, int size,
                   intrusive_ptr<Options> options);
};

}  // namespace c10d

namespace {

// Number of bytes to allocate for an object whose size only libtorch knows. The largest one, NCCL's
// group, takes 1112 bytes in libtorch 2.11.0. The object is freed by its own virtual destructor,
// which passes the object's size to operator delete instead of this number. glibc's allocator and
// mimalloc ignore that size, but an allocator that checks it must not be preloaded.
constexpr size_t kRoom = 16 << 10;

template <typename Base, typename Construct>
intrusive_ptr<Base> construct(Construct&& construct) {
  void* room = ::operator new(kRoom);
  try {
    construct(room);
  } catch (...) {
    ::operator delete(room);
    throw;
  }
  return intrusive_ptr<Base>::unsafe_steal_from_new(static_cast<Base*>(room));
}

#ifdef __linux__

intrusive_ptr<Backend> gloo(const intrusive_ptr<Store>& store, int rank,
                            int size, milliseconds timeout) {
  using Group = c10d::ProcessGroupGloo;
  auto options = Group::Options::create_default(timeout);
  return construct<Backend>(
      [&](void* room) { new (room) Group(store, rank, size, options); });
}

// A function in libtorch_cuda, which is loaded if it is installed but never linked, so that the
// same program also runs without it.
template <typename Function>
Function* of_cuda(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  TORCH_CHECK(found != nullptr, "libtorch's CUDA library is not loaded or has no NCCL");
  return reinterpret_cast<Function*>(found);
}

intrusive_ptr<Backend> nccl(const intrusive_ptr<Store>& store, int rank,
                            int size, int device, milliseconds timeout) {
  using Options = Backend::Options;
  // ProcessGroupNCCL::Options::Options(bool is_high_priority_stream)
  auto* make_options = of_cuda<void(void*, bool)>(
      "_ZN4c10d16ProcessGroupNCCL7OptionsC1Eb");
  // ProcessGroupNCCL::ProcessGroupNCCL(intrusive_ptr<Store>, int, int,
  //                                    intrusive_ptr<Options>)
  auto* make_group =
      of_cuda<void(void*, intrusive_ptr<Store>, int, int, intrusive_ptr<Options>)>(
          "_ZN4c10d16ProcessGroupNCCLC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail"
          "34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_IS8_EEEE");
  auto options =
      construct<Options>([&](void* room) { make_options(room, false); });
  options->timeout = timeout;
  auto group = construct<Backend>(
      [&](void* room) { make_group(room, store, rank, size, options); });
  const c10::Device place(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
  group->setBoundDeviceId(place);
  group->eagerConnectSingleDevice(place);
  return group;
}

#else

intrusive_ptr<Backend> gloo(const intrusive_ptr<Store>&, int, int, milliseconds) {
  TORCH_CHECK(false, "training in several processes needs Linux");
}

intrusive_ptr<Backend> nccl(const intrusive_ptr<Store>&, int, int, int,
                            milliseconds) {
  TORCH_CHECK(false, "training in several processes needs Linux");
}

#endif

}  // namespace

extern "C" {

// Meets the other processes at host:port, where one of them (or torchrun's agent) hosts the store.
// If `workers` is above zero, the host waits for that many processes.
char* tessera_store_open(const char* host, uint16_t port, bool hosts,
                         size_t workers, const char* prefix, int64_t timeout,
                         intrusive_ptr<Store>** out) {
  return guarded([&] {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = hosts;
    options.waitWorkers = workers > 0;
    if (workers > 0) {
      options.numWorkers = workers;
    }
    options.timeout = milliseconds(timeout);
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    *out = new intrusive_ptr<Store>(
        c10::make_intrusive<c10d::PrefixStore>(prefix, std::move(store)));
  });
}

void tessera_store_free(intrusive_ptr<Store>* store) { delete store; }

// Creates a group of all processes: NCCL on a CUDA device, Gloo if `device` is negative. `name`
// must be unique in the store.
char* tessera_group_create(const intrusive_ptr<Store>* store, const char* name,
                           int rank, int size, int device, int64_t timeout,
                           intrusive_ptr<Backend>** out) {
  return guarded([&] {
    intrusive_ptr<Store> own = c10::make_intrusive<c10d::PrefixStore>(name, *store);
    const milliseconds limit(timeout);
    *out = new intrusive_ptr<Backend>(device < 0
                                          ? gloo(own, rank, size, limit)
                                          : nccl(own, rank, size, device, limit));
  });
}

void tessera_group_free(intrusive_ptr<Backend>* group) { delete group; }

// Aborts pending operations without waiting for the other processes.
char* tessera_group_abort(const intrusive_ptr<Backend>* group) {
  return guarded([&] { (*group)->abort(); });
}

char* tessera_group_sum(const intrusive_ptr<Backend>* group,
                        const at::Tensor* tensor, intrusive_ptr<Work>** out) {
  return guarded([&] {
    *out = new intrusive_ptr<Work>(
        tessera::begin(*tensor, [&](auto& tensors) { return (*group)->allreduce(tensors); }));
  });
}

char* tessera_group_broadcast(const intrusive_ptr<Backend>* group,
                              const at::Tensor* tensor,
                              intrusive_ptr<Work>** out) {
  return guarded([&] {
    *out = new intrusive_ptr<Work>(
        tessera::begin(*tensor, [&](auto& tensors) { return (*group)->broadcast(tensors); }));
  });
}

// Waits until the operation is done on the CPU; on CUDA, makes the device's current stream wait for
// it.
char* tessera_work_wait(const intrusive_ptr<Work>* work) {
  return guarded([&] { (*work)->wait(); });
}

void tessera_work_free(intrusive_ptr<Work>* work) { delete work; }
}
