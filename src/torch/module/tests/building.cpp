// Builds modules for tests.
#include "../../shim.h"

#include <torch/csrc/jit/api/module.h>

using tessera::guarded;
using torch::jit::Module;

extern "C" {

char* tessera_module_create(const char* name, Module** out) {
  return guarded([&] { *out = new Module(name); });
}

char* tessera_module_save(const Module* module, const char* path) {
  return guarded([&] { module->save(path); });
}

char* tessera_module_define(Module* module, const char* source) {
  return guarded([&] { module->define(source); });
}

char* tessera_module_register(Module* module, const char* name,
                              const at::Tensor* tensor, bool parameter) {
  return guarded([&] {
    if (parameter) {
      module->register_parameter(name, *tensor, /*is_buffer=*/false);
    } else {
      module->register_buffer(name, *tensor);
    }
  });
}
}
