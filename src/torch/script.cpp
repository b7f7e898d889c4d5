// Turns functions written in Rust into a TorchScript module. Each function runs once under
// libtorch's tracer, on tensors that are registered as the module's named parameters and buffers.
// The graph therefore refers to the tensors by name instead of containing copies. tch's own tracing
// would embed them as constants and allow only a single output.

#include "placement.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/serialization/export.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using torch::jit::Module;

// A method to trace on `examples`. The layout matches `shim::Method`.
struct Method {
  const char* name;
  const char* const* arguments;
  at::Tensor* const* examples;
  size_t inputs;
  size_t outputs;
  void* context;
};

// Runs the method that `context` describes on its inputs and writes the new tensors to `outputs`.
// Returns 0 on success.
using Run = int (*)(void* context, at::Tensor* const* inputs, at::Tensor** outputs);

// Returns the submodule that holds the attribute at `path`, and the attribute's own name. Missing
// submodules are created.
std::pair<Module, std::string> place(Module module, const std::string& path) {
  size_t start = 0;
  for (size_t dot; (dot = path.find('.', start)) != std::string::npos; start = dot + 1) {
    const std::string name = path.substr(start, dot - start);
    if (!module.hasattr(name)) {
      // The class name joins the parts of the path, because the name of a layer, such as "0", is
      // not a valid class name by itself.
      std::string type = path.substr(0, dot);
      std::replace(type.begin(), type.end(), '.', '_');
      module.register_module(name, Module("__torch__." + type));
    }
    module = module.attr(name).toModule();
  }
  return {module, path.substr(start)};
}

// Traces a method and adds it to the module.
void trace(Module& module, const Method& method, Run run) {
  const auto call = [&](torch::jit::Stack stack) -> torch::jit::Stack {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor*> pointers;
    inputs.reserve(method.inputs);
    for (size_t i = 0; i < method.inputs; ++i) {
      inputs.push_back(stack.at(i).toTensor());
      pointers.push_back(&inputs.back());
    }
    std::vector<at::Tensor*> slots(method.outputs, nullptr);
    if (run(method.context, pointers.data(), slots.data()) != 0) {
      throw std::runtime_error("the forward pass failed under the tracer");
    }
    std::vector<c10::IValue> results;
    for (at::Tensor* slot : slots) {
      results.emplace_back(*slot);
      delete slot;
    }
    return {c10::ivalue::Tuple::create(std::move(results))};
  };
  torch::jit::Stack examples;
  std::vector<std::string> names;
  for (size_t i = 0; i < method.inputs; ++i) {
    examples.emplace_back(*method.examples[i]);
    names.emplace_back(method.arguments[i]);
  }
  auto traced = torch::jit::tracer::trace(
      examples, call, [](const torch::autograd::Variable&) { return std::string(); },
      /*strict=*/true, /*force_outplace=*/false, &module, names);
  tessera::forget_devices(*traced.first->graph);
  auto function = module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), method.name), traced.first->graph);
  module.type()->addMethod(function);
}

}  // namespace

extern "C" {

// Traces the methods, converts floating-point parameters to `kind` (a c10::ScalarType) and writes
// the file. Returns null, or an error message that the caller must free with tessera_free_text.
char* tessera_script_write(
    const char* const* names,
    at::Tensor* const* tensors,
    size_t parameters,
    size_t buffers,
    const char* metadata,
    const char* record,
    const Method* methods,
    size_t method_count,
    Run run,
    int kind,
    const char* path) {
  try {
    Module module("__torch__.Network");
    for (size_t i = 0; i < parameters + buffers; ++i) {
      auto [owner, name] = place(module, names[i]);
      if (i < parameters) {
        owner.register_parameter(name, *tensors[i], /*is_buffer=*/false);
      } else {
        owner.register_buffer(name, *tensors[i]);
      }
    }
    for (size_t i = 0; i < method_count; ++i) {
      trace(module, methods[i], run);
    }

    module.register_attribute("metadata", c10::StringType::get(), std::string(metadata));
    module.define("def meta(self) -> str:\n  return self.metadata\n");

    for (const auto& parameter : module.parameters()) {
      at::Tensor stored = parameter;
      stored.set_requires_grad(false);
      if (stored.is_floating_point()) {
        stored.set_data(stored.to(static_cast<c10::ScalarType>(kind)));
      }
    }
    module.eval();
    // The module is first written to memory, because libtorch's writer aborts the process if a
    // write fails. The writer would also store the file's name in the file.
    std::ostringstream bytes;
    // Metadata in a separate record can be read without running code of the module.
    module.save(bytes, {{record, metadata}});
    std::ofstream file(path, std::ios::binary);
    file << bytes.str();
    file.close();
    if (!file) {
      throw std::runtime_error("the file could not be written");
    }
    return nullptr;
  } catch (const c10::Error& error) {
    return strdup(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return strdup(error.what());
  } catch (...) {
    return strdup("unknown C++ exception");
  }
}

}  // extern "C"
