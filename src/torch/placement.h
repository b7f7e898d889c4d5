#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

namespace tessera {

// Removes the device from the dtype conversions in a graph. The tracer records the device of the
// trace with each conversion, although only the dtype is intended. The resulting graph runs on the
// device of its tensors.
void forget_devices(torch::jit::Graph& graph);

// Replaces all devices in a graph with `place`.
void name_device(torch::jit::Graph& graph, c10::Device place);

}  // namespace tessera
