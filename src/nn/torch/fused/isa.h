// What each of isa_*.cpp consists of: the kernels in its namespace.
#pragma once

#include "attention.h"
#include "dense.h"
#include "embedding.h"
#include "feed_forward.h"
#include "nadam.h"
#include "policy.h"

namespace tessera::TESSERA_ISA {

// `Format` is how dense layers of tokens multiply; backward, and all that is no such
// layer, takes numbers as they are.
template <typename Format>
fused::Kernels kernels() {
  using T = typename Format::Number;
  return {attention<Format>,
          lay_out<AttentionWeights<Format>, Attention>,
          attention_backward<T>,
          feed_forward<Format>,
          lay_out<FeedForwardWeights<Format>, FeedForward>,
          feed_forward_backward<T>,
          dense<Format>,
          lay_out<DenseWeights<Format>, DenseLayers>,
          dense_backward<T>,
          policy<Format>,
          lay_out<PolicyWeights<Format>, Policy>,
          policy_backward<T>,
          inputs<T>,
          embedding<T>,
          lay_out<EmbeddingWeights<T>, Embedding>,
          embedding_backward<T>,
          nadam};
}

}  // namespace tessera::TESSERA_ISA
