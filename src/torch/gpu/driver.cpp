// Compiles and launches the encoder kernel through NVIDIA's libraries, which are loaded at run time,
// so that the same program also runs without them. The declarations follow the documentation of
// NVRTC and of the CUDA driver.
#include "../shim.h"
#include "emulation.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#ifdef __linux__
#include <dlfcn.h>
#endif

using c10::impl::VirtualGuardImpl;
using tessera::guarded;
using tessera::text;

namespace tessera::gpu {
namespace {

#ifdef __linux__

constexpr const char* kNvrtc = "libnvrtc.so.13";
constexpr const char* kBuiltins = "libnvrtc-builtins.so.13.0";

std::string reason() {
  const char* message = dlerror();
  return message == nullptr ? "unknown reason" : message;
}

// A library, which stays loaded.
class Library {
 public:
  explicit Library(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW)) {
    TORCH_CHECK(handle_ != nullptr, reason());
  }

  template <typename Function>
  Function* find(const char* name) const {
    void* symbol = dlsym(handle_, name);
    TORCH_CHECK(symbol != nullptr, reason());
    return reinterpret_cast<Function*>(symbol);
  }

 private:
  void* handle_;
};

void load_if_there(const std::string& name) { dlopen(name.c_str(), RTLD_NOW); }

// NVIDIA's wheels put NVRTC in the folder of the CUDA runtime, which libtorch has loaded.
std::string beside_runtime() {
  void* runtime = dlsym(RTLD_DEFAULT, "cudaGetDevice");
  Dl_info info{};
  if (runtime == nullptr || dladdr(runtime, &info) == 0 || info.dli_fname == nullptr) {
    return kNvrtc;
  }
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + kNvrtc;
}

#else

class Library {
 public:
  explicit Library(const std::string&) { TORCH_CHECK(false, "CUDA kernels need Linux"); }

  template <typename Function>
  Function* find(const char*) const {
    return nullptr;
  }
};

constexpr const char* kBuiltins = "";

void load_if_there(const std::string&) {}

std::string beside_runtime() { return {}; }

#endif

// Compiles a CUDA source to machine code for a device.
at::Tensor compile(const std::string& path, const char* source, const char* const* options,
                   int count) {
  struct Program;
  using Text = int(Program*, char*);
  using Length = int(Program*, size_t*);
  if (const auto folder = path.rfind('/'); folder != std::string::npos) {
    // NVRTC would search for this library only in the system's folders.
    load_if_there(path.substr(0, folder + 1) + kBuiltins);
  }
  const Library nvrtc(path);
  Program* program = nullptr;
  int code = nvrtc.find<int(Program**, const char*, const char*, int, const char* const*,
                            const char* const*)>("nvrtcCreateProgram")(
      &program, source, "encoder.cu", 0, nullptr, nullptr);
  TORCH_CHECK(code == 0, "NVRTC fails with error ", code);
  const auto destroy = nvrtc.find<int(Program**)>("nvrtcDestroyProgram");
  const auto free = [&](Program* it) { destroy(&it); };
  const std::unique_ptr<Program, decltype(free)> owner(program, free);
  const auto read = [&](const char* length_of, const char* text_of) {
    size_t length = 0;
    TORCH_CHECK(nvrtc.find<Length>(length_of)(program, &length) == 0, length_of, " fails");
    at::Tensor found = at::empty({static_cast<int64_t>(length)}, c10::kByte);
    char* bytes = static_cast<char*>(found.mutable_data_ptr());
    TORCH_CHECK(nvrtc.find<Text>(text_of)(program, bytes) == 0, text_of, " fails");
    return found;
  };
  code = nvrtc.find<int(Program*, int, const char* const*)>("nvrtcCompileProgram")(program, count,
                                                                                  options);
  if (code != 0) {
    // The log ends with a zero byte.
    const at::Tensor log = read("nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
    TORCH_CHECK(false, static_cast<const char*>(log.const_data_ptr()));
  }
  return read("nvrtcGetCUBINSize", "nvrtcGetCUBIN");
}

// The CUDA driver.
class Driver {
 public:
  static const Driver& get() {
    static const Driver driver;
    return driver;
  }

  void check(int code) const {
    const char* name = nullptr;
    TORCH_CHECK(code == 0, "CUDA: ", error_name_(code, &name) == 0 ? name : "unknown error");
  }

  int attribute(int attribute, int ordinal) const {
    int device = 0;
    check(device_(&device, ordinal));
    int value = 0;
    check(attribute_(&value, attribute, device));
    return value;
  }

  // Returns a device's name and the latest CUDA version that the driver supports.
  std::string name(int ordinal) const {
    int device = 0;
    check(device_(&device, ordinal));
    std::vector<char> name(256, '\0');
    check(name_(name.data(), static_cast<int>(name.size()) - 1, device));
    int version = 0;
    check(version_(&version));
    return std::string(name.data()) + ", CUDA " + std::to_string(version);
  }

  template <typename... Types, typename... Arguments>
  void call(int (*function)(Types...), Arguments... arguments) const {
    check(function(arguments...));
  }

 private:
  Driver()
      : library_("libcuda.so.1"),
        error_name_(library_.find<int(int, const char**)>("cuGetErrorName")),
        device_(library_.find<int(int*, int)>("cuDeviceGet")),
        attribute_(library_.find<int(int*, int, int)>("cuDeviceGetAttribute")),
        name_(library_.find<int(char*, int, int)>("cuDeviceGetName")),
        version_(library_.find<int(int*)>("cuDriverGetVersion")),
        load(library_.find<int(void**, const void*)>("cuModuleLoadData")),
        unload(library_.find<int(void*)>("cuModuleUnload")),
        function(library_.find<int(void**, void*, const char*)>("cuModuleGetFunction")),
        configure(library_.find<int(void*, int, int)>("cuFuncSetAttribute")),
        launch(library_.find<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, void*, void**, void**)>("cuLaunchKernel")) {
    check(library_.find<int(unsigned)>("cuInit")(0));
  }

  Library library_;
  int (*error_name_)(int, const char**);
  int (*device_)(int*, int);
  int (*attribute_)(int*, int, int);
  int (*name_)(char*, int, int);
  int (*version_)(int*);

 public:
  int (*load)(void**, const void*);
  int (*unload)(void*);
  int (*function)(void**, void*, const char*);
  int (*configure)(void*, int, int);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
};

// Values of the driver's enumerations.
constexpr int kMajorCapability = 75;
constexpr int kMinorCapability = 76;
constexpr int kSharedMemoryOfProcessor = 81;
constexpr int kSharedMemoryOfBlock = 97;
constexpr int kDynamicSharedMemory = 8;
constexpr int kSharedMemoryCarveout = 9;

constexpr unsigned kThreads = 256;

// A kernel on a device.
class Kernel {
 public:
  Kernel(const void* code, const Sizes& sizes, c10::Device device)
      : device_(device), shared_(shared_memory(sizes)) {
    const Driver& driver = Driver::get();
    const c10::DeviceGuard guard(device_);
    make_context_current();
    driver.call(driver.load, &module_, code);
    driver.call(driver.function, &function_, module_, "encode");
    driver.call(driver.configure, function_, kDynamicSharedMemory, shared_);
    // All that the L1 cache shares with it becomes shared memory, so that two blocks fit.
    driver.call(driver.configure, function_, kSharedMemoryCarveout, 100);
  }

  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  ~Kernel() {
    try {
      const c10::DeviceGuard guard(device_);
      make_context_current();
      Driver::get().unload(module_);
    } catch (const std::exception&) {
      // After an error of the device, nothing can be unloaded.
    }
  }

