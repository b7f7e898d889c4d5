// The kernels that each isa_*.cpp compiles in its own namespace.
#pragma once

#include "attention.h"
#include "dense.h"
#include "embedding.h"
#include "feed_forward.h"
#include "nadam.h"
#include "policy.h"

namespace tessera::TESSERA_ISA {

// `Format` is the number format of dense layers over tokens. Everything else, including backward,
// uses the format without quantisation.
template <typename Format>
fused::Kernels kernels() {
  using T = typename Format::Number;
  return {attention<Format>,
          pack<AttentionWeights<Format>, Attention>,
          attention_backward<T>,
          feed_forward<Format>,
          pack<FeedForwardWeights<Format>, FeedForward>,
          feed_forward_backward<T>,
          dense<Format>,
          pack<DenseWeights<Format>, DenseLayers>,
          dense_backward<T>,
          policy<Format>,
          pack<PolicyWeights<Format>, Policy>,
          policy_backward<T>,
          inputs<T>,
          embedding<T>,
          pack<EmbeddingWeights<T>, Embedding>,
          embedding_backward<T>,
          nadam};
}

}  // namespace tessera::TESSERA_ISA
