// TorchScript modules: loading from memory, multiple outputs, conversion of only the floating-point
// parameters, and freezing.
#include "fuse.h"
#include "placement.h"
#include "shim.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>

using tessera::guarded;
using torch::jit::Module;

namespace {

using VisitTensor = void (*)(void* context, const char* name, at::Tensor*);

// A file in memory that is read in place.
class MemoryReader final : public caffe2::serialize::ReadAdapterInterface {
 public:
  MemoryReader(const char* data, size_t size) : data_(data), size_(size) {}

  size_t size() const override { return size_; }

  size_t read(uint64_t position, void* buffer, size_t count,
              const char*) const override {
    if (position >= size_) {
      return 0;
    }
    count = std::min<size_t>(count, size_ - position);
    std::memcpy(buffer, data_ + position, count);
    return count;
  }

 private:
  const char* data_;
  size_t size_;
};

void append(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
    return;
  }
  TORCH_CHECK(value.isTuple(), "the network returns ", value.tagKind(),
              " in place of a tuple of tensors");
  for (const auto& element : value.toTupleRef().elements()) {
    append(element, tensors);
  }
}

// Returns whether a tensor is dense, contains plain numbers in CPU memory, and lies entirely within
// its storage. Pickles can describe other tensors.
bool is_plain(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != c10::kStrided || !tensor.is_cpu() ||
      tensor.is_quantized()) {
    return false;
  }
  switch (tensor.scalar_type()) {
    case c10::kDouble:
    case c10::kFloat:
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kLong:
    case c10::kInt:
    case c10::kShort:
    case c10::kChar:
    case c10::kByte:
    case c10::kBool:
      break;
    default:
      return false;
  }
  const size_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.element_size(), tensor.storage_offset());
  return needed <= tensor.storage().nbytes();
}

}  // namespace

extern "C" {

void tessera_free_text(char* text) { std::free(text); }

char* tessera_module_load(const char* data, size_t size, Module** out) {
  return guarded([&] {
    auto reader = std::make_shared<MemoryReader>(data, size);
    *out = new Module(torch::jit::load(reader, c10::Device(c10::kCPU)));
  });
}

// Creates a copy that shares nothing with the module.
char* tessera_module_copy(const Module* module, Module** out) {
  return guarded([&] { *out = new Module(module->deepcopy()); });
}

void tessera_module_free(Module* module) { delete module; }

char* tessera_module_tensors(const Module* module, void* context,
                             VisitTensor visit) {
  const auto show = [&](const auto& named) {
    TORCH_CHECK(is_plain(named.value), "its tensor `", named.name,
                "` is sparse, quantised, elsewhere, or larger than its storage");
    visit(context, named.name.c_str(), new at::Tensor(named.value));
  };
  return guarded([&] {
    for (const auto& named : module->named_parameters()) {
      show(named);
    }
    for (const auto& named : module->named_buffers()) {
      show(named);
    }
  });
}

// Moves the module to a CUDA device (or to the CPU if `device` is negative), converts its
// floating-point parameters and buffers to another dtype and freezes it, all in place. Buffers with
// indices keep their dtype.
char* tessera_module_freeze(Module* module, int device, int scalar_type) {
  return guarded([&] {
    const auto place =
        device < 0 ? c10::Device(c10::kCPU)
                   : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
    const c10::ScalarType floating[] = {c10::kFloat, c10::kBFloat16, c10::kHalf};
    const auto convert = [&](at::Tensor tensor) {
      const auto type =
          tensor.is_floating_point() ? floating[scalar_type] : tensor.scalar_type();
      tensor.set_data(tensor.detach().to(place, type));
    };
    module->eval();
    for (const auto& parameter : module->parameters()) {
      convert(parameter);
    }
    for (const auto& buffer : module->buffers()) {
      convert(buffer);
    }
    if (!place.is_cpu()) {
      // Copies share a module's graphs, and some copies may be for the CPU.
      *module = module->clone();
      const auto graph = module->get_method("forward").graph();
      torch::jit::Inline(*graph);
      tessera::name_device(*graph, place);
    }
    *module = torch::jit::freeze(*module);
    if (place.is_cpu()) {
      tessera::fuse(module->get_method("forward").graph());
    }
  });
}

char* tessera_module_forward(Module* module, const at::Tensor* input,
                             void* context, VisitTensor visit) {
  return guarded([&] {
    const c10::InferenceMode inference;
    std::vector<at::Tensor> outputs;
    append(module->forward({*input}), outputs);
    for (const auto& output : outputs) {
      visit(context, "", new at::Tensor(output));
    }
  });
}

// Begins inference mode. Until it ends, tensors that this thread creates are excluded from
// autograd.
void* tessera_inference_begin() { return new c10::InferenceMode(); }

void tessera_inference_end(void* mode) { delete static_cast<c10::InferenceMode*>(mode); }
}
