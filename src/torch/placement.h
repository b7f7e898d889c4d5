#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

namespace tessera {

// Removes the device from a graph's conversions: the tracer writes its own device with each
// dtype, but only the dtype is meant. The result runs wherever its tensors are.
void forget_devices(torch::jit::Graph& graph);

// Replaces all devices in a graph with `place`.
void name_device(torch::jit::Graph& graph, c10::Device place);

}  // namespace tessera
