// What each of isa_*.cpp consists of: the kernels in its namespace.
#pragma once

#include "attention.h"
#include "feed_forward.h"

namespace tessera::TESSERA_ISA {

template <typename T>
fused::Kernels kernels() {
  return {attention<T>, attention_backward<T>, feed_forward<T>, feed_forward_backward<T>};
}

}  // namespace tessera::TESSERA_ISA
