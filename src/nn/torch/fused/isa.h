// What each of isa_*.cpp consists of: the kernels in its namespace.
#pragma once

#include "attention.h"
#include "dense.h"
#include "embedding.h"
#include "feed_forward.h"
#include "nadam.h"
#include "policy.h"

namespace tessera::TESSERA_ISA {

template <typename T>
fused::Kernels kernels() {
  return {attention<T>,    attention_backward<T>,
          feed_forward<T>, feed_forward_backward<T>,
          dense<T>,        dense_backward<T>,
          policy<T>,       policy_backward<T>,
          inputs<T>,       embedding<T>,
          embedding_backward<T>,
          nadam};
}

}  // namespace tessera::TESSERA_ISA