  void run(const at::Tensor& words, const at::Tensor& matrices, const at::Tensor& vectors,
           at::Tensor& out) const {
    if (words.size(0) == 0) {
      return;
    }
    const Driver& driver = Driver::get();
    const c10::DeviceGuard guard(device_);
    const VirtualGuardImpl streams(c10::kCUDA);
    void* stream = streams.getStreamNativeHandle(streams.getStream(device_));
    const void* pointers[] = {words.const_data_ptr(), matrices.const_data_ptr(),
                              vectors.const_data_ptr(), out.mutable_data_ptr()};
    void* arguments[] = {&pointers[0], &pointers[1], &pointers[2], &pointers[3]};
    driver.call(driver.launch, function_, static_cast<unsigned>(words.size(0)), 1u, 1u, kThreads,
                1u, 1u, static_cast<unsigned>(shared_), stream, static_cast<void**>(arguments),
                static_cast<void**>(nullptr));
  }

 private:
  // A thread that has not used the device yet has no context. This function binds one.
  void make_context_current() const {
    VirtualGuardImpl(c10::kCUDA).synchronizeDevice(device_.index());
  }

  c10::Device device_;
  int shared_;
  void* module_ = nullptr;
  void* function_ = nullptr;
};

c10::Device cuda(int device) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(device)}; }

}  // namespace
}  // namespace tessera::gpu

using tessera::gpu::Kernel;

extern "C" {

// Compiles a CUDA source to machine code, u8 [n]. If `library` is null, NVRTC is loaded from the
// folder of libtorch's CUDA runtime.
char* tessera_gpu_compile(const char* library, const char* source, const char* const* options,
                          int count, at::Tensor** out) {
  return guarded([&] {
    const std::string path = library == nullptr ? tessera::gpu::beside_runtime() : library;
    *out = new at::Tensor(tessera::gpu::compile(path, source, options, count));
  });
}

char* tessera_gpu_name(int device, char** out) {
  return guarded([&] { *out = text(tessera::gpu::Driver::get().name(device)); });
}

// Returns ten times a device's compute capability, and the bytes of shared memory that a block and
// a multiprocessor have.
char* tessera_gpu_limits(int device, int* capability, int* of_block, int* of_processor) {
  return guarded([&] {
    using namespace tessera::gpu;
    const Driver& driver = Driver::get();
    *capability = 10 * driver.attribute(kMajorCapability, device) +
                  driver.attribute(kMinorCapability, device);
    *of_block = driver.attribute(kSharedMemoryOfBlock, device);
    *of_processor = driver.attribute(kSharedMemoryOfProcessor, device);
  });
}

int tessera_gpu_shared_memory(const Sizes* sizes) { return tessera::gpu::shared_memory(*sizes); }

char* tessera_gpu_load(const at::Tensor* code, const Sizes* sizes, int device, Kernel** out) {
  return guarded([&] {
    *out = new Kernel(code->const_data_ptr(), *sizes, tessera::gpu::cuda(device));
  });
}

void tessera_gpu_free(Kernel* kernel) { delete kernel; }

// Encodes boards to tokens f16 [boards · 64, width], with a kernel, or on the CPU if it is null.
char* tessera_gpu_encode(const Kernel* kernel, const Sizes* sizes, bool reversed,
                         const at::Tensor* words, const at::Tensor* matrices,
                         const at::Tensor* vectors, at::Tensor** out) {
  return guarded([&] {
    at::Tensor tokens =
        at::empty({words->size(0) * 64, sizes->width}, words->options().dtype(c10::kHalf));
    if (kernel == nullptr) {
      tessera::gpu::emulate(*sizes, reversed, *words, *matrices, *vectors, tokens);
    } else {
      kernel->run(*words, *matrices, *vectors, tokens);
    }
    *out = new at::Tensor(std::move(tokens));
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
    const c10::Device place = tessera::gpu::cuda(device);
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
