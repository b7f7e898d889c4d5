#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

namespace tessera {

// Takes the device out of a graph's conversions: the tracer writes the one that it ran on
// beside each type, but they mean the type alone. What remains runs wherever its tensors
// are.
void forget_devices(torch::jit::Graph& graph);

// Names `place` wherever a graph names a device.
void name_device(torch::jit::Graph& graph, c10::Device place);

}  // namespace tessera
